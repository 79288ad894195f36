-- name: select_users
-- A table or partition at one of the places or above it stands at one of the directories around them; of a database or catalog only
-- what is at a place or below it counts. Each branch reads an index and ends with its first row; a transactional table stands for all
-- that have a directory with it.
SELECT a.place, used.* FROM unnest(%(around)s::text[]) AS a (place), LATERAL (
    (SELECT {table}, location, true, {transactional} AS is_transactional FROM tables AS t
     WHERE {at} AND ({not_own} OR %(own_counts)s::boolean AND a.place = ANY(%(places)s::text[])) ORDER BY is_transactional DESC LIMIT 1)
    UNION ALL (SELECT {partition}, p.location, true, {transactional} AS is_transactional
               FROM partitions AS p JOIN tables AS t ON t.id = p.table_id
               WHERE {partition_at} AND {not_mine} ORDER BY is_transactional DESC LIMIT 1)) AS used
UNION ALL
SELECT b.place, used.* FROM unnest(%(places)s::text[]) AS b (place), LATERAL (
    (SELECT 'catalog ' || name, location, false, false FROM catalogs
     WHERE location = b.place OR starts_with(location, b.place || '/') LIMIT 1)
    UNION ALL (SELECT 'database ' || name, location, false, false FROM databases WHERE {database_at} LIMIT 1)
    UNION ALL (SELECT 'database ' || name, managed_location, false, false FROM databases WHERE {managed_at} LIMIT 1)
    UNION ALL (SELECT 'database ' || name, location, false, false FROM databases WHERE {below} ORDER BY {start} LIMIT 1)
    UNION ALL (SELECT 'database ' || name, managed_location, false, false FROM databases
               WHERE {managed_below} ORDER BY {managed_start} LIMIT 1)
    UNION ALL (SELECT {table}, location, true, {transactional} FROM tables AS t
               WHERE {below} AND ({not_own} OR %(own_counts)s::boolean) ORDER BY {start} LIMIT 1)
    UNION ALL (SELECT {partition}, p.location, true, {transactional} FROM partitions AS p JOIN tables AS t ON t.id = p.table_id
               WHERE {partition_below} AND {not_mine} ORDER BY {partition_start} LIMIT 1)) AS used;
