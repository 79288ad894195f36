"""Constraints of tables: keys, NOT NULL, DEFAULT, CHECK."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create ``table_constraints``, empty."""
    op.execute("""
        CREATE TABLE table_constraints (
            table_id BIGINT NOT NULL,
            name TEXT COLLATE "C" NOT NULL,
            position INTEGER NOT NULL,
            kind TEXT NOT NULL,
            "column" TEXT COLLATE "C",
            value TEXT,
            is_enabled BOOLEAN NOT NULL,
            is_validated BOOLEAN NOT NULL,
            is_relied_on BOOLEAN NOT NULL,
            parent_id BIGINT,
            parent_column TEXT COLLATE "C",
            parent_key TEXT COLLATE "C",
            update_rule INTEGER,
            delete_rule INTEGER,
            CONSTRAINT table_constraints_pkey PRIMARY KEY (table_id, name, position),
            CONSTRAINT table_constraints_table_id_fkey FOREIGN KEY(table_id) REFERENCES tables (id) ON DELETE CASCADE,
            CONSTRAINT table_constraints_parent_id_fkey FOREIGN KEY(parent_id) REFERENCES tables (id) ON DELETE CASCADE,
            CONSTRAINT table_constraints_kind_check CHECK (
                kind IN ('primary_key', 'foreign_key', 'unique', 'not_null', 'default', 'check')),
            CONSTRAINT table_constraints_parent_check CHECK ((kind = 'foreign_key') = (parent_id IS NOT NULL))
        )
        """)
    op.execute("CREATE INDEX table_constraints_parent_id_idx ON table_constraints (parent_id)")
    op.execute(
        "CREATE UNIQUE INDEX table_constraints_one_primary_key ON table_constraints (table_id, position) "
        "WHERE kind = 'primary_key'"
    )


def downgrade() -> None:
    """Drop ``table_constraints``."""
    op.execute("DROP TABLE table_constraints")
