-- name: select_facts
SELECT (SELECT next_txn_id - 1 FROM txn_counter),
    (SELECT json_agg(json_build_array(id, state, type)) FROM txns WHERE id = ANY(%(ids)s::bigint[])),
    (SELECT json_agg(json_build_array(txn_id, catalog, db, "table", partition, operation, coalesce(write_id, (
         SELECT w.write_id FROM txn_write_ids AS w
         WHERE w.txn_id = c.txn_id AND w.catalog = c.catalog AND w.db = c.db AND w."table" = c."table"))))
     FROM txn_components AS c WHERE txn_id = ANY(%(ids)s::bigint[])),
    (SELECT json_agg(DISTINCT jsonb_build_array(
         w.txn_id, w.commit_id, w.catalog, w.db, w."table", w.partition, w.operation, w.guarded))
     FROM txn_components AS c JOIN write_sets AS w USING (catalog, db, "table", partition)
     WHERE c.txn_id = ANY(%(ids)s::bigint[]) AND c.operation IN ('u', 'd') AND w.commit_id >= c.txn_id),
    (SELECT json_agg(json_build_array(txn_id, catalog, db, "table", partition)) FROM locks
     WHERE txn_id = ANY(%(shielded)s::bigint[]) AND txn_id <> 0 AND state = 'acquired'
       AND type IN ('excl_write', 'exclusive'));
