"""Descriptors of tables and statistics of columns as they go to clients, beside the JSON that they are made of."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def _text(value: str) -> str:
    return f"int4send(octet_length({value})) || convert_to({value}, 'UTF8')"


def _field(head: str, value: str) -> str:
    """A field that is left out where its value is null: its type and id, and the value's bytes."""
    return rf"coalesce('\x{head}'::bytea || {value}, ''::bytea)"


def _texts(value: str) -> str:
    """A list of texts. An element of JSON has its place, by which the list is in order."""
    return (
        rf"'\x0b'::bytea || int4send(jsonb_array_length({value})) || (SELECT coalesce(string_agg({_text('v')}, '' "
        f"ORDER BY n), '') FROM jsonb_array_elements_text({value}) WITH ORDINALITY AS u (v, n))"
    )


def _structs(value: str, element: str) -> str:
    """A list of structs; ``element``: of what is called ``v``."""
    return (
        rf"'\x0c'::bytea || int4send(jsonb_array_length({value})) || (SELECT coalesce(string_agg({element} || '\x00'::bytea, "
        f"'' ORDER BY n), '') FROM jsonb_array_elements({value}) WITH ORDINALITY AS u (v, n))"
    )


def _map(value: str) -> str:
    return (
        r"'\x0b0b'::bytea || (SELECT int4send(count(*)::int) || coalesce(string_agg("
        f"{_text('key')} || {_text('value')}, ''), '') FROM jsonb_each_text({value}) HAVING {value} IS NOT NULL)"
    )


def _number(head: str, name: str, of: str = "f") -> str:
    return _field(head, f"int8send(({of} ->> '{name}')::bigint)")


def _double(head: str, name: str) -> str:
    return _field(head, f"float8send((f ->> '{name}')::float8)")


def _bytes(head: str, name: str, of: str = "f") -> str:
    decoded = f"decode({of} ->> '{name}', 'base64')"
    return _field(head, f"int4send(octet_length({decoded})) || {decoded}")


def _both(first: str, second: str) -> str:
    return f"{first} || {second}"


def _struct_of_a_number(head: str, name: str, number: str) -> str:
    return _field(head, rf"'\x0a0001'::bytea || int8send((f -> '{name}' ->> '{number}')::bigint) || '\x00'::bytea")


def _decimal(head: str, name: str) -> str:
    unscaled = f"decode(f -> '{name}' ->> 'unscaled', 'base64')"
    return _field(
        head,
        rf"'\x0b0001'::bytea || int4send(octet_length({unscaled})) || {unscaled} || '\x060003'::bytea || "
        rf"int2send((f -> '{name}' ->> 'scale')::smallint) || '\x00'::bytea",
    )


# FieldSchema: name, type, comment. Order: col, order.
_COLUMN = " || ".join(
    (
        _field("0b0001", _text("(v ->> 'name')")),
        _field("0b0002", _text("(v ->> 'type')")),
        _field("0b0003", _text("(v ->> 'comment')")),
    )
)
_ORDER = _both(_field("0b0001", _text("(v ->> 'col')")), _field("080002", "int4send((v ->> 'order')::int)"))
_SERDE = " || ".join(
    (
        _field("0b0001", _text("(serde ->> 'name')")),
        _field("0b0002", _text("(serde ->> 'serializationLib')")),
        _field("0d0003", _map("serde -> 'parameters'")),
        _field("0b0004", _text("(serde ->> 'description')")),
        _field("0b0005", _text("(serde ->> 'serializerClass')")),
        _field("0b0006", _text("(serde ->> 'deserializerClass')")),
        _field("080007", "int4send((serde ->> 'serdeType')::int)"),
        r"'\x00'::bytea",
    )
)
# Values of skewed columns are lists, and so are the keys of the map of their locations.
_LISTS = (
    r"'\x0f'::bytea || int4send(jsonb_array_length({0})) || (SELECT coalesce(string_agg({1}, '' ORDER BY n), '') "
    "FROM jsonb_array_elements({0}) WITH ORDINALITY AS l (item, n))"
)
_PAIRS = (
    r"'\x0f0b'::bytea || int4send(jsonb_array_length({0})) || (SELECT coalesce(string_agg({1}, '' ORDER BY n), '') "
    "FROM jsonb_array_elements({0}) WITH ORDINALITY AS l (item, n))"
)
_SKEWED = " || ".join(
    (
        _field("0f0001", _texts("skewed -> 'skewedColNames'")),
        _field("0f0002", _LISTS.format("(skewed -> 'skewedColValues')", _texts("item"))),
        _field(
            "0d0003",
            _PAIRS.format(
                "(skewed -> 'skewedColValueLocationMaps')", f"{_texts('item -> 0')} || {_text('(item ->> 1)')}"
            ),
        ),
        r"'\x00'::bytea",
    )
)
_TABLE = " || ".join(
    (
        r"'\x0f0008'::bytea",
        _structs("partition_keys", _COLUMN),
        r"'\x0c0007'::bytea",
        _field("0f0001", _structs("sd -> 'cols'", _COLUMN)),
        _field("0b0003", _text("(sd ->> 'inputFormat')")),
        _field("0b0004", _text("(sd ->> 'outputFormat')")),
        _field(
            "020005", r"CASE sd ->> 'compressed' WHEN 'true' THEN '\x01'::bytea WHEN 'false' THEN '\x00'::bytea END"
        ),
        _field("080006", "int4send((sd ->> 'numBuckets')::int)"),
        rf"CASE WHEN serde IS NULL THEN ''::bytea ELSE '\x0c0007'::bytea || {_SERDE} END",
        _field("0f0008", _texts("sd -> 'bucketCols'")),
        _field("0f0009", _structs("sd -> 'sortCols'", _ORDER)),
        _field("0d000a", _map("sd -> 'parameters'")),
        rf"CASE WHEN skewed IS NULL THEN ''::bytea ELSE '\x0c000b'::bytea || {_SKEWED} END",
        _field(
            "02000c",
            r"CASE sd ->> 'storedAsSubDirectories' WHEN 'true' THEN '\x01'::bytea WHEN 'false' THEN '\x00'::bytea END",
        ),
    )
)
_BOUNDS = {
    "boolean": _both(_number("0a0001", "numTrues"), _number("0a0002", "numFalses")),
    "long": _both(_number("0a0001", "lowValue"), _number("0a0002", "highValue")),
    "double": _both(_double("040001", "lowValue"), _double("040002", "highValue")),
    "string": _both(_number("0a0001", "maxColLen"), _double("040002", "avgColLen")),
    "binary": _both(_number("0a0001", "maxColLen"), _double("040002", "avgColLen")),
    "decimal": _both(_decimal("0c0001", "lowValue"), _decimal("0c0002", "highValue")),
    "date": _both(
        _struct_of_a_number("0c0001", "lowValue", "daysSinceEpoch"),
        _struct_of_a_number("0c0002", "highValue", "daysSinceEpoch"),
    ),
    "timestamp": _both(
        _struct_of_a_number("0c0001", "lowValue", "secondsSinceEpoch"),
        _struct_of_a_number("0c0002", "highValue", "secondsSinceEpoch"),
    ),
}
"""What differs between the kinds of statistics, in the order of their ids in the union."""
_REST = " || ".join(
    (
        _number("0a0003", "numNulls"),
        _number("0a0004", "numDVs"),
        _bytes("0b0005", "bitVectors"),
        _bytes("0b0006", "histogram"),
    )
)
_REST_OF_FEW = _both(_number("0a0003", "numNulls"), _bytes("0b0004", "bitVectors"))
"""Those of booleans and of bytes know of no distinct values."""


def _kinds() -> str:
    return "\n".join(
        rf"WHEN data ? '{kind}Stats' THEN f := data -> '{kind}Stats'; "
        rf"wire := wire || '\x0c{number:04x}'::bytea || {bounds} || "
        rf"{_REST_OF_FEW if kind in ('boolean', 'binary') else _REST} || '\x00'::bytea;"
        for number, (kind, bounds) in enumerate(_BOUNDS.items(), 1)
    )


_DESCRIPTOR = f"""
CREATE FUNCTION table_wire(sd jsonb, partition_keys jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    serde jsonb := sd -> 'serdeInfo';
    skewed jsonb := sd -> 'skewedInfo';
BEGIN
    RETURN {_TABLE};
END $$;
CREATE FUNCTION set_table_wire() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.wire := table_wire(NEW.sd, NEW.partition_keys); RETURN NEW; END $$;
CREATE TRIGGER tables_wire BEFORE INSERT ON tables FOR EACH ROW EXECUTE FUNCTION set_table_wire();
-- Most changes of a table are of its parameters alone.
CREATE TRIGGER tables_wire_again BEFORE UPDATE OF sd, partition_keys ON tables FOR EACH ROW
    WHEN (OLD.wire IS NULL OR OLD.sd <> NEW.sd OR OLD.partition_keys <> NEW.partition_keys)
    EXECUTE FUNCTION set_table_wire()"""
_STATISTICS = rf"""
CREATE FUNCTION column_statistics_wire("column" text, type text, data jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    f jsonb;
    wire bytea := '\x0b0001'::bytea || {_text('"column"')} || {_field("0b0002", _text("type"))} || '\x0c0003'::bytea;
BEGIN
    CASE
{_kinds()}
    ELSE NULL;
    END CASE;
    RETURN wire || '\x0000'::bytea;
END $$;
CREATE FUNCTION set_column_statistics_wire() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.wire := column_statistics_wire(NEW."column", NEW.type, NEW.data); RETURN NEW; END $$;
CREATE TRIGGER column_statistics_wire BEFORE INSERT OR UPDATE OF "column", type, data ON column_statistics
    FOR EACH ROW EXECUTE FUNCTION set_column_statistics_wire()"""


def upgrade() -> None:
    """Triggers write the columns, so that they are right whichever release writes a row. Rows that are there stay as
    they are: whoever reads one of those encodes it."""
    op.execute("ALTER TABLE tables ADD wire bytea")
    op.execute("ALTER TABLE column_statistics ADD wire bytea")
    op.get_bind().exec_driver_sql(_DESCRIPTOR)
    op.get_bind().exec_driver_sql(_STATISTICS)


def downgrade() -> None:
    """Nothing but a copy is lost."""
    op.execute("DROP TRIGGER tables_wire ON tables; DROP TRIGGER tables_wire_again ON tables")
    op.execute("DROP TRIGGER column_statistics_wire ON column_statistics")
    op.execute("DROP FUNCTION set_table_wire; DROP FUNCTION set_column_statistics_wire")
    op.execute("DROP FUNCTION table_wire; DROP FUNCTION column_statistics_wire")
    op.execute("ALTER TABLE tables DROP wire")
    op.execute("ALTER TABLE column_statistics DROP wire")
