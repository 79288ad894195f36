-- name: select_described
SELECT wanted.catalog, wanted.db, wanted."table", wanted.partition, t.id, t.location, t.parameters, d.parameters, t.partition_keys,
       t.sd, t.owner, p.name, p.location, p.parameters
FROM {wanted}
JOIN tables AS t ON t.catalog = wanted.catalog AND t.db = wanted.db AND t.name = wanted."table"
JOIN databases AS d ON d.catalog = t.catalog AND d.name = t.db
LEFT JOIN partitions AS p ON p.table_id = t.id AND p.name = wanted.partition;

-- name: select_user_of
WITH places AS (
    SELECT 'database ' || name AS who, rtrim(location, '/') AS place, false AS owns FROM databases
    UNION ALL SELECT 'database ' || name, rtrim(managed_location, '/'), false FROM databases
    UNION ALL SELECT 'table ' || db || '.' || name, rtrim(location, '/'), partition_keys = '[]' FROM tables
    UNION ALL SELECT 'partition ' || t.db || '.' || t.name || '/' || p.name, rtrim(p.location, '/'), true
              FROM partitions AS p JOIN tables AS t ON t.id = p.table_id)
SELECT who FROM places
WHERE place = %(at)s OR starts_with(place, %(at)s || '/') OR (owns AND starts_with(%(at)s, place || '/'))
LIMIT 1;

-- name: select_sharer
SELECT db || '.' || name FROM tables
WHERE left(location COLLATE "C", 500) = left(%(at)s, 500) AND location = %(at)s AND id <> %(table_id)s
  AND lower(parameters ->> 'transactional') = 'true'
ORDER BY 1 LIMIT 1;

-- name: select_inside
-- As the indexes on places answer it: "0" is the character after "/". Partitions of other tables are not looked for, since
-- that index begins with the table: their tables' directories are.
WITH wanted AS (SELECT left(%(at)s || '/', 500) AS low, left(%(at)s || '0', 500) AS high, %(at)s || '/' AS prefix)
SELECT location FROM databases, wanted
WHERE left(location COLLATE "C", 500) BETWEEN low AND high AND starts_with(location, prefix)
UNION SELECT managed_location FROM databases, wanted
WHERE left(managed_location COLLATE "C", 500) BETWEEN low AND high AND starts_with(managed_location, prefix)
UNION SELECT location FROM tables, wanted
WHERE left(location COLLATE "C", 500) BETWEEN low AND high AND starts_with(location, prefix) AND id <> %(table_id)s
UNION SELECT location FROM partitions, wanted
WHERE table_id = %(partitions_of)s AND left(location COLLATE "C", 500) BETWEEN low AND high AND starts_with(location, prefix);
