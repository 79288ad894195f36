"""Which PostgreSQL, and which of its timelines, the metastore works on."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Servers of the release before do not know it; the first one of this release writes the row."""
    op.execute("""
        CREATE TABLE IF NOT EXISTS database_origin (
            id smallint NOT NULL, system text NOT NULL, timeline bigint NOT NULL, is_synchronous boolean NOT NULL,
            CONSTRAINT database_origin_pkey PRIMARY KEY (id), CONSTRAINT database_origin_one_row_check CHECK (id = 1))""")


def downgrade() -> None:
    """Forget it."""
    op.execute("DROP TABLE IF EXISTS database_origin")
