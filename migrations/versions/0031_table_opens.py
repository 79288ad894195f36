"""How often each table is read."""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The release before counts nothing, and orders compactions by the read locks of the moment."""
    op.execute(
        """
CREATE TABLE IF NOT EXISTS table_opens (
    catalog TEXT NOT NULL, db TEXT NOT NULL, "table" TEXT NOT NULL,
    opens DOUBLE PRECISION NOT NULL, at TIMESTAMPTZ NOT NULL,
    CONSTRAINT table_opens_pkey PRIMARY KEY (catalog, db, "table")
)"""
    )


def downgrade() -> None:
    """The counts are lost."""
    op.execute("DROP TABLE table_opens")
