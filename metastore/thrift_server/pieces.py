"""Answers that are sent while they are still being read, so that they take no more memory than a piece of them.

Rules: a client that keeps up gets each piece from the thread of its call. For a client that does not, the rest is read
at once into a file without a name, from which the event loop goes on sending: a slow reader keeps neither a thread nor
a connection with PostgreSQL (ADR 59).
"""

import re
import select
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from metastore.thrift_server.connection import ClientConnection
from metastore.thrift_server.workers import Seats

_PATIENCE_SECONDS = 2.0
"""How long an answer waits, in all, for a client that keeps up."""
_EMPTY_LIST_OF_STRUCTS = re.compile(rb"\x0f..\x0c\0\0\0\0", re.DOTALL)


class InPieces(NamedTuple):
    """In the place of a result whose list of structs is long. Only the binary protocol can carry it."""

    empty: Any
    """The result with nothing in that list; none of its texts has a NUL in it."""
    length: int
    pieces: AbstractContextManager[Iterable[bytes]]
    """The encoded structs, several at a time: ``length`` in all."""


def around(body: bytes, count: int) -> tuple[bytes, bytes]:
    """What goes before the structs of a list, and after, from an encoded result in which the list is empty."""
    [match] = _EMPTY_LIST_OF_STRUCTS.finditer(body)
    return body[: match.end() - 4] + count.to_bytes(4), body[match.end() :]


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


def in_file(parts: Iterable[bytes | memoryview]) -> memoryview:
    """The parts, one after the other, where they take no memory."""
    with TemporaryFile() as file:
        for part in parts:
            file.write(part)
        file.flush()
        return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
