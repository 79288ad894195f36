"""When the turn of a compaction begins: earlier than it was enqueued, the more it saves."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Null for rows that were there before, and for those of the release before: their turn is when they were enqueued."""
    op.execute("ALTER TABLE compaction_queue ADD turn_at timestamptz")


def downgrade() -> None:
    """Forget it: the oldest is next again."""
    op.execute("ALTER TABLE compaction_queue DROP turn_at")
