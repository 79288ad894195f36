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
