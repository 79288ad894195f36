"""Which releases can work on this schema: all whose newest migration is not older than the one that is named here."""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """This release is the first that looks here. A migration that takes something away names a later one."""
    op.execute("""
        CREATE TABLE IF NOT EXISTS oldest_release (
            id smallint NOT NULL, version text NOT NULL,
            CONSTRAINT oldest_release_pkey PRIMARY KEY (id), CONSTRAINT oldest_release_one_row_check CHECK (id = 1))""")
    op.execute("INSERT INTO oldest_release (id, version) VALUES (1, '0024') ON CONFLICT (id) DO NOTHING")


def downgrade() -> None:
    """Every release works on its own schema only."""
    op.execute("DROP TABLE IF EXISTS oldest_release")
