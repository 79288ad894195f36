-- Wakes those who wait for a lock: locks that somebody watches say on a channel that they are gone.

CREATE OR REPLACE FUNCTION metastore_lock_released() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.watched_by = current_setting('metastore.process', true) THEN
        RAISE INFO 'metastore_lock_released %', OLD.ext_id;
    ELSE
        PERFORM pg_notify('metastore_lock_released', OLD.ext_id::text);
    END IF;
    RETURN NULL;
END $$;
