-- Events for transactions and write ids, written by triggers while they are wanted, and the numbers of all events.

CREATE OR REPLACE FUNCTION metastore_append_events(types text[], names jsonb[], messages jsonb[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(cardinality(types), 0) = 0 OR current_setting('metastore.silent', true) = 'on' THEN
        RETURN;
    END IF;
    INSERT INTO notification_queue (at, type, catalog, db, "table", message)
    SELECT metastore_now(), type, name ->> 'catalog', name ->> 'db', name ->> 'table',
           message || jsonb_build_object('server', '', 'servicePrincipal', '',
                                         'timestamp', floor(extract(epoch FROM metastore_now()))::bigint)
    FROM unnest(types, names, messages) WITH ORDINALITY AS e(type, name, message, place) ORDER BY e.place;
END $$;

-- Gives numbers to events that were committed, at most so many; returns how many got one. Whoever waited for the counter
-- looks again: each statement of a function has a snapshot of its own.
CREATE OR REPLACE FUNCTION metastore_number_events(most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    numbered integer;
BEGIN
    IF NOT EXISTS (SELECT FROM notification_queue) THEN
        RETURN 0;
    END IF;
    INSERT INTO notification_counter (id, last_event_id) VALUES (1, 0) ON CONFLICT (id) DO NOTHING;
    SELECT last_event_id INTO before FROM notification_counter FOR UPDATE;
    WITH first AS (
        DELETE FROM notification_queue
        WHERE place = ANY(ARRAY(SELECT place FROM notification_queue ORDER BY place LIMIT most)) RETURNING *)
    INSERT INTO notification_log (event_id, at, type, catalog, db, "table", message, body)
    SELECT before + row_number() OVER (ORDER BY place), at, type, catalog, db, "table", message, body FROM first;
    GET DIAGNOSTICS numbered = ROW_COUNT;
    UPDATE notification_counter SET last_event_id = before + numbered;
    RETURN numbered;
END $$;

CREATE OR REPLACE FUNCTION metastore_txns_opened() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metastore_append_events(array_agg('OPEN_TXN'::text), array_agg('{}'::jsonb), array_agg(message))
    FROM (SELECT jsonb_build_object('txnIds', jsonb_agg(id ORDER BY id)) AS message
          FROM opened WHERE state = 'open' AND type <> 2 HAVING count(*) > 0) AS one;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION metastore_txns_ended() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metastore_append_events(
        array_agg(event ORDER BY id, place), array_agg(name ORDER BY id, place), array_agg(message ORDER BY id, place))
    FROM (
        SELECT id, 1 AS place, CASE state WHEN 'committed' THEN 'COMMIT_TXN' ELSE 'ABORT_TXN' END AS event,
               '{}'::jsonb AS name,
               jsonb_build_object('txnid', id) || CASE state WHEN 'committed' THEN '{}'::jsonb ELSE
                   jsonb_build_object('dbsUpdated', (
                       SELECT coalesce(jsonb_agg(DISTINCT w.db), '[]') FROM txn_write_ids AS w
                       WHERE w.txn_id = done.id)) END AS message
        FROM (SELECT ended.id, ended.state FROM ended JOIN before ON before.id = ended.id
              WHERE before.state = 'open' AND ended.state <> 'open' AND ended.type <> 2) AS done
        UNION ALL
        SELECT ended.id, 2, 'COMMIT_COMPACTION_EVENT',
            jsonb_build_object('catalog', q.catalog, 'db', q.db, 'table', q."table"),
               jsonb_build_object('txnid', ended.id, 'compactionId', q.id, 'type', upper(q.type), 'dbname', q.db,
                                  'tableName', q."table", 'partName', nullif(q.partition, ''))
        FROM ended JOIN before ON before.id = ended.id JOIN compaction_queue AS q ON q.txn_id = ended.id
        WHERE before.state = 'open' AND ended.state = 'committed') AS one;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION metastore_write_ids_allocated() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metastore_append_events(array_agg('ALLOC_WRITE_ID_EVENT'::text), array_agg(name), array_agg(message))
    FROM (SELECT jsonb_build_object('catalog', catalog, 'db', db, 'table', "table") AS name,
                 jsonb_build_object('dbName', db, 'tableName', "table", 'txnIdList',
                     jsonb_agg(txn_id ORDER BY write_id),
                                    'writeIdList', jsonb_agg(write_id ORDER BY write_id)) AS message
          FROM allocated GROUP BY catalog, db, "table" ORDER BY catalog, db, "table") AS one;
    RETURN NULL;
END $$;
