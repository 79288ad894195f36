"""Which batch of which streaming query a table has: remembered by the commit of the batch's rows."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create ``stream_batches``, empty."""
    op.execute("""
        CREATE TABLE stream_batches (
            table_id BIGINT NOT NULL,
            query_id TEXT NOT NULL,
            batch_id BIGINT NOT NULL,
            plan TEXT NOT NULL,
            txn_id BIGINT NOT NULL,
            at TIMESTAMPTZ NOT NULL,
            CONSTRAINT stream_batches_pkey PRIMARY KEY (table_id, query_id),
            CONSTRAINT stream_batches_table_id_fkey FOREIGN KEY(table_id) REFERENCES tables (id) ON DELETE CASCADE
        )
        """)


def downgrade() -> None:
    """Drop ``stream_batches``."""
    op.execute("DROP TABLE stream_batches")
