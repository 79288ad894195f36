"""How much a read of each table or partition must open beside its base."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The release before fills nothing in, and forgets nothing when a table is dropped: the Initiator does so later."""
    op.execute(
        """
CREATE TABLE IF NOT EXISTS delta_measures (
    catalog TEXT NOT NULL, db TEXT NOT NULL, "table" TEXT NOT NULL, partition TEXT NOT NULL DEFAULT '',
    deltas INTEGER NOT NULL DEFAULT 0, small_deltas INTEGER NOT NULL DEFAULT 0,
    obsolete_deltas INTEGER NOT NULL DEFAULT 0, files BIGINT NOT NULL DEFAULT 0, bytes BIGINT NOT NULL DEFAULT 0,
    at TIMESTAMPTZ NOT NULL,
    CONSTRAINT delta_measures_pkey PRIMARY KEY (catalog, db, "table", partition)
)"""
    )


def downgrade() -> None:
    """The measures are lost."""
    op.execute("DROP TABLE delta_measures")
