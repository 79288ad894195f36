"""Column statistics of partitions as the bytes that PostgreSQL keeps of each column in Thrift's binary protocol.

An entry is the name of a partition and the list of its columns; partitions without statistics have none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from metastore.catalog.model import StatisticsOrigin
from metastore.db import arrays, wires
from metastore.db.engine import Database, PgTx, Row
from metastore.db.pieces import TURN, Pieces
from metastore.db.statements import Statements
from metastore.ids import TableName

ROWS_IN_PIECE = 10_000
_SQL = Statements(__file__)
_TABLE_ID = "SELECT id FROM tables WHERE catalog = %(catalog)s AND db = %(db)s AND name = %(table)s"
_WANTED = """s."column" = ANY(%(columns)s::text[]) AND s.engine = %(engine)s
    AND (%(write_ids)s::bigint[] IS NULL OR s.write_id IS NULL OR s.write_id = ANY(%(write_ids)s::bigint[]))"""
_PIECE = _SQL.text("piece", asked=wires.text("a.asked"), table_id=_TABLE_ID, wanted=_WANTED)
_COUNT = _SQL.text("count", table_id=_TABLE_ID, wanted=_WANTED)
_ORIGINS = _SQL.text("origins", wanted=_WANTED)


@dataclass(frozen=True)
class StatisticsList:
    """A request for statistics; ``partitions``: the requested names, by canonical name."""

    table: TableName
    partitions: Mapping[str, str]
    columns: Sequence[str]
    engine: str
    write_ids: Sequence[int] | None = None
    """The write ids up to one of which statistics must describe, if that is known; None: any statistics."""

    def only(self, origins: Iterable[StatisticsOrigin]) -> "StatisticsList":
        """Return the list of only those statistics that have one of these origins."""
        return replace(self, write_ids=[origin.write_id for origin in origins if origin.write_id is not None])

    def origins(self, pg: PgTx) -> tuple[bool, dict[StatisticsOrigin, int]] | None:
        """Return True if the table is transactional, and how many statistics have each origin.

        None without the table.
        """
        rows = pg.sql(_ORIGINS, self._values(list(self.partitions)))
        counts = {StatisticsOrigin(write_id, is_whole): count for _, write_id, is_whole, count in rows if count}
        return next(((transactional, counts) for transactional, *_ in rows), None)

    def read(self, db: Database) -> Pieces[bytes]:
        """Return the entries. A list of one piece is one statement; a longer one is of one snapshot."""
        if len(self.partitions) <= self._most:
            count, encoded = self._piece(db.binary, list(self.partitions))
            return Pieces(count, iter((encoded,)), ExitStack())
        with ExitStack() as opened:
            return self.within(opened.enter_context(db.begin(snapshot=True)), opened)

    def within(self, pg: PgTx, opened: ExitStack) -> Pieces[bytes]:
        """Return the entries. ``opened``: holds the snapshot's transaction, and is closed with the entries."""
        [(count,)] = pg.sql(_COUNT, self._values(list(self.partitions)))
        return Pieces(count, self._pieces(pg), opened.pop_all()) if count else Pieces(0, iter(()), ExitStack())

    @property
    def _most(self) -> int:
        """The number of partitions in a piece."""
        return max(1, ROWS_IN_PIECE // max(1, len(self.columns)))

    def _pieces(self, pg: PgTx) -> Iterator[bytes]:
        names = list(self.partitions)
        for at in range(0, len(names), self._most):
            with TURN:
                _, encoded = self._piece(pg.binary, names[at : at + self._most])
            yield encoded

    def _piece(self, binary: Callable[..., Row], names: Sequence[str]) -> tuple[int, bytes]:
        count, encoded = binary(_PIECE, self._values(names))
        return int.from_bytes(count), encoded

    def _values(self, names: Sequence[str]) -> dict[str, str | None]:
        return {
            "catalog": self.table.catalog,
            "db": self.table.db,
            "table": self.table.table,
            "engine": self.engine,
            "write_ids": None if self.write_ids is None else arrays.bigints(self.write_ids),
            "columns": arrays.literal(self.columns),
            "partitions": arrays.literal(names),
            "asked": arrays.literal([self.partitions[name] for name in names]),
        }
