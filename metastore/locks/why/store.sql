-- name: select_waits
-- All locks that wait; those near them, a superset of those that they may wait for; those that are asked about.
WITH waiting AS (
    SELECT DISTINCT catalog, db, "table" FROM locks WHERE state = '{waiting}'),
near AS (
    SELECT ext_id, int_id FROM locks WHERE state = '{waiting}'
    UNION
    SELECT l.ext_id, l.int_id FROM waiting AS w JOIN locks AS l ON l.catalog = w.catalog AND l.db = w.db
        AND (w."table" = '' OR l."table" = '' OR l."table" = w."table")
    UNION
    SELECT ext_id, int_id FROM locks WHERE ext_id = %(lock)s
    UNION
    SELECT ext_id, int_id FROM locks WHERE txn_id = %(txn)s AND txn_id <> {no_txn}
    UNION
    SELECT ext_id, int_id FROM locks
    WHERE catalog = %(catalog)s AND db = %(db)s AND ("table" = '' OR "table" = %(table)s))
SELECT metastore_now(), l.ext_id, l.int_id, l.txn_id, l.catalog, l.db, l."table", l.partition, l.type, l.state,
       l."user", l.host, l.agent_info, l.requested_at, l.acquired_at, l.last_heartbeat_at,
       CASE WHEN l.orphaned_at IS NOT NULL AND l.heartbeat_count = l.check_count
            THEN greatest(l.orphaned_at, l.last_heartbeat_at) END,
       t.type, t."user", t.host, t.agent_info, t.started_at, t.last_heartbeat_at
FROM near JOIN locks AS l USING (ext_id, int_id) LEFT JOIN txns AS t ON t.id = l.txn_id AND l.txn_id <> {no_txn}
ORDER BY l.ext_id, l.int_id;
