-- name: select_holders
SELECT t.id, t."user", t.host,
       (SELECT m.min_write_id FROM min_history AS m
        WHERE m.txn_id = t.id AND m.catalog = %(catalog)s AND m.db = %(db)s AND m."table" = %(table)s),
       EXISTS (SELECT FROM min_history AS m WHERE m.txn_id = t.id),
       t.agent_info, t.started_at, t.last_heartbeat_at,
       (SELECT w.write_id FROM txn_write_ids AS w
        WHERE w.txn_id = t.id AND w.catalog = %(catalog)s AND w.db = %(db)s AND w."table" = %(table)s)
FROM txns AS t
WHERE t.state = 'open' AND NOT t.emptied
ORDER BY t.id;
