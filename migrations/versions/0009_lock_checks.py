"""Of the heartbeats of a lock, how many were looks at it: a client that only looks does not keep its locks alive."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE locks ADD COLUMN check_count INTEGER NOT NULL DEFAULT 0")


def downgrade() -> None:
    op.execute("ALTER TABLE locks DROP COLUMN check_count")
