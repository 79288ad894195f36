"""The line of a table in lists, as clients get it."""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def _text(head: str, value: str) -> str:
    return rf"'\x{head}'::bytea || int4send(octet_length({value})) || convert_to({value}, 'UTF8')"


_FIELDS = " || ".join(
    (
        _text("0b0001", "db"),
        _text("0b0002", "name"),
        _text("0b0003", "type"),
        f"coalesce({_text('0b0004', 'comment')}, ''::bytea)",
        _text("0b0005", "catalog"),
        r"'\x00'::bytea",
    )
)
_CHANGED = " OR ".join(f"OLD.{column} <> NEW.{column}" for column in ("catalog", "db", "name", "type"))
_FUNCTIONS = f"""
CREATE FUNCTION table_meta(catalog text, db text, name text, type text, comment text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN {_FIELDS};
CREATE FUNCTION set_table_meta() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.meta := table_meta(NEW.catalog, NEW.db, NEW.name, NEW.type, NEW.parameters ->> 'comment');
    RETURN NEW;
END $$;
CREATE TRIGGER tables_meta BEFORE INSERT ON tables FOR EACH ROW EXECUTE FUNCTION set_table_meta();
CREATE TRIGGER tables_meta_again BEFORE UPDATE OF catalog, db, name, type, parameters ON tables FOR EACH ROW
    WHEN (OLD.meta IS NULL OR {_CHANGED} OR OLD.parameters ->> 'comment' IS DISTINCT FROM NEW.parameters ->> 'comment')
    EXECUTE FUNCTION set_table_meta()"""


def upgrade() -> None:
    """Triggers write the column, so that it is right whichever release writes a row. Rows that are there stay as they
    are: whoever reads one of those encodes it."""
    op.execute("ALTER TABLE tables ADD meta bytea")
    op.get_bind().exec_driver_sql(_FUNCTIONS)


def downgrade() -> None:
    """Nothing but a copy is lost."""
    op.execute("DROP TRIGGER tables_meta ON tables; DROP TRIGGER tables_meta_again ON tables")
    op.execute("DROP FUNCTION set_table_meta; DROP FUNCTION table_meta")
    op.execute("ALTER TABLE tables DROP meta")
