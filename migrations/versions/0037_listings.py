"""What the last listing of each table and partition found, so that the Initiator lists only what has changed since."""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The release before fills nothing in, and leaves rows of what it drops or renames: ids and locations tell."""
    op.execute(
        """
CREATE TABLE IF NOT EXISTS listings (
    catalog TEXT NOT NULL, db TEXT NOT NULL, "table" TEXT NOT NULL, partition TEXT NOT NULL DEFAULT '',
    location TEXT NOT NULL, listed_at TIMESTAMPTZ NOT NULL, high_watermark BIGINT NOT NULL,
    base_bytes BIGINT NOT NULL, delta_bytes BIGINT NOT NULL, deltas INTEGER NOT NULL, delete_deltas INTEGER NOT NULL,
    originals BOOLEAN NOT NULL, raw_deltas BOOLEAN NOT NULL, leftover_base BOOLEAN NOT NULL,
    CONSTRAINT listings_pkey PRIMARY KEY (catalog, db, "table", partition)
)"""
    )


def downgrade() -> None:
    """Everything is listed again."""
    op.execute("DROP TABLE listings")
