"""Committing in PostgreSQL functions, whose text stands beside the store that calls them."""

from pathlib import Path

from alembic import op

import metastore

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

DOWN = """
DROP FUNCTION commit_uncontended(bigint[], smallint[], smallint[], boolean);
DROP FUNCTION apply_commits(bigint[], bigint[], bigint[], bigint, boolean);
"""


def upgrade() -> None:
    text = (Path(metastore.__file__).parent / "txns" / "commit.sql").read_text()
    op.get_bind().exec_driver_sql(text)


def downgrade() -> None:
    op.execute(DOWN)
