-- name: required
SELECT partition, write_id FROM completed_txn_components
WHERE catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s AND write_id IS NOT NULL
UNION SELECT partition, highest_write_id FROM compaction_queue
WHERE catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s AND state = 'ready_for_cleaning'
  AND type <> 'abort_txn_cleanup' AND highest_write_id IS NOT NULL
UNION SELECT partition, highest_write_id FROM completed_compactions
WHERE catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s AND state = 'succeeded'
  AND type <> 'abort_txn_cleanup' AND highest_write_id IS NOT NULL;

-- name: raise_write_ids
-- A name that has had no ids in its present life goes on having none: first_write_id moves along.
WITH seen AS (SELECT * FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[], %(highest)s::bigint[])
              AS s(catalog, db, "table", highest)),
made AS (
    INSERT INTO next_write_ids (catalog, db, "table", next_write_id, purged_write_id, known_since, first_write_id)
    SELECT catalog, db, "table", highest + 1 + %(gap)s, highest + %(gap)s, metastore_now(), highest + 1 + %(gap)s
    FROM seen ON CONFLICT DO NOTHING RETURNING catalog, db, "table")
UPDATE next_write_ids AS n SET
    next_write_id = raised.id,
    first_write_id = CASE WHEN n.next_write_id = n.first_write_id THEN raised.id ELSE n.first_write_id END,
    purged_write_id = CASE WHEN n.next_write_id = n.first_write_id THEN raised.id - 1 ELSE n.purged_write_id END
FROM (SELECT o.catalog, o.db, o."table", greatest(o.next_write_id, coalesce(s.highest, 0) + 1) + %(gap)s AS id
      FROM next_write_ids AS o LEFT JOIN seen AS s USING (catalog, db, "table")) AS raised
WHERE (n.catalog, n.db, n."table") = (raised.catalog, raised.db, raised."table");
