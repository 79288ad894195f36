-- name: reading
(SELECT ARRAY[max(min_write_id) FILTER (WHERE catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s), max(min_write_id)]
 FROM min_history WHERE txn_id = t.id);

-- name: insert_waived
INSERT INTO min_history (txn_id, catalog, db, "table", min_write_id)
SELECT t.id, %(catalog)s, %(db)s, %(table)s, %(waived)s FROM txns AS t
WHERE t.state = 'open' AND NOT t.emptied AND t.id <= %(up_to)s
  AND EXISTS (SELECT FROM min_history AS m WHERE m.txn_id = t.id AND m.min_write_id >= 0)
ORDER BY t.id FOR KEY SHARE OF t SKIP LOCKED
ON CONFLICT DO NOTHING;

-- name: select_aborted
SELECT c.txn_id, c.operation, coalesce(c.write_id, w.write_id), {of_compaction}, t.may_publish
FROM txn_components AS c
JOIN txns AS t ON t.id = c.txn_id AND t.state = 'aborted'
LEFT JOIN txn_write_ids AS w ON w.txn_id = c.txn_id AND w.catalog = c.catalog AND w.db = c.db AND w."table" = c."table"
WHERE c.catalog = %(catalog)s AND c.db = %(db)s AND c."table" = %(table)s AND c.partition = %(partition)s
  AND (%(txns)s::bigint[] IS NULL OR c.txn_id = ANY(%(txns)s::bigint[]))
  AND (c.txn_id, c.operation) > (%(after_txn)s, %(after_operation)s)
ORDER BY c.txn_id, c.operation LIMIT %(limit)s;

-- name: delete_aborted
DELETE FROM txn_components AS c USING unnest(%(txns)s::bigint[], %(operations)s::text[]) AS gone (txn_id, operation)
WHERE c.txn_id = gone.txn_id AND c.operation = gone.operation
  AND c.catalog = %(catalog)s AND c.db = %(db)s AND c."table" = %(table)s AND c.partition = %(partition)s;
