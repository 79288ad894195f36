"""The location of a catalog as its client gave it, beside the stored spelling, by which places are compared."""

from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the location that was given."""
    op.execute("ALTER TABLE catalogs ADD COLUMN IF NOT EXISTS given_location text")


def downgrade() -> None:
    """Drop the column."""
    op.execute("ALTER TABLE catalogs DROP COLUMN given_location")
