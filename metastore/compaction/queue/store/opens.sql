-- name: upsert_opens
-- Names that have no write ids leave no row: a client cannot fill the table.
INSERT INTO table_opens AS o (catalog, db, "table", opens, at)
SELECT catalog, db, "table", new.opens, metastore_now()
FROM unnest(%(catalogs)s, %(dbs)s, %(tables)s, %(opens)s) AS new (catalog, db, "table", opens)
JOIN next_write_ids USING (catalog, db, "table")
ORDER BY catalog, db, "table"
ON CONFLICT (catalog, db, "table") DO UPDATE SET
    opens = o.opens * 0.5 ^ (greatest(0, extract(epoch FROM excluded.at - o.at)) / %(half_life)s) + excluded.opens,
    at = greatest(o.at, excluded.at)

-- name: delete_forgotten
DELETE FROM table_opens WHERE (catalog, db, "table") IN (
    SELECT catalog, db, "table" FROM table_opens WHERE at < metastore_now() - %(forgotten)s FOR UPDATE SKIP LOCKED)

-- name: select_opens
SELECT catalog, db, "table", opens * 0.5 ^ (greatest(0, extract(epoch FROM metastore_now() - at)) / %(half_life)s)
FROM table_opens WHERE (catalog, db, "table") IN %(tables)s
