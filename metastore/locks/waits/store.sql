-- name: heartbeat_same
WITH alive AS (
    UPDATE locks SET last_heartbeat_at = metastore_now(), orphaned_at = NULL,
                     heartbeat_count = heartbeat_count + 1, check_count = check_count + 1
     WHERE ext_id = ANY (%(ext_ids)s::bigint[]) AND txn_id = {no_txn} AND agent_info = ANY (%(agents)s::text[])
    RETURNING agent_info, {columns})
SELECT * FROM alive
UNION ALL
SELECT agent_info, {columns} FROM locks WHERE txn_id = ANY (%(txns)s::bigint[]) AND txn_id <> {no_txn};
