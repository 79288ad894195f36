"""Views with the names of Hive's own tables, in the schema "hive"; release 0.2 does not look there."""

from pathlib import Path

from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

_OURS = """
DO $$ BEGIN
    IF obj_description(to_regnamespace('hive'), 'pg_namespace') = 'Views of the transaction metastore in the schema ' || current_schema() THEN
        DROP SCHEMA hive CASCADE;
    END IF;
END $$;
"""
_HELPERS = ("id(text)", "millis(timestamp with time zone)", "owner_type(smallint)", "properties(jsonb)")


def upgrade() -> None:
    """Create the function that makes the views, and run it."""
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text().replace("%", "%%"))
    op.execute("SELECT make_hive_views()")


def downgrade() -> None:
    """Drop the views and the function, unless the schema is somebody else's."""
    op.execute(_OURS)
    op.execute(f"DROP FUNCTION make_hive_views(), {', '.join(f'hive_{name}' for name in _HELPERS)}")
