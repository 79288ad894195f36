"""Committed writes say whether a lock kept exclusive writers out until they were there."""

from pathlib import Path

from alembic import op

import metastore

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE write_sets ADD COLUMN IF NOT EXISTS guarded boolean NOT NULL DEFAULT false")
    text = (Path(metastore.__file__).parent / "txns" / "commit.sql").read_text()
    op.get_bind().exec_driver_sql(text)


def downgrade() -> None:
    op.execute("ALTER TABLE write_sets DROP COLUMN guarded")
