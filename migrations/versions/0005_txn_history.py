"""What became of transactions whose own record is gone.

Everything below the counter at the time of this migration may have been aborted and forgotten: the floor says so.
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

UP = """
ALTER TABLE txns ADD COLUMN longest_gap INTERVAL DEFAULT '0' NOT NULL;
CREATE TABLE txn_history (
    txn_id BIGINT NOT NULL,
    state TEXT NOT NULL CONSTRAINT txn_history_state_check CHECK (state IN ('aborted', 'committed')),
    type SMALLINT NOT NULL,
    "user" TEXT NOT NULL,
    host TEXT NOT NULL,
    agent_info TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    last_heartbeat_at TIMESTAMPTZ NOT NULL,
    heartbeat_count INTEGER NOT NULL,
    longest_gap INTERVAL NOT NULL,
    ended_at TIMESTAMPTZ NOT NULL,
    abort_code INTEGER,
    abort_reason TEXT,
    commit_id BIGINT,
    writes JSONB DEFAULT '[]' NOT NULL,
    write_count INTEGER DEFAULT 0 NOT NULL,
    locks JSONB DEFAULT '[]' NOT NULL,
    lock_count INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT txn_history_pkey PRIMARY KEY (txn_id)
);
CREATE INDEX txn_history_state_ended_at_idx ON txn_history (state, ended_at);
CREATE TABLE txn_history_floor (
    id SMALLINT NOT NULL CONSTRAINT txn_history_floor_one_row_check CHECK (id = 1),
    complete_above BIGINT NOT NULL,
    CONSTRAINT txn_history_floor_pkey PRIMARY KEY (id)
);
CREATE TABLE skipped_txn_ids (
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    CONSTRAINT skipped_txn_ids_pkey PRIMARY KEY (first_id)
);
INSERT INTO txn_history_floor SELECT 1, greatest(next_txn_id, reserved_until) - 1 FROM txn_counter WHERE next_txn_id > 1;
"""

DOWN = """
DROP TABLE txn_history, txn_history_floor, skipped_txn_ids;
ALTER TABLE txns DROP COLUMN longest_gap;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
