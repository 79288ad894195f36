"""Transactions, write ids and locks: the tables of the transaction side, and the one owner of time.

``metastore_now()`` is the only clock of the service. Tests replace the function to move time for every process at once.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UP = """
CREATE FUNCTION metastore_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT now()';
CREATE TABLE txn_counter (
    id SMALLINT NOT NULL CONSTRAINT txn_counter_one_row_check CHECK (id = 1),
    next_txn_id BIGINT DEFAULT 1 NOT NULL,
    reserved_until BIGINT DEFAULT 1 NOT NULL,
    CONSTRAINT txn_counter_pkey PRIMARY KEY (id)
) WITH (fillfactor = 10);
CREATE UNLOGGED TABLE txn_id_block (
    id SMALLINT NOT NULL CONSTRAINT txn_id_block_one_row_check CHECK (id = 1),
    CONSTRAINT txn_id_block_pkey PRIMARY KEY (id)
);
CREATE TABLE txns (
    id BIGINT NOT NULL,
    state TEXT NOT NULL CONSTRAINT txns_state_check CHECK (state IN ('open', 'aborted', 'committed')),
    type SMALLINT DEFAULT 0 NOT NULL,
    "user" TEXT NOT NULL,
    host TEXT NOT NULL,
    agent_info TEXT DEFAULT 'Unknown' NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    last_heartbeat_at TIMESTAMPTZ NOT NULL,
    heartbeat_count INTEGER DEFAULT 0 NOT NULL,
    ended_at TIMESTAMPTZ,
    abort_code INTEGER,
    abort_reason TEXT,
    commit_id BIGINT,
    emptied BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT txns_pkey PRIMARY KEY (id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000);
CREATE INDEX txns_id_idx ON txns (id) WHERE state <> 'committed' AND NOT emptied;
CREATE TABLE txn_components (
    txn_id BIGINT NOT NULL,
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT DEFAULT '' NOT NULL,
    partition TEXT DEFAULT '' NOT NULL,
    operation TEXT NOT NULL CONSTRAINT txn_components_operation_check CHECK (operation IN ('i', 'u', 'd', 'c')),
    write_id BIGINT,
    CONSTRAINT txn_components_txn_id_catalog_db_table_partition_operation_key
        UNIQUE (txn_id, catalog, db, "table", partition, operation)
);
CREATE INDEX txn_components_catalog_db_table_partition_idx ON txn_components (catalog, db, "table", partition);
CREATE TABLE completed_txn_components (
    txn_id BIGINT NOT NULL,
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT DEFAULT '' NOT NULL,
    partition TEXT DEFAULT '' NOT NULL,
    write_id BIGINT,
    update_delete BOOLEAN NOT NULL,
    at TIMESTAMPTZ NOT NULL
);
CREATE INDEX completed_txn_components_catalog_db_table_partition_idx
    ON completed_txn_components (catalog, db, "table", partition);
CREATE INDEX completed_txn_components_txn_id_idx ON completed_txn_components (txn_id);
CREATE TABLE write_sets (
    txn_id BIGINT NOT NULL,
    commit_id BIGINT NOT NULL,
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT DEFAULT '' NOT NULL,
    partition TEXT DEFAULT '' NOT NULL,
    operation TEXT NOT NULL
);
CREATE INDEX write_sets_catalog_db_table_partition_commit_id_idx
    ON write_sets (catalog, db, "table", partition, commit_id);
CREATE INDEX write_sets_commit_id_idx ON write_sets (commit_id);
CREATE TABLE next_write_ids (
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT NOT NULL,
    next_write_id BIGINT NOT NULL,
    purged_write_id BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT next_write_ids_catalog_db_table_key UNIQUE (catalog, db, "table")
);
CREATE TABLE txn_write_ids (
    txn_id BIGINT NOT NULL,
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT NOT NULL,
    write_id BIGINT NOT NULL,
    CONSTRAINT txn_write_ids_catalog_db_table_write_id_key UNIQUE (catalog, db, "table", write_id),
    CONSTRAINT txn_write_ids_txn_id_catalog_db_table_key UNIQUE (txn_id, catalog, db, "table")
);
CREATE TABLE repl_txn_map (
    policy TEXT NOT NULL,
    source_txn_id BIGINT NOT NULL,
    target_txn_id BIGINT NOT NULL,
    CONSTRAINT repl_txn_map_policy_source_txn_id_key UNIQUE (policy, source_txn_id)
);
CREATE INDEX repl_txn_map_target_txn_id_idx ON repl_txn_map (target_txn_id);
CREATE TABLE min_history (
    txn_id BIGINT NOT NULL,
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT NOT NULL,
    min_write_id BIGINT NOT NULL,
    CONSTRAINT min_history_txn_id_catalog_db_table_key UNIQUE (txn_id, catalog, db, "table")
);
CREATE INDEX min_history_catalog_db_table_idx ON min_history (catalog, db, "table");
CREATE TABLE materialization_locks (
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT NOT NULL,
    txn_id BIGINT NOT NULL,
    last_heartbeat_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT materialization_locks_catalog_db_table_key UNIQUE (catalog, db, "table")
);
CREATE SEQUENCE lock_ext_id;
CREATE TABLE locks (
    ext_id BIGINT NOT NULL,
    int_id INTEGER NOT NULL,
    txn_id BIGINT DEFAULT 0 NOT NULL,
    catalog TEXT NOT NULL,
    db TEXT NOT NULL,
    "table" TEXT DEFAULT '' NOT NULL,
    partition TEXT DEFAULT '' NOT NULL,
    type TEXT NOT NULL CONSTRAINT locks_type_check
        CHECK (type IN ('shared_read', 'shared_write', 'excl_write', 'exclusive')),
    state TEXT NOT NULL CONSTRAINT locks_state_check CHECK (state IN ('waiting', 'acquired')),
    acquired_at TIMESTAMPTZ,
    last_heartbeat_at TIMESTAMPTZ,
    requested_at TIMESTAMPTZ NOT NULL,
    heartbeat_count INTEGER DEFAULT 0 NOT NULL,
    "user" TEXT NOT NULL,
    host TEXT NOT NULL,
    agent_info TEXT DEFAULT 'Unknown' NOT NULL,
    blocked_by_ext_id BIGINT,
    blocked_by_int_id INTEGER,
    CONSTRAINT locks_ext_id_int_id_key UNIQUE (ext_id, int_id)
) WITH (fillfactor = 70);
CREATE INDEX locks_catalog_db_table_type_idx ON locks (catalog, db, "table", type);
CREATE INDEX locks_txn_id_idx ON locks (txn_id) WHERE txn_id <> 0;
INSERT INTO txn_counter (id) VALUES (1);
"""

DOWN = """
DROP TABLE txn_counter, txn_id_block, txns, txn_components, completed_txn_components, write_sets, next_write_ids,
    txn_write_ids, repl_txn_map, min_history, materialization_locks, locks;
DROP SEQUENCE lock_ext_id;
DROP FUNCTION metastore_now();
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
