-- name: answers
-- Owned ids are counted only where the highest of them is not valid, and only until there are more than could be invalid.
w.mark, w.catalog, w.db, w."table", w.next_write_id, w.purged_write_id, w.mapped, i.write_ids, i.txn_ids,
    CASE WHEN w.mapped = ANY(i.write_ids)
         THEN (SELECT count(*) FROM (SELECT FROM txn_write_ids AS m WHERE {same_table} AND m.write_id <= w.mapped
                                     LIMIT cardinality(i.write_ids) + 1) AS counted) END
FROM wanted AS w
LEFT JOIN LATERAL (SELECT array_agg(write_id ORDER BY write_id) AS write_ids,
                          array_agg(txn_id ORDER BY write_id) AS txn_ids
                   FROM hidden AS m WHERE {same_table}
                     AND m.write_id <= greatest(w.mapped, w.purged_write_id, w.next_write_id - 1)) AS i ON true;

-- name: select_facts
WITH wanted AS (
    SELECT * FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[]) AS w(catalog, db, "table"))
SELECT (SELECT json_agg(json_build_array(id, state, type)) FROM txns WHERE id = ANY(%(txns)s::bigint[])),
       (SELECT json_agg(json_build_array(txn_id, catalog, db, "table", write_id))
        FROM txn_write_ids JOIN wanted USING (catalog, db, "table") WHERE txn_id = ANY(%(txns)s::bigint[])),
       (SELECT json_agg(json_build_array(catalog, db, "table", next_write_id))
        FROM next_write_ids JOIN wanted USING (catalog, db, "table"));

-- name: drop
DELETE FROM txn_write_ids AS m USING unnest(%(d_txns)s::bigint[], %(d_catalogs)s::text[], %(d_dbs)s::text[],
    %(d_tables)s::text[]) AS d(txn_id, catalog, db, "table")
WHERE m.txn_id = d.txn_id AND m.catalog = d.catalog AND m.db = d.db AND m."table" = d."table";
UPDATE txn_components AS c SET write_id = NULL FROM unnest(%(d_txns)s::bigint[], %(d_catalogs)s::text[],
    %(d_dbs)s::text[], %(d_tables)s::text[]) AS d(txn_id, catalog, db, "table")
WHERE c.txn_id = d.txn_id AND c.catalog = d.catalog AND c.db = d.db AND c."table" = d."table";

-- name: insert_next_write_id
INSERT INTO next_write_ids AS n (catalog, db, "table", next_write_id, purged_write_id, known_since)
VALUES (%s, %s, %s, %s, %s, metastore_now()) ON CONFLICT (catalog, db, "table") DO UPDATE SET
    next_write_id = CASE WHEN %s THEN EXCLUDED.next_write_id
                         ELSE greatest(n.next_write_id, EXCLUDED.next_write_id) END,
    purged_write_id = EXCLUDED.purged_write_id, known_since = EXCLUDED.known_since, first_write_id = 1
WHERE n.next_write_id = n.first_write_id AND n.first_write_id > 1
RETURNING 1;
