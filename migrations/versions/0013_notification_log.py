"""The notification log: what became of transactions and write ids, for whoever replicates or reacts.

Triggers write it, so that nothing is left out whichever statement ends a transaction, and so that it costs nothing where
it is off: they are disabled here, and a server enables them when its configuration says so. Ids are given out by one
row, locked until COMMIT: they have no gaps and appear in the order of the commits. What has an event waits for the disk,
because an id that somebody has read must not come back after a crash.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

UP = """
CREATE TABLE notification_counter (
    id SMALLINT NOT NULL CONSTRAINT notification_counter_one_row_check CHECK (id = 1),
    last_event_id BIGINT NOT NULL,
    CONSTRAINT notification_counter_pkey PRIMARY KEY (id)
) WITH (fillfactor = 10);
CREATE TABLE notification_log (
    event_id BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    type TEXT NOT NULL,
    catalog TEXT,
    db TEXT,
    "table" TEXT,
    message TEXT NOT NULL,
    CONSTRAINT notification_log_pkey PRIMARY KEY (event_id)
);

CREATE FUNCTION metastore_append_events(types text[], names jsonb[], messages jsonb[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    IF coalesce(cardinality(types), 0) = 0 OR current_setting('metastore.silent', true) = 'on' THEN
        RETURN;
    END IF;
    INSERT INTO notification_counter AS c (id, last_event_id) VALUES (1, cardinality(types))
    ON CONFLICT (id) DO UPDATE SET last_event_id = c.last_event_id + excluded.last_event_id
    RETURNING last_event_id - cardinality(types) INTO before;
    INSERT INTO notification_log (event_id, at, type, catalog, db, "table", message)
    SELECT before + place, metastore_now(), type, name ->> 'catalog', name ->> 'db', name ->> 'table',
           message || jsonb_build_object('server', '', 'servicePrincipal', '',
                                         'timestamp', floor(extract(epoch FROM metastore_now()))::bigint)
    FROM unnest(types, names, messages) WITH ORDINALITY AS e(type, name, message, place);
    SET LOCAL synchronous_commit TO DEFAULT;
END $$;

CREATE FUNCTION metastore_txns_opened() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metastore_append_events(array_agg('OPEN_TXN'::text), array_agg('{}'::jsonb), array_agg(message))
    FROM (SELECT jsonb_build_object('txnIds', jsonb_agg(id ORDER BY id)) AS message
          FROM opened WHERE state = 'open' HAVING count(*) > 0) AS one;
    RETURN NULL;
END $$;

CREATE FUNCTION metastore_txns_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metastore_append_events(
        array_agg(CASE state WHEN 'committed' THEN 'COMMIT_TXN' ELSE 'ABORT_TXN' END ORDER BY id),
        array_agg('{}'::jsonb),
        array_agg(jsonb_build_object('txnid', id) || CASE state WHEN 'committed' THEN '{}'::jsonb ELSE
            jsonb_build_object('dbsUpdated', (
                SELECT coalesce(jsonb_agg(DISTINCT w.db), '[]') FROM txn_write_ids AS w WHERE w.txn_id = done.id)) END
            ORDER BY id))
    FROM (SELECT ended.id, ended.state FROM ended JOIN before ON before.id = ended.id
          WHERE before.state = 'open' AND ended.state <> 'open') AS done;
    RETURN NULL;
END $$;

CREATE FUNCTION metastore_write_ids_allocated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metastore_append_events(array_agg('ALLOC_WRITE_ID'::text), array_agg(name), array_agg(message))
    FROM (SELECT jsonb_build_object('catalog', catalog, 'db', db, 'table', "table") AS name,
                 jsonb_build_object('dbName', db, 'tableName', "table", 'txnIdList', jsonb_agg(txn_id ORDER BY write_id),
                                    'writeIdList', jsonb_agg(write_id ORDER BY write_id)) AS message
          FROM allocated GROUP BY catalog, db, "table" ORDER BY catalog, db, "table") AS one;
    RETURN NULL;
END $$;

CREATE TRIGGER txns_opened AFTER INSERT ON txns REFERENCING NEW TABLE AS opened
    FOR EACH STATEMENT EXECUTE FUNCTION metastore_txns_opened();
CREATE TRIGGER txns_ended AFTER UPDATE ON txns REFERENCING OLD TABLE AS before NEW TABLE AS ended
    FOR EACH STATEMENT EXECUTE FUNCTION metastore_txns_ended();
CREATE TRIGGER write_ids_allocated AFTER INSERT ON txn_write_ids REFERENCING NEW TABLE AS allocated
    FOR EACH STATEMENT EXECUTE FUNCTION metastore_write_ids_allocated();
ALTER TABLE txns DISABLE TRIGGER txns_opened, DISABLE TRIGGER txns_ended;
ALTER TABLE txn_write_ids DISABLE TRIGGER write_ids_allocated;
"""

DOWN = """
DROP TRIGGER txns_opened ON txns;
DROP TRIGGER txns_ended ON txns;
DROP TRIGGER write_ids_allocated ON txn_write_ids;
DROP FUNCTION metastore_txns_opened, metastore_txns_ended, metastore_write_ids_allocated, metastore_append_events;
DROP TABLE notification_log, notification_counter;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
