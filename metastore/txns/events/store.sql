-- name: append
INSERT INTO notification_queue (at, type, catalog, db, "table", message, body)
SELECT metastore_now(), type, catalog, db, tab, '{}', body
FROM unnest(%(types)s::text[], %(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[], %(bodies)s::bytea[])
     WITH ORDINALITY AS e (type, catalog, db, tab, body, place) ORDER BY e.place;

-- name: insert
-- Writes numbered events: behind all that a reader would see now.
WITH counted AS (
    INSERT INTO notification_counter AS c (id, last_event_id) VALUES (1, %(size)s)
    ON CONFLICT (id) DO UPDATE SET last_event_id = c.last_event_id + excluded.last_event_id
    RETURNING last_event_id)
INSERT INTO notification_log (event_id, at, type, catalog, db, "table", message, body)
SELECT last_event_id - %(size)s + place, metastore_now(), type, catalog, db, tab, '{}', body
FROM counted, unnest(%(types)s::text[], %(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[], %(bodies)s::bytea[])
     WITH ORDINALITY AS e (type, catalog, db, tab, body, place)
RETURNING event_id;
