"""Selection of partitions for a call, and reading them: as objects, or as the bytes that PostgreSQL keeps of each.

Every list is in the order of the names, as bytes. Nothing is locked. A short list is one statement; a long one is read
piece by piece in one snapshot, so that it takes no more memory than a piece (ADR 59).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from metastore.catalog.model import Table
from metastore.catalog.rules import partitions as rules
from metastore.catalog.rules.partitions import Partition
from metastore.catalog.store import partition_wires, partitions
from metastore.catalog.store.partition_wires import Piece
from metastore.config import CatalogSettings
from metastore.db import pieces
from metastore.db.engine import Database
from metastore.db.pieces import UNLIMITED, Asked, Pieces, Run, Sizes

EVERY = "true"
FIRST, MORE, WHOLE = 500, 700, 2000
"""Partitions in the first piece of a whole table, which is there soon, in each later piece, and in one that is all.

A list with conditions is mostly short: it is asked for as if it were one piece, and has that size.
"""


class Selection(NamedTuple):
    """The first ``limit`` partitions of a table, by name, that meet a condition on ``p``.

    ``unknown``: some are included because the condition could not be decided. ``is_limited``: the limit is
    ``metastore.limit.partition.request``.
    """

    table: Table
    condition: str = EVERY
    parameters: Sequence[Any] = ()
    limit: int = UNLIMITED
    unknown: bool = False
    is_limited: bool = True


@dataclass(frozen=True)
class _Wires:
    """The selected partitions as bytes: see `pieces.Listing`."""

    selection: Selection

    def piece(self, asked: Asked, after: str | None, most: int) -> Piece:
        selection = self.selection
        return partition_wires.select_piece(
            asked.binary, selection.table, selection.condition, selection.parameters, after or "", most
        )

    def count(self, run: Run, limit: int) -> int:
        selection = self.selection
        return partitions.count_partitions(run, selection.table, selection.condition, selection.parameters, limit)


@dataclass(frozen=True)
class PartitionLists:
    """A reader of selected partitions, whole or piece by piece."""

    db: Database
    settings: CatalogSettings

    def partitions(self, selection: Selection) -> list[Partition]:
        """Read a selection as objects: one statement, before it a count if there may be too many.

        Raises: as ``pieces``.
        """
        capped = self._capped(selection)
        if capped > self._most(selection) >= 0:
            self._require_within(selection, _Wires(selection).count(self.db.once, capped))
        return partitions.select_partitions(
            self.db.once, selection.table, selection.condition, selection.parameters, capped
        )

    def pieces(self, selection: Selection) -> Pieces[Piece]:
        """Read a selection as bytes. Raises: MetaError beyond the configured limit, before a long list is read."""
        return pieces.read(
            self.db,
            _Wires(selection),
            self._capped(selection),
            Sizes(FIRST if selection.condition == EVERY else WHOLE, MORE, WHOLE),
            lambda count: self._require_within(selection, count),
        )

    def _capped(self, selection: Selection) -> int:
        """Return the limit to read with: at most 1 more than the configured limit, to know that it is exceeded."""
        most, limit = self._most(selection), selection.limit
        return most + 1 if most >= 0 and (limit < 0 or limit > most) else limit

    def _require_within(self, selection: Selection, count: int) -> None:
        rules.require_within(self._most(selection), selection.limit, count, selection.table)

    def _most(self, selection: Selection) -> int:
        return self.settings.limit_partition_request if selection.is_limited else UNLIMITED
