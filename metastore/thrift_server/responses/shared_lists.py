"""Long lists that monitors and consoles ask for, often several at the same time: read once, and piece by piece.

A single client gets each piece as it comes. For several clients a list of more than a piece is written to a file
without a name, from which each of them is sent at its own speed: this takes no memory either.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

from metastore.db.pieces import Pieces
from metastore.thrift_server.responses.single_flight import SingleFlight
from metastore.thrift_server.responses.streamed import InPieces, in_file
from metastore.thrift_server.wire.protocol import Kind

Whole = Callable[[list[Any]], Any]


class _SharedReading(NamedTuple):
    """A list that is being read, or was; ``open``: for one client."""

    whole: Whole
    length: int
    open: Callable[[], AbstractContextManager[Iterable[bytes]]]


class SharedLists:
    """The lists of one kind of struct."""

    def __init__(self, kind: Kind) -> None:
        self._kind, self._readings = kind, SingleFlight[_SharedReading]()

    def answer(self, question: Hashable, read: Callable[[], tuple[Whole, Pieces[bytes]]]) -> InPieces:
        """Return the result, and its list, of a reading that begins from now on. Raises: the errors of ``read``."""
        reading = self._readings.answer(question, lambda clients: (_alone if clients == 1 else _for_several)(*read()))
        return InPieces(reading.whole, self._kind, reading.length, reading.open())


def _alone(whole: Whole, found: Pieces[bytes]) -> _SharedReading:
    return _SharedReading(whole, found.count, lambda: found)


def _for_several(whole: Whole, found: Pieces[bytes]) -> _SharedReading:
    with found:
        coming = iter(found)
        first, second = next(coming, b""), next(coming, None)
        if second is None:
            return _SharedReading(whole, found.count, lambda: nullcontext(iter((first,))))
        sizes: list[int] = []
        kept = in_file(_measured(chain((first, second), coming), sizes))
    ends = list(accumulate(sizes, initial=0))
    return _SharedReading(
        whole, found.count, lambda: nullcontext(bytes(kept[begin:end]) for begin, end in pairwise(ends))
    )


def _measured(pieces: Iterator[bytes], sizes: list[int]) -> Iterator[bytes]:
    for piece in pieces:
        sizes.append(len(piece))
        yield piece
