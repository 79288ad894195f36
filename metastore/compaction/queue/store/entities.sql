-- name: select_described
-- A partition's descriptor: how it is stored, only where its classes are loaded.
SELECT wanted.catalog, wanted.db, wanted."table", wanted.partition, t.id, t.location, t.parameters, d.parameters, t.partition_keys,
       t.sd, t.owner, p.name, p.location, p.parameters, s.sd - 'cols'
FROM {wanted}
JOIN tables AS t ON t.catalog = wanted.catalog AND t.db = wanted.db AND t.name = wanted."table"
JOIN databases AS d ON d.catalog = t.catalog AND d.name = t.db
LEFT JOIN partitions AS p ON p.table_id = t.id AND p.name = wanted.partition
LEFT JOIN partition_descriptors AS s ON s.table_id = p.table_id AND s.digest = p.digest AND t.parameters ->> 'transactional_properties' ILIKE 'insert_only';

-- name: select_homes
SELECT d.place, t.location
FROM (SELECT catalog, name, unnest(ARRAY[location, managed_location]) AS place FROM databases) AS d
LEFT JOIN tables AS t ON t.catalog = d.catalog AND t.db = d.name AND t.name = %(table)s
WHERE d.catalog = %(catalog)s AND d.name = %(db)s;

-- name: select_inside
-- The place is known when the statement is planned, and so is how much lies below it.
SELECT location FROM databases, {place} WHERE {below}
UNION SELECT managed_location FROM databases, {place} WHERE {managed_below}
UNION SELECT location FROM tables, {place} WHERE {below} AND id <> %(table_id)s
UNION SELECT location FROM partitions, {place} WHERE {below} AND table_id <> %(but)s;
