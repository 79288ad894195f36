"""Answers that are sent while they are still being read, so that they take no more memory than a piece of them.

Rules: a client that keeps up gets each piece from the thread of its call. For a client that does not, the rest is read
at once into a file without a name, from which the event loop goes on sending: a slow reader keeps neither a thread nor
a connection with PostgreSQL (ADR 59).
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from metastore.db.pieces import Pieces
from metastore.thrift_server.wire.protocol import Kind

_FRAME = 4
"""Bytes of the length before a framed answer."""


def itself(elements: list[Any]) -> list[Any]:
    """Return the result that is a list and nothing else."""
    return elements


class InPieces(NamedTuple):
    """A stand-in for a result whose list is long, or whose map is: a list of its entries."""

    whole: Callable[[list[Any]], Any]
    """A function that makes the result from that list."""
    kind: Kind
    """The kind of the elements."""
    length: int
    pieces: AbstractContextManager[Iterable[bytes]]
    """The elements in the binary protocol, several at a time: ``length`` in all."""


def texts(pieces: Pieces[bytes], whole: Callable[[list[Any]], Any] = itself) -> InPieces:
    """Return a result whose list of texts is long."""
    return InPieces(whole, str, pieces.count, pieces)


def in_file(parts: Iterable[bytes | memoryview], *, framed: bool = False) -> memoryview:
    """Return the parts, one after the other, in a mapped file that takes no memory; ``framed``: behind their length."""
    with TemporaryFile() as file:
        file.write(bytes(_FRAME) if framed else b"")
        for part in parts:
            file.write(part)
        if framed:
            length = file.tell() - _FRAME
            file.seek(0)
            file.write(length.to_bytes(_FRAME))
        file.flush()
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
