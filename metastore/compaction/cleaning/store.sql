-- name: reading
(SELECT CASE WHEN m.this >= 0 THEN 'this' WHEN m.this < 0 THEN 'not this' WHEN m.highest >= 0 THEN 'others' ELSE 'anything' END
 FROM (SELECT max(min_write_id) FILTER (WHERE catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s) AS this,
              max(min_write_id) AS highest
       FROM min_history WHERE txn_id = t.id) AS m);

-- name: insert_waived
INSERT INTO min_history (txn_id, catalog, db, "table", min_write_id)
SELECT t.id, %(catalog)s, %(db)s, %(table)s, %(waived)s FROM txns AS t
WHERE t.state = 'open' AND NOT t.emptied AND t.id <= %(up_to)s
  AND EXISTS (SELECT FROM min_history AS m WHERE m.txn_id = t.id AND m.min_write_id >= 0)
ORDER BY t.id FOR KEY SHARE OF t SKIP LOCKED
ON CONFLICT DO NOTHING;

-- name: delete_aborted
-- An owner's own base of the same write id is beaten by one that a compaction made, by no other.
DELETE FROM txn_components WHERE ctid = ANY(ARRAY(
    SELECT d.ctid FROM txn_components AS d
    JOIN txns AS t ON t.id = d.txn_id AND t.state = 'aborted'
    LEFT JOIN txn_write_ids AS w
         ON w.txn_id = d.txn_id AND w.catalog = d.catalog AND w.db = d.db AND w."table" = d."table"
    WHERE d.catalog = %(catalog)s AND d.db = %(db)s AND d."table" = %(table)s AND d.partition = %(partition)s
      AND (%(txns)s::bigint[] IS NULL OR d.txn_id = ANY(%(txns)s::bigint[]))
      AND (%(up_to)s::bigint IS NULL OR coalesce(d.write_id, w.write_id, 0) <= %(up_to)s)
      AND NOT coalesce(d.write_id, w.write_id, 0) = ANY(%(keep)s::bigint[])
      AND CASE WHEN {of_compaction}
               THEN (d.write_id, d.txn_id) < (%(base)s::bigint, %(result_of)s::bigint)
               WHEN t.may_publish AND coalesce(d.write_id, w.write_id) IS NOT NULL
               THEN (coalesce(d.write_id, w.write_id), 0) < (%(covering)s::bigint, %(compacted)s::bigint)
               ELSE true END
    LIMIT %(limit)s));
