-- name: select_users
SELECT pg_advisory_xact_lock({creators});
WITH places AS (
    SELECT 'database ' || name AS who, location AS place FROM databases
    UNION ALL SELECT 'database ' || name, managed_location FROM databases
    UNION ALL SELECT 'table ' || db || '.' || name, location FROM tables
    UNION ALL SELECT 'partition ' || name, location FROM partitions WHERE table_id = ANY(%(tables)s))
SELECT s.source, min(who)
FROM unnest(%(sources)s::text[]) AS s (source) JOIN places ON place = s.source OR starts_with(place, s.source || '/')
GROUP BY 1;
