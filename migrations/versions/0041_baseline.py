"""The schema of release 0.2: the start of migrations. Release 0.2 brings an older database to this state."""

from pathlib import Path

from alembic import op

revision = "0041"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema to this revision."""
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    """Bring the schema back to the revision before."""
    raise NotImplementedError("There is nothing before the schema of release 0.2.")
