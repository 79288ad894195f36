-- name: copy_owners
INSERT INTO next_write_ids AS n
    (catalog, db, "table", next_write_id, purged_write_id, known_since, first_write_id)
SELECT catalog, %(new_db)s, %(new_table)s, next_write_id, purged_write_id, known_since, first_write_id
FROM next_write_ids WHERE {of_object}
ON CONFLICT (catalog, db, "table") DO UPDATE SET
    next_write_id = greatest(n.next_write_id, EXCLUDED.next_write_id),
    purged_write_id = EXCLUDED.purged_write_id, known_since = EXCLUDED.known_since,
    first_write_id = EXCLUDED.first_write_id;
INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
SELECT txn_id, catalog, %(new_db)s, %(new_table)s, write_id FROM txn_write_ids WHERE {of_object}
ON CONFLICT DO NOTHING;
