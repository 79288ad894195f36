"""Locks: who waits for whom in which process, whose connection is gone, and the deadlocks that were ended.

``watched_by`` is set on a request by those who wait for it: the process, or ``*`` for several. The trigger tells them when
the row goes, whichever statement removes it: a release in the waiters' own process says so to its own session only,
so that NOTIFY, which takes a lock on the whole database, is sent to other processes alone.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

UP = """
ALTER TABLE locks ADD COLUMN watched_by TEXT, ADD COLUMN orphaned_at TIMESTAMPTZ;
CREATE INDEX locks_waiting ON locks (ext_id) WHERE state = 'waiting';
CREATE INDEX locks_orphaned ON locks (orphaned_at) WHERE orphaned_at IS NOT NULL;
CREATE FUNCTION metastore_lock_released() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.watched_by = current_setting('metastore.process', true) THEN
        RAISE INFO 'metastore_lock_released %', OLD.ext_id;
    ELSE
        PERFORM pg_notify('metastore_lock_released', OLD.ext_id::text);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER locks_released AFTER DELETE ON locks
    FOR EACH ROW WHEN (OLD.watched_by IS NOT NULL) EXECUTE FUNCTION metastore_lock_released();
CREATE TABLE deadlocks (
    id BIGSERIAL NOT NULL,
    found_at TIMESTAMPTZ NOT NULL,
    victim_txn_id BIGINT NOT NULL,
    victim_lock_ids BIGINT[] NOT NULL,
    cycle JSONB NOT NULL,
    message TEXT NOT NULL,
    CONSTRAINT deadlocks_pkey PRIMARY KEY (id)
);
"""

DOWN = """
DROP TABLE deadlocks;
DROP TRIGGER locks_released ON locks;
DROP FUNCTION metastore_lock_released();
DROP INDEX locks_orphaned, locks_waiting;
ALTER TABLE locks DROP COLUMN watched_by, DROP COLUMN orphaned_at;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
