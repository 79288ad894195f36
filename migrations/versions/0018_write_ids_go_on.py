"""Write ids of a name go on after DROP and rename: where the ids of the table that has the name now begin."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Every table that is there began at 1. A server of the release before goes on deleting the rows of what it drops."""
    op.execute("ALTER TABLE next_write_ids ADD COLUMN IF NOT EXISTS first_write_id bigint NOT NULL DEFAULT 1")


def downgrade() -> None:
    """Remove it; names that no table has keep their rows, which harm nobody."""
    op.execute("ALTER TABLE next_write_ids DROP COLUMN IF EXISTS first_write_id")
