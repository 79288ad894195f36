"""Column statistics of partitions as bytes: what PostgreSQL keeps of each column in Thrift's binary protocol.

An entry is the name of a partition and the list of its columns; partitions without statistics have none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from metastore.db import arrays, wires
from metastore.db.engine import Database, PgTx, Row
from metastore.db.pieces import TURN, Pieces
from metastore.db.statements import Statements
from metastore.ids import TableName

ROWS_IN_PIECE = 10_000
_SQL = Statements(__file__)
_TABLE_ID = "SELECT id FROM tables WHERE catalog = %(catalog)s AND db = %(db)s AND name = %(table)s"
_PIECE = _SQL.text("piece", asked=wires.text("a.asked"), table_id=_TABLE_ID)
_COUNT = _SQL.text("count", table_id=_TABLE_ID)


@dataclass(frozen=True)
class StatisticsList:
    """The statistics that are asked for; ``partitions``: their names as they were asked for, by canonical name."""

    table: TableName
    partitions: Mapping[str, str]
    columns: Sequence[str]
    engine: str

    def read(self, db: Database) -> Pieces[bytes]:
        """The entries. A list of one piece is one statement; a longer one is of one snapshot."""
        names = list(self.partitions)
        most = max(1, ROWS_IN_PIECE // max(1, len(self.columns)))
        if len(names) <= most:
            count, encoded = self._piece(db.binary, names)
            return Pieces(count, iter((encoded,)), ExitStack())
        with ExitStack() as opened:
            pg = opened.enter_context(db.begin(snapshot=True))
            [(count,)] = pg.sql(_COUNT, self._values(names))
            if not count:
                return Pieces(0, iter(()), ExitStack())
            parts = (names[at : at + most] for at in range(0, len(names), most))
            return Pieces(count, self._pieces(pg, parts), opened.pop_all())

    def _pieces(self, pg: PgTx, parts: Iterable[Sequence[str]]) -> Iterator[bytes]:
        for names in parts:
            with TURN:
                _, encoded = self._piece(pg.binary, names)
            yield encoded

    def _piece(self, binary: Callable[..., Row], names: Sequence[str]) -> tuple[int, bytes]:
        count, encoded = binary(_PIECE, self._values(names))
        return int.from_bytes(count), encoded

    def _values(self, names: Sequence[str]) -> dict[str, str]:
        return {
            "catalog": self.table.catalog,
            "db": self.table.db,
            "table": self.table.table,
            "engine": self.engine,
            "columns": arrays.literal(self.columns),
            "partitions": arrays.literal(names),
            "asked": arrays.literal([self.partitions[name] for name in names]),
        }
