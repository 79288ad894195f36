-- name: select_described
-- A partition's descriptor: how it is stored, only where its classes are loaded.
SELECT wanted.catalog, wanted.db, wanted."table", wanted.partition, t.id, t.location, t.parameters, d.parameters, t.partition_keys,
       t.sd, t.owner, p.name, p.location, p.parameters, s.sd - 'cols'
FROM {wanted}
JOIN tables AS t ON t.catalog = wanted.catalog AND t.db = wanted.db AND t.name = wanted."table"
JOIN databases AS d ON d.catalog = t.catalog AND d.name = t.db
LEFT JOIN partitions AS p ON p.table_id = t.id AND p.name = wanted.partition
LEFT JOIN partition_descriptors AS s ON s.table_id = p.table_id AND s.digest = p.digest AND t.parameters ->> 'transactional_properties' ILIKE 'insert_only';

-- name: select_user_of
SELECT who FROM (
    SELECT used.who FROM {place}, LATERAL ({at_or_below}) AS used (who)
    UNION ALL SELECT {table} FROM tables, unnest(%(above)s::text[]) AS s (place) WHERE partition_keys = '[]' AND {at}
    UNION ALL SELECT {partition} FROM partitions, unnest(%(above)s::text[]) AS s (place) WHERE {at}) AS users
LIMIT 1;

-- name: select_sharer
SELECT t.db || '.' || t.name FROM tables AS t
WHERE t.id IN (SELECT id FROM tables, {place} WHERE {at}
               UNION ALL SELECT table_id FROM partitions, {place} WHERE {at})
  AND t.id <> %(table_id)s AND lower(t.parameters ->> 'transactional') = 'true'
ORDER BY 1 LIMIT 1;

-- name: select_inside
-- The place is known when the statement is planned, and so is how much lies below it.
SELECT location FROM databases, {place} WHERE {below}
UNION SELECT managed_location FROM databases, {place} WHERE {managed_below}
UNION SELECT location FROM tables, {place} WHERE {below} AND id <> %(table_id)s
UNION SELECT location FROM partitions, {place} WHERE {below} AND table_id <> %(but)s;
