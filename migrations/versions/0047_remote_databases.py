"""The data connector of a database of type REMOTE, and the database's name there."""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the connector of a database, and its name there."""
    op.execute(
        "ALTER TABLE databases ADD COLUMN IF NOT EXISTS connector text, ADD COLUMN IF NOT EXISTS remote_name text"
    )


def downgrade() -> None:
    """Drop the columns."""
    op.execute("ALTER TABLE databases DROP COLUMN connector, DROP COLUMN remote_name")
