"""The compaction queue and its history."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_COLUMNS = """
    catalog text NOT NULL,
    db text NOT NULL,
    "table" text DEFAULT '' NOT NULL,
    partition text DEFAULT '' NOT NULL,
    state text NOT NULL,
    type text NOT NULL CONSTRAINT {table}_type_check CHECK (type IN ('major', 'minor', 'rebalance', 'abort_txn_cleanup')),
    properties jsonb DEFAULT '{{}}' NOT NULL,
    pool text,
    number_of_buckets integer,
    order_by text,
    worker_id text,
    worker_version text,
    initiator_id text,
    initiator_version text,
    run_as text,
    enqueued_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    cleaner_started_at timestamptz,
    highest_write_id bigint,
    txn_id bigint,
    next_txn_id bigint,
    committed_at timestamptz,
    hadoop_job_id text,
    error_message text
"""


def upgrade() -> None:
    """Create the queue, its id sequence and the history."""
    op.execute("CREATE SEQUENCE compaction_id")
    op.execute(f"""
        CREATE TABLE compaction_queue (
            id bigint DEFAULT nextval('compaction_id') NOT NULL CONSTRAINT compaction_queue_pkey PRIMARY KEY,
            {_COLUMNS.format(table="compaction_queue")},
            attempt integer DEFAULT 0 NOT NULL,
            heartbeat_at timestamptz,
            failures integer DEFAULT 0 NOT NULL,
            not_before timestamptz,
            CONSTRAINT compaction_queue_state_check CHECK (state IN ('initiated', 'working', 'ready_for_cleaning')))
        """)
    op.execute("""
        CREATE UNIQUE INDEX compaction_queue_one_active ON compaction_queue (catalog, db, "table", partition)
            WHERE state IN ('initiated', 'working')
        """)
    op.execute(
        "CREATE INDEX compaction_queue_catalog_db_table_partition_idx"
        ' ON compaction_queue (catalog, db, "table", partition)'
    )
    op.execute("CREATE INDEX compaction_queue_state_id_idx ON compaction_queue (state, id)")
    op.execute("CREATE INDEX compaction_queue_txn_id_idx ON compaction_queue (txn_id) WHERE txn_id IS NOT NULL")
    op.execute(f"""
        CREATE TABLE completed_compactions (
            id bigint NOT NULL CONSTRAINT completed_compactions_pkey PRIMARY KEY,
            {_COLUMNS.format(table="completed_compactions")},
            CONSTRAINT completed_compactions_state_check
                CHECK (state IN ('failed', 'succeeded', 'did_not_initiate', 'refused', 'aborted')))
        """)
    op.execute(
        "CREATE INDEX completed_compactions_catalog_db_table_partition_idx"
        ' ON completed_compactions (catalog, db, "table", partition)'
    )


def downgrade() -> None:
    """Drop what ``upgrade`` created."""
    op.execute("DROP TABLE completed_compactions; DROP TABLE compaction_queue; DROP SEQUENCE compaction_id")
