"""A sender of answers in pieces from the thread of their call, for as long as the client keeps up (ADR 59)."""

import select
import time

from metastore.thrift_server.dispatch.workers import Seats
from metastore.thrift_server.loop.connection import ClientConnection

_PATIENCE_SECONDS = 2.0
"""The time for which an answer waits, in all, for a client that keeps up."""


class Sender:
    """A sender of one answer from a thread of the pool."""

    def __init__(self, connection: ClientConnection, seats: Seats) -> None:
        self._connection, self._seats = connection, seats
        self._patience = _PATIENCE_SECONDS

    def send(self, data: bytes) -> memoryview | None:
        """Send data. Return the bytes that the client did not take in time (none if it keeps up); None: it is gone."""
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
