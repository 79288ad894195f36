-- name: append
-- Numbers events and writes them; the counter stays locked until COMMIT.
WITH counted AS (
    INSERT INTO notification_counter AS c (id, last_event_id) VALUES (1, %s)
    ON CONFLICT (id) DO UPDATE SET last_event_id = c.last_event_id + excluded.last_event_id
    RETURNING last_event_id)
INSERT INTO notification_log (event_id, at, type, catalog, db, "table", message, body)
SELECT last_event_id - %s + place, metastore_now(), type, catalog, db, tab, '{}', body
FROM counted, unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bytea[]) WITH ORDINALITY
     AS e (type, catalog, db, tab, body, place);
