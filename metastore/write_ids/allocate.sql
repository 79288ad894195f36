-- Giving out write ids where there is nothing to decide, in one round trip. store.py says who calls this; rules.py has
-- the rules, of which only a superset stands here. A change of meaning gets a new name: servers of two releases may run
-- side by side.

-- Give each transaction the next id of its table, in the order of the lists, or none of them anything: none if a
-- transaction is not open or only reads, or if one has an id of its table already. The ids in order; NULL if nothing was
-- done, except that tables may have got their first row. Rows are locked in the order of store.py: transactions, then
-- tables by name. First rows come before that: who waits for one that another transaction makes has no table locked.
--   of_txns: the transactions, ascending     t_...: the tables, by name     read_only: the type that gets no ids
CREATE OR REPLACE FUNCTION allocate_uncontended(
    of_txns bigint[], read_only smallint, t_catalogs text[], t_dbs text[], t_tabs text[],
    txn_ids bigint[], catalogs text[], dbs text[], tabs text[])
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    ready bigint;
    ids bigint[];
BEGIN
    SELECT count(*) INTO ready FROM (
        SELECT FROM txns WHERE id = ANY(of_txns) AND state = 'open' AND type <> read_only ORDER BY id FOR KEY SHARE
        ) AS mine;
    IF ready = cardinality(of_txns) THEN
        LOOP  -- again only if a table was dropped in between
            INSERT INTO next_write_ids (catalog, db, "table", next_write_id, known_since)
            SELECT catalog, db, "table", 1, metastore_now()
            FROM unnest(t_catalogs, t_dbs, t_tabs) WITH ORDINALITY AS w (catalog, db, "table", place)
            WHERE NOT EXISTS (SELECT FROM next_write_ids AS n
                              WHERE n.catalog = w.catalog AND n.db = w.db AND n."table" = w."table")
            ORDER BY place ON CONFLICT DO NOTHING;
            SELECT count(*) INTO ready FROM (
                SELECT FROM next_write_ids
                WHERE (catalog, db, "table") IN (SELECT * FROM unnest(t_catalogs, t_dbs, t_tabs))
                ORDER BY catalog, db, "table" FOR UPDATE) AS theirs;
            EXIT WHEN ready = cardinality(t_tabs);
        END LOOP;
        IF NOT EXISTS (
            SELECT FROM unnest(txn_ids, catalogs, dbs, tabs) AS w (txn_id, catalog, db, "table")
            JOIN txn_write_ids USING (txn_id, catalog, db, "table"))
        THEN
            ids := ARRAY(
                SELECT n.next_write_id - 1 + row_number() OVER (PARTITION BY w.catalog, w.db, w."table" ORDER BY place)
                FROM unnest(catalogs, dbs, tabs) WITH ORDINALITY AS w (catalog, db, "table", place)
                JOIN next_write_ids AS n USING (catalog, db, "table") ORDER BY place);
            INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
            SELECT * FROM unnest(txn_ids, catalogs, dbs, tabs, ids);
            UPDATE next_write_ids AS n SET next_write_id = n.next_write_id + w.given
            FROM (SELECT catalog, db, tab, count(*) AS given FROM unnest(catalogs, dbs, tabs) AS u (catalog, db, tab)
                  GROUP BY 1, 2, 3) AS w
            WHERE n.catalog = w.catalog AND n.db = w.db AND n."table" = w.tab;
            RETURN ids;
        END IF;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN NULL;
END $$;
