"""Who was aborted by somebody else than its owner, and of which components the files are gone."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

UP = """
ALTER TABLE txns ADD COLUMN may_publish BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE txn_components ADD COLUMN cleaned BOOLEAN NOT NULL DEFAULT false;
"""

DOWN = """
ALTER TABLE txns DROP COLUMN may_publish;
ALTER TABLE txn_components DROP COLUMN cleaned;
"""


def upgrade() -> None:
    """Servers of the release before name their columns: they leave the defaults, and forget aborts as they did."""
    op.get_bind().exec_driver_sql(UP)


def downgrade() -> None:
    """As before."""
    op.get_bind().exec_driver_sql(DOWN)
