"""Granting what nothing is in the way of in a PostgreSQL function, whose text stands beside the store that calls it."""

from pathlib import Path

from alembic import op

import metastore

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    text = (Path(metastore.__file__).parent / "locks" / "grant.sql").read_text()
    op.get_bind().exec_driver_sql(text)


def downgrade() -> None:
    op.execute("DROP FUNCTION lock_uncontended")
