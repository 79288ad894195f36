-- Recording partitions that open transactions have written, in one round trip. store.py says who calls this. A change of
-- meaning gets a new name: servers of two releases may run side by side.

-- Record all of it in the place of "somewhere in the table", or nothing if a transaction is not open. Whether it was done.
-- Of "somewhere in the table" a component remains that counts for nothing when the transaction commits (operation c), and
-- is found when it is aborted: it may have written more partitions than it has named until then.
--   of_txns: the transactions, ascending     w_...: (transaction, table), each once     c_...: what they wrote there
CREATE OR REPLACE FUNCTION name_partitions(
    of_txns bigint[], w_txns bigint[], w_catalogs text[], w_dbs text[], w_tabs text[],
    c_txns bigint[], c_catalogs text[], c_dbs text[], c_tabs text[], c_parts text[], c_operations text[],
    c_write_ids bigint[])
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    open_txns bigint;
BEGIN
    SELECT count(*) INTO open_txns FROM (
        SELECT FROM txns WHERE id = ANY(of_txns) AND state = 'open' ORDER BY id FOR KEY SHARE) AS mine;
    IF open_txns < cardinality(of_txns) THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN false;
    END IF;
    INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
    SELECT * FROM unnest(c_txns, c_catalogs, c_dbs, c_tabs, c_parts, c_operations, c_write_ids)
    ON CONFLICT DO NOTHING;
    WITH replaced AS (
        DELETE FROM txn_components AS c
        USING unnest(w_txns, w_catalogs, w_dbs, w_tabs) AS w (txn_id, catalog, db, "table")
        WHERE c.txn_id = w.txn_id AND c.catalog = w.catalog AND c.db = w.db AND c."table" = w."table"
          AND c.partition = '' AND c.operation <> 'c'
        RETURNING c.*)
    INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
    SELECT txn_id, catalog, db, "table", '', 'c', max(write_id) FROM replaced GROUP BY txn_id, catalog, db, "table"
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;
