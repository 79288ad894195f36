"""Lists of tables, which may be long: they are read in pieces (``db.pieces``), names and lines as bytes for clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from metastore.catalog.model import Table
from metastore.catalog.store.tables import COLUMNS, table_of
from metastore.db import arrays, wires
from metastore.db.pieces import Asked, Run, Sizes
from metastore.db.wires import Field, Kind, TextList, WireList
from metastore.ids import DatabaseName

NAMES, METAS, TABLES = Sizes(130_000, 50_000, 130_000), Sizes(2000, 10_000, 10_000), Sizes(500, 1000, 1000)
"""Of the pieces of each list."""
_META = wires.struct(
    [
        Field(1, Kind.TEXT, "db"),
        Field(2, Kind.TEXT, "name"),
        Field(3, Kind.TEXT, "type"),
        Field(4, Kind.TEXT, "parameters ->> 'comment'", optional=True),
        Field(5, Kind.TEXT, "catalog"),
    ]
)
"""The line of a table list as clients get it."""


class TablePiece(NamedTuple):
    """Some tables of a database, by name."""

    tables: Sequence[Table]

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.tables)

    @property
    def last(self) -> str:
        """The name of the last."""
        return self.tables[-1].name.table


@dataclass(frozen=True)
class TableList:
    """The tables of a database that meet a condition on their rows: see `pieces.Listing`."""

    database: DatabaseName
    condition: str
    parameter: Any

    @classmethod
    def named(cls, database: DatabaseName, names: Sequence[str]) -> "TableList":
        """Those of these names that there are."""
        return cls(database, "name = ANY(%s::text[])", arrays.literal(names))

    @classmethod
    def matching(cls, database: DatabaseName, regex: str | None) -> "TableList":
        """Those whose name matches."""
        return cls(database, "name ~ %s", regex)

    def piece(self, asked: Asked, after: str | None, most: int) -> TablePiece:
        """See `pieces.Listing`."""
        rows = asked.rows(
            f"SELECT {COLUMNS} FROM tables WHERE catalog = %s AND db = %s AND name > %s AND {self.condition} "
            "ORDER BY name LIMIT %s",
            (*self.database, after or "", self.parameter, most),
        )
        return TablePiece([table_of(row) for row in rows])

    def count(self, run: Run, limit: int) -> int:
        """See `pieces.Listing`."""
        [(count,)] = run(
            "SELECT count(*) FROM (SELECT FROM tables WHERE catalog = %s AND db = %s "
            f"AND {self.condition} LIMIT %s) AS listed",
            (*self.database, self.parameter, None if limit < 0 else limit),
        )
        return int(count)


def names(database: DatabaseName, regex: str | None, kind: str | None) -> TextList:
    """The names of a database's tables; None: whatever the name, the type."""
    return TextList(
        "tables WHERE catalog = %s AND db = %s AND (%s::text IS NULL OR name ~ %s) AND (%s::text IS NULL OR type = %s)",
        (*database, regex, regex, kind, kind),
        "name",
    )


def metas(catalog: str, db_regex: str | None, regex: str | None, kinds: Sequence[str]) -> WireList:
    """Lines of a table list; None and empty: whatever the database, the name, the type."""
    return WireList(
        "tables WHERE catalog = %s AND (%s::text IS NULL OR db ~ %s) AND (%s::text IS NULL OR name ~ %s) "
        "AND (%s::text[] = '{}' OR type = ANY(%s::text[]))",
        (catalog, db_regex, db_regex, regex, regex, list(kinds), list(kinds)),
        _META,
        ["db", "name"],
    )
