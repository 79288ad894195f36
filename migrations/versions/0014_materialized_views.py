"""An index of the materialized views: who changes a table looks for the views on it."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE INDEX tables_materialized_views_idx ON tables (catalog, db, name) WHERE type = 'MATERIALIZED_VIEW'"
    )


def downgrade() -> None:
    op.execute("DROP INDEX tables_materialized_views_idx")
