"""Long lists, read piece by piece in the order of a key, so that they take no more memory than a piece (ADR 59).

A list that fits into its first piece is one statement. Only a full first piece shows that there is more: then the list
is counted and read in a snapshot, with that piece read again, since the first was of another instant. Long lists take
turns with each piece: many at a time would keep short calls from the processors.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from threading import Semaphore
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from metastore.db.engine import Database, Row

UNLIMITED = -1
AT_A_TIME = 2
"""Pieces behind the first that a process reads at a time: enough to keep the interpreter busy with them (ADR 59)."""
TURN = Semaphore(AT_A_TIME)
"""The turns of readers of such a piece, held until PostgreSQL has answered."""
Run = Callable[..., list[Row]]
"""A function that runs SQL: ``pg.sql`` inside a PostgreSQL transaction, or ``db.once`` if one statement is enough."""


class Asked(NamedTuple):
    """The way in which a list is read: inside a PostgreSQL transaction, or by one statement."""

    rows: Run
    binary: Callable[..., Row]
    """``pg.binary`` or ``db.binary``."""


class Sizes(NamedTuple):
    """The numbers of rows in pieces."""

    first: int
    """The size of the first piece, which arrives soon."""
    more: int
    """The size of each later piece."""
    whole: int
    """The size of a list that fits into one piece."""


class PieceOfRows(Protocol):
    """Some rows of a list."""

    @property
    def size(self) -> int:
        """The number of rows."""

    @property
    def last(self) -> Any:
        """The key of the last row."""


P = TypeVar("P", bound=PieceOfRows)
P_co = TypeVar("P_co", bound=PieceOfRows, covariant=True)
T = TypeVar("T")
U = TypeVar("U")


class OrderedRows(Protocol[P_co]):
    """Rows in the order of a key."""

    def piece(self, asked: Asked, after: Any, most: int) -> P_co:
        """Return the first rows behind a key; None: the very first."""

    def count(self, run: Run, limit: int) -> int:
        """Count the rows, up to the limit unless that is negative."""


class Pieces(Generic[T]):
    """A list of ``count`` rows in pieces. Close it in the thread that made it, with the error if there was any."""

    def __init__(self, count: int, pieces: Iterator[T], opened: ExitStack) -> None:
        self.count, self._pieces, self._opened = count, pieces, opened

    def of(self, convert: Callable[[T], U]) -> "Pieces[U]":
        """Return the same list with each piece converted as it comes; the new list replaces this one."""
        return Pieces(self.count, map(convert, self._pieces), self._opened)

    def flattened(self, convert: Callable[[T], Iterable[U]]) -> "Pieces[U]":
        """Return the same list with several pieces made of each as it comes; the new list replaces this one."""
        return Pieces(self.count, chain.from_iterable(map(convert, self._pieces)), self._opened)

    def __iter__(self) -> Iterator[T]:
        return self._pieces

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        """Close the list. Raises: the error of PostgreSQL, in the domain's words."""
        self._opened.__exit__(kind, error, stack)


def _anything(_count: int) -> None:
    """Accept a list of any length."""


def read(
    db: Database, listing: OrderedRows[P], limit: int, sizes: Sizes, require: Callable[[int], None] = _anything
) -> Pieces[P]:
    """Return the first ``limit`` rows, all if that is negative.

    ``require`` raises if there are too many, before a long list is read.
    """
    most = limit if 0 <= limit <= sizes.whole else sizes.first
    piece = listing.piece(Asked(db.once, db.binary), None, most)
    require(piece.size)
    if piece.size < most or piece.size == limit:
        return Pieces(piece.size, iter((piece,)), ExitStack())
    with ExitStack() as opened:
        pg = opened.enter_context(db.begin(snapshot=True))
        asked = Asked(pg.sql, pg.binary)
        count = listing.count(pg.sql, limit)
        require(count)
        return Pieces(count, _all(asked, listing, count, sizes), opened.pop_all())


def _all(asked: Asked, listing: OrderedRows[P], count: int, sizes: Sizes) -> Iterator[P]:
    after, most = None, sizes.first
    while count > 0:
        with TURN:
            piece = listing.piece(asked, after, min(most, count))
        if not piece.size:
            raise AssertionError(f"{count} rows have gone from a snapshot of {listing}")
        yield piece
        after, most, count = piece.last, sizes.more, count - piece.size
