"""Answers that are sent while they are still being read, so that they take no more memory than a piece of them.

Rules: a client that keeps up gets each piece from the thread of its call. For a client that does not, the rest is read
at once into a file without a name, from which the event loop goes on sending: a slow reader keeps neither a thread nor
a connection with PostgreSQL (ADR 59).
"""

import select
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from metastore.db.pieces import Pieces
from metastore.thrift_server.connection import ClientConnection
from metastore.thrift_server.protocol import Kind
from metastore.thrift_server.workers import Seats

_FRAME = 4
"""Bytes of the length before a framed answer."""
_PATIENCE_SECONDS = 2.0
"""How long an answer waits, in all, for a client that keeps up."""


def itself(elements: list[Any]) -> list[Any]:
    """The result that is a list and nothing else."""
    return elements


class InPieces(NamedTuple):
    """In the place of a result whose list is long, or whose map is: a list of its entries."""

    whole: Callable[[list[Any]], Any]
    """The result, from that list."""
    kind: Kind
    """What the elements are."""
    length: int
    pieces: AbstractContextManager[Iterable[bytes]]
    """The elements in the binary protocol, several at a time: ``length`` in all."""


def texts(pieces: Pieces[bytes], whole: Callable[[list[Any]], Any] = itself) -> InPieces:
    """A result whose list of texts is long."""
    return InPieces(whole, str, pieces.count, pieces)


class Sender:
    """Sends one answer from a thread of the pool."""

    def __init__(self, connection: ClientConnection, seats: Seats) -> None:
        self._connection, self._seats = connection, seats
        self._patience = _PATIENCE_SECONDS

    def send(self, data: bytes) -> memoryview | None:
        """What the client did not take in time (nothing, if it keeps up); None: it is gone."""
        connection, rest = self._connection, memoryview(data)
        while rest and not connection.closed:
            try:
                rest = rest[connection.sock.send(rest) :]
            except BlockingIOError:
                if self._patience <= 0:
                    return rest
                self._wait()
            except OSError:
                return None
        return None if connection.closed else rest

    def _wait(self) -> None:
        began = time.monotonic()
        poll = select.poll()
        poll.register(self._connection.fd, select.POLLOUT)
        with self._seats.aside():
            poll.poll(self._patience * 1000)
        self._patience -= time.monotonic() - began


def in_file(parts: Iterable[bytes | memoryview], *, framed: bool = False) -> memoryview:
    """The parts, one after the other, where they take no memory; ``framed``: behind their length."""
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
