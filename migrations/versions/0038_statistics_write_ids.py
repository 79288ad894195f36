"""Which state of a transactional table its column statistics describe."""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of those that are there nobody knows; the release before does not say it of new ones."""
    op.execute(
        "ALTER TABLE column_statistics ADD COLUMN IF NOT EXISTS write_id BIGINT,"
        " ADD COLUMN IF NOT EXISTS is_whole BOOLEAN NOT NULL DEFAULT false"
    )


def downgrade() -> None:
    """Nobody knows it any more."""
    op.execute("ALTER TABLE column_statistics DROP COLUMN write_id, DROP COLUMN is_whole")
