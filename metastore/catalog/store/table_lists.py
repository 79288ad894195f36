"""Lists of tables, which may be long: they are read in pieces (``db.pieces``), names and lines as bytes for clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from metastore.catalog.model import USER, Table, TableType
from metastore.catalog.rules.names import is_prefix, only_name, pattern_range, pattern_regex
from metastore.catalog.store.tables import COLUMNS, table_of
from metastore.db import arrays, wires
from metastore.db.pieces import Asked, Run, Sizes
from metastore.db.wires import TextList, ThriftField, WireList, Wires, WireType
from metastore.ids import DatabaseName

NAMES, METAS, TABLES = Sizes(130_000, 50_000, 130_000), Sizes(20_000, 20_000, 20_000), Sizes(500, 1000, 1000)
"""Of the pieces of each list."""
_META = wires.struct(
    [
        ThriftField(1, WireType.TEXT, "db"),
        ThriftField(2, WireType.TEXT, "name"),
        ThriftField(3, WireType.TEXT, "type"),
        ThriftField(4, WireType.TEXT, "parameters ->> 'comment'", optional=True),
        ThriftField(5, WireType.TEXT, "catalog"),
        ThriftField(6, WireType.TEXT, "owner", optional=True),
        ThriftField(7, WireType.I32, f"coalesce(nullif(owner_type, 0), {USER})"),
    ]
)
"""The line of a table list as clients get it."""
_SHAPE = [
    ThriftField(1, WireType.TEXT, "name"),
    ThriftField(2, WireType.TEXT, "db"),
    ThriftField(3, WireType.TEXT, "owner", optional=True),
    ThriftField(4, WireType.I32, "create_time"),
    ThriftField(5, WireType.I32, "last_access_time"),
    ThriftField(6, WireType.I32, "retention"),
    ThriftField(9, WireType.TEXTS, "parameters"),
    ThriftField(10, WireType.TEXT, "view_original_text", optional=True),
    ThriftField(11, WireType.TEXT, "view_expanded_text", optional=True),
    ThriftField(12, WireType.TEXT, "type"),
    ThriftField(15, WireType.BOOL, "rewrite_enabled"),
    ThriftField(17, WireType.TEXT, "catalog"),
    ThriftField(18, WireType.I32, f"coalesce(nullif(owner_type, 0), {USER})"),
    ThriftField(19, WireType.I64, "greatest(write_id, 0)"),
    ThriftField(25, WireType.I64, "id"),
]
_LOCATION = rf"coalesce('\x0b0002'::bytea || {wires.text('location')}, ''::bytea) || '\x00'::bytea"
_WIRE = (
    f"CASE WHEN type = '{TableType.MATERIALIZED_VIEW}' AND creation_metadata IS NOT NULL THEN NULL "
    f"ELSE coalesce(wire, table_wire(sd, partition_keys)) || {_LOCATION} || {wires.struct(_SHAPE)} END"
)
"""A table as clients get it: what PostgreSQL keeps of it ends within its descriptor, before the location.

Null for a materialized view: of what its query reads nobody knows the depth.
"""


class TablePiece(NamedTuple):
    """Some tables of a database, by name."""

    tables: Sequence[Table]

    @property
    def size(self) -> int:
        """The number of tables."""
        return len(self.tables)

    @property
    def last(self) -> Sequence[str]:
        """The name of the last table."""
        return [self.tables[-1].name.table]


_NAME_MATCHES = (
    "name >= %s AND (%s::text IS NULL OR name < %s) AND (%s::text IS NULL OR name ~ %s)"  # The index's range first.
)


@dataclass(frozen=True)
class TableList:
    """The tables of a database that meet a condition on their rows: see `pieces.Listing`."""

    database: DatabaseName
    condition: str
    values: Sequence[str | None]
    """The parameters of the condition."""

    @classmethod
    def named(cls, database: DatabaseName, names: Sequence[str]) -> "TableList":
        """Return the list of existing tables among these names."""
        return cls(database, "name = ANY(%s::text[])", [arrays.literal(names)])

    @classmethod
    def matching(cls, database: DatabaseName, pattern: str | None) -> "TableList":
        """Return the list of tables whose names match."""
        return cls(database, _NAME_MATCHES, _matching(pattern))

    def piece(self, asked: Asked, after: Sequence[str] | None, most: int) -> TablePiece:
        """Read a piece: see `pieces.Listing`."""
        rows = asked.rows(self.selecting(COLUMNS), self.parameters(after, most))
        return TablePiece([table_of(row) for row in rows])

    def selecting(self, columns: str) -> str:
        """Return the query for these columns of a piece."""
        return (
            f"SELECT {columns} FROM tables WHERE catalog = %s AND db = %s AND name > %s AND {self.condition} "
            "ORDER BY name LIMIT %s"
        )

    def parameters(self, after: Sequence[str] | None, most: int) -> Sequence[Any]:
        """Return the parameters of that query."""
        return (*self.database, *(after or [""]), *self.values, most)

    def count(self, run: Run, limit: int) -> int:
        """Count the tables: see `pieces.Listing`."""
        [(count,)] = run(
            "SELECT count(*) FROM (SELECT FROM tables WHERE catalog = %s AND db = %s "
            f"AND {self.condition} LIMIT %s) AS listed",
            (*self.database, *self.values, None if limit < 0 else limit),
        )
        return int(count)


@dataclass(frozen=True)
class TableWires:
    """The same tables as bytes for clients: see `pieces.Listing`. A piece with a materialized view is of objects."""

    tables: TableList

    def piece(self, asked: Asked, after: Sequence[str] | None, most: int) -> Wires | TablePiece:
        """Read a piece: see `pieces.Listing`."""
        encoded_rows = self.tables.selecting(f"name, {_WIRE} AS wire")
        size, encoded, last, left_out = asked.binary(
            "SELECT int4send(count(*)::int), coalesce(string_agg(wire, ''::bytea), ''::bytea), max(name), "
            f"int4send((count(*) - count(wire))::int) FROM ({encoded_rows}) AS listed",
            self.tables.parameters(after, most),
        )
        if any(left_out):
            return self.tables.piece(asked, after, most)
        return Wires(int.from_bytes(size), encoded, [last and last.decode()])

    def count(self, run: Run, limit: int) -> int:
        """Count the tables: see `pieces.Listing`."""
        return self.tables.count(run, limit)


def names(database: DatabaseName, pattern: str | None, kind: str | None) -> TextList:
    """Return the names of a database's tables; None: any name, any type."""
    return TextList(
        f"tables WHERE catalog = %s AND db = %s AND {_NAME_MATCHES} AND (%s::text IS NULL OR type = %s)",
        (*database, *_matching(pattern), kind, kind),
        "name",
    )


def metas(catalog: str, db_pattern: str | None, pattern: str | None, kinds: Sequence[str]) -> WireList:
    """Return the table list of get_table_meta. A pattern of None matches any name; empty ``kinds`` match any type."""
    db = only_name(db_pattern)
    db_regex = pattern_regex(db_pattern) if db is None else None
    return WireList(
        "tables WHERE catalog = %s AND (%s::text IS NULL OR db = %s) AND (%s::text IS NULL OR db ~ %s) "
        f"AND {_NAME_MATCHES} AND (%s::text[] = '{{}}' OR type = ANY(%s::text[]))",
        (catalog, db, db, db_regex, db_regex, *_matching(pattern), list(kinds), list(kinds)),
        _META,
        ["db", "name"],
    )


def _matching(pattern: str | None) -> Sequence[str | None]:
    """Return the values of ``_NAME_MATCHES``."""
    (first, end), regex = pattern_range(pattern), None if is_prefix(pattern) else pattern_regex(pattern)
    return first, end, end, regex, regex
