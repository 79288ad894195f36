-- name: insert_read_tables
-- Unless it is the first time, all of it must be on disk before the answer: "further" says that it will be.
INSERT INTO min_history AS m (txn_id, catalog, db, "table", min_write_id)
SELECT %(txn)s::bigint, *, 0 FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[])
WHERE EXISTS (SELECT FROM txns WHERE id = %(txn)s::bigint AND state = 'open')
  AND (%(further)s::boolean OR NOT EXISTS (
      SELECT FROM min_history WHERE txn_id = %(txn)s::bigint AND min_write_id >= 0))
ON CONFLICT (txn_id, catalog, db, "table") DO UPDATE SET min_write_id = excluded.min_write_id
WHERE m.min_write_id >= 0;

-- name: select_registered
WITH wanted AS (
    SELECT w.db || '.' || w."table" AS name, m.min_write_id
    FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[]) AS w(catalog, db, "table")
    LEFT JOIN min_history AS m ON m.txn_id = %(txn)s::bigint AND (m.catalog, m.db, m."table") = (w.catalog, w.db, w."table"))
SELECT (SELECT state FROM txns WHERE id = %(txn)s::bigint),
       ARRAY(SELECT name FROM wanted WHERE min_write_id < 0),
       EXISTS (SELECT FROM wanted WHERE min_write_id IS NULL), s.*
FROM ({snapshot}) AS s;
