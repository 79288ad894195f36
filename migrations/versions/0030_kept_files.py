"""Which removals and moves leave their files to replicas."""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The release before keeps nothing for replicas, and writes that."""
    op.execute("ALTER TABLE directory_changes ADD COLUMN IF NOT EXISTS kept BOOLEAN NOT NULL DEFAULT false")


def downgrade() -> None:
    """What is still to be removed will be gone for replicas."""
    op.execute("ALTER TABLE directory_changes DROP COLUMN kept")
