"""A table of rare objects, as documents under their names (ADR 138)."""

from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and the numbers of its changes."""
    op.execute("""
CREATE SEQUENCE rare_object_number;
CREATE TABLE rare_objects (
    kind text NOT NULL, key text[] COLLATE "C" NOT NULL, body jsonb NOT NULL,
    changed_at timestamp with time zone NOT NULL, catalog text COLLATE "C", db text COLLATE "C",
    CONSTRAINT rare_objects_pkey PRIMARY KEY (kind, key),
    CONSTRAINT rare_objects_catalog_db_fkey FOREIGN KEY (catalog, db) REFERENCES databases (catalog, name)
        ON DELETE CASCADE);
CREATE INDEX rare_objects_catalog_db_idx ON rare_objects (catalog, db) WHERE db IS NOT NULL""")


def downgrade() -> None:
    """Drop the table."""
    op.execute("DROP TABLE rare_objects; DROP SEQUENCE rare_object_number")
