"""How many rows a transaction wrote to each table, as its writer says."""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Null for transactions that were there before, and for those of whose rows nobody says anything.

    The release before does not copy it into the history of a transaction; then it is not on record.
    """
    op.execute("ALTER TABLE txns ADD written_rows jsonb")
    op.execute("ALTER TABLE txn_history ADD written_rows jsonb")


def downgrade() -> None:
    """What writers said is lost."""
    op.execute("ALTER TABLE txns DROP written_rows")
    op.execute("ALTER TABLE txn_history DROP written_rows")
