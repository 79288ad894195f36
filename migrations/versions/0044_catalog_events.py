"""Room for the events of the catalog in the notification log, and Hive's names for two events of transactions."""

from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

_NAMES = (("metastore_txns_ended", "COMMIT_COMPACTION"), ("metastore_write_ids_allocated", "ALLOC_WRITE_ID"))


def _rename(function: str, before: str, after: str) -> None:
    """Replace a quoted text in the source of a function."""
    op.execute(
        f"DO $do$ BEGIN EXECUTE replace(pg_get_functiondef('{function}'::regproc), "
        f"quote_literal('{before}'), quote_literal('{after}')); END $do$"
    )


def upgrade() -> None:
    op.execute("ALTER TABLE notification_log ADD COLUMN body bytea")
    for function, name in _NAMES:
        _rename(function, name, f"{name}_EVENT")


def downgrade() -> None:
    for function, name in _NAMES:
        _rename(function, f"{name}_EVENT", name)
    op.execute("ALTER TABLE notification_log DROP COLUMN body")
