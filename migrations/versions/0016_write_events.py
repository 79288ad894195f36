"""The files that transactions wrote, for replication; the log tells of compactions, and of no read-only transaction.

The events of one commit are COMMIT_TXN and, if it ends a compaction, COMMIT_COMPACTION behind it.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

UP = """
CREATE TABLE write_events (
    txn_id BIGINT NOT NULL,
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT DEFAULT '' NOT NULL,
    partition TEXT DEFAULT '' NOT NULL,
    write_id BIGINT NOT NULL,
    files TEXT[] NOT NULL,
    table_object TEXT NOT NULL,
    partition_object TEXT,
    at TIMESTAMPTZ NOT NULL,
    CONSTRAINT write_events_txn_id_catalog_db_table_partition_key UNIQUE (txn_id, catalog, db, "table", partition)
);
CREATE INDEX write_events_at_idx ON write_events (at);

CREATE OR REPLACE FUNCTION metastore_txns_opened() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metastore_append_events(array_agg('OPEN_TXN'::text), array_agg('{}'::jsonb), array_agg(message))
    FROM (SELECT jsonb_build_object('txnIds', jsonb_agg(id ORDER BY id)) AS message
          FROM opened WHERE state = 'open' AND type <> 2 HAVING count(*) > 0) AS one;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION metastore_txns_ended() RETURNS trigger LANGUAGE plpgsql AS $$
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
        SELECT ended.id, 2, 'COMMIT_COMPACTION', jsonb_build_object('catalog', q.catalog, 'db', q.db, 'table', q."table"),
               jsonb_build_object('txnid', ended.id, 'compactionId', q.id, 'type', upper(q.type), 'dbname', q.db,
                                  'tableName', q."table", 'partName', nullif(q.partition, ''))
        FROM ended JOIN before ON before.id = ended.id JOIN compaction_queue AS q ON q.txn_id = ended.id
        WHERE before.state = 'open' AND ended.state = 'committed') AS one;
    RETURN NULL;
END $$;
"""

DOWN = """
CREATE OR REPLACE FUNCTION metastore_txns_opened() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metastore_append_events(array_agg('OPEN_TXN'::text), array_agg('{}'::jsonb), array_agg(message))
    FROM (SELECT jsonb_build_object('txnIds', jsonb_agg(id ORDER BY id)) AS message
          FROM opened WHERE state = 'open' HAVING count(*) > 0) AS one;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION metastore_txns_ended() RETURNS trigger LANGUAGE plpgsql AS $$
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

DROP TABLE write_events;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
