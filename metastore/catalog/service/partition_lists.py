"""Which partitions a call is about, and how they are read: as objects, or as the bytes that PostgreSQL keeps of each.

Every list is in the order of the names, as bytes. Nothing is locked. A short list is one statement; a long one is read
piece by piece in one snapshot, so that it takes no more memory than a piece (ADR 59).
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

from metastore.catalog.model import Table
from metastore.catalog.rules import partitions as rules
from metastore.catalog.rules.partitions import UNLIMITED, Partition
from metastore.catalog.store import partition_wires, partitions
from metastore.catalog.store.partition_wires import Piece
from metastore.config import CatalogSettings
from metastore.db.engine import Database, PgTx

FIRST, MORE = 500, 2000
"""Partitions in the first piece, which is there soon, and in each later piece."""


class Selection(NamedTuple):
    """The first ``limit`` partitions of a table, by name, that meet a condition on ``p``.

    ``unknown``: some are there because nobody could tell. ``is_limited``: by ``metastore.limit.partition.request``.
    """

    table: Table
    condition: str = "true"
    parameters: Sequence[Any] = ()
    limit: int = UNLIMITED
    unknown: bool = False
    is_limited: bool = True


class Pieces:
    """The bytes of ``count`` partitions. Close it in the thread that made it, with the error if there was any."""

    def __init__(self, count: int, pieces: Iterator[Piece], opened: ExitStack) -> None:
        self.count, self._pieces, self._opened = count, pieces, opened

    def __iter__(self) -> Iterator[Piece]:
        return self._pieces

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        """Raises: the error of PostgreSQL, in the domain's words."""
        self._opened.__exit__(kind, error, stack)


@dataclass(frozen=True)
class PartitionLists:
    """Reads what is selected."""

    db: Database
    settings: CatalogSettings

    def partitions(self, selection: Selection) -> list[Partition]:
        """As objects: one statement.  Raises: MetaError beyond the configured limit."""
        selected = partitions.select_partitions(
            self.db.once, selection.table, selection.condition, selection.parameters, self._capped(selection)
        )
        self._require_within(selection, len(selected))
        return selected

    def pieces(self, selection: Selection) -> Pieces:
        """As bytes.  Raises: MetaError beyond the configured limit, before anything long is read.

        A list that fits into the first piece, or that has a limit within one piece, costs a single round trip. Only a
        full first piece shows that there is more: then the snapshot reads that piece again, since the first is of
        another instant.
        """
        limit = self._capped(selection)
        most = limit if 0 <= limit <= MORE else FIRST
        piece = partition_wires.select_piece(
            self.db.once, selection.table, selection.condition, selection.parameters, "", most
        )
        count = 0 if piece is None else len(piece.lengths)
        self._require_within(selection, count)
        if count < most or count == limit:
            return Pieces(count, iter(() if piece is None else (piece,)), ExitStack())
        with ExitStack() as opened:
            pg = opened.enter_context(self.db.begin(snapshot=True))
            count = partitions.count_partitions(
                pg.sql, selection.table, selection.condition, selection.parameters, limit
            )
            self._require_within(selection, count)
            return Pieces(count, _all(pg, selection, count), opened.pop_all())

    def _capped(self, selection: Selection) -> int:
        """Read at most 1 more than the configured limit, to know that it is exceeded."""
        most, limit = self._most(selection), selection.limit
        return most + 1 if most >= 0 and (limit < 0 or limit > most) else limit

    def _require_within(self, selection: Selection, count: int) -> None:
        rules.require_within(self._most(selection), selection.limit, count, selection.table)

    def _most(self, selection: Selection) -> int:
        return self.settings.limit_partition_request if selection.is_limited else UNLIMITED


def _all(pg: PgTx, selection: Selection, count: int) -> Iterator[Piece]:
    after, most = "", FIRST
    while count > 0:
        piece = partition_wires.select_piece(
            pg.sql, selection.table, selection.condition, selection.parameters, after, min(most, count)
        )
        if piece is None:
            raise AssertionError(f"{count} partitions have gone from a snapshot of {selection.table.name}")
        yield piece
        after, most, count = piece.last, MORE, count - len(piece.lengths)
