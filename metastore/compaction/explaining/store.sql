-- name: select_holders
SELECT t.id, t."user", t.host,
       {reading},
       t.agent_info, t.started_at, t.last_heartbeat_at,
       (SELECT w.write_id FROM txn_write_ids AS w
        WHERE w.txn_id = t.id AND w.catalog = %(catalog)s AND w.db = %(db)s AND w."table" = %(table)s)
FROM txns AS t
WHERE t.state = 'open' AND NOT t.emptied
ORDER BY t.id;
