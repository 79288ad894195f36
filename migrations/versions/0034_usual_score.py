"""What reads of a table usually cost beside its base, and how much waits there for the Cleaner."""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The release before leaves both as they are."""
    op.execute(
        "ALTER TABLE delta_measures ADD COLUMN IF NOT EXISTS obsolete_bytes BIGINT NOT NULL DEFAULT 0,"
        " ADD COLUMN IF NOT EXISTS usual_score DOUBLE PRECISION NOT NULL DEFAULT 0"
    )


def downgrade() -> None:
    """Both are measured anew."""
    op.execute("ALTER TABLE delta_measures DROP COLUMN obsolete_bytes, DROP COLUMN usual_score")
