"""TLS handshakes, away from the event loop: signing takes a millisecond, and a stranger may ask for many.

Rule: a thread takes one step of one handshake, which never waits for the client; between steps the connection waits in
epoll like any other. So a client that stalls holds nothing but its socket, and one that fails takes only these threads'
time.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from metastore.thrift_server.connection import ClientConnection

_THREADS = 2


class Step(NamedTuple):
    """What came of one step: the epoll event that the connection waits for, 0 when it is through, or the error."""

    connection: ClientConnection
    waits_for: int = 0
    error: Exception | None = None


class Handshakes:
    """Takes steps, and hands each outcome to ``done`` from its own thread."""

    def __init__(self, done: Callable[[Step], None]) -> None:
        self._done = done
        self._due: queue.SimpleQueue[ClientConnection | None] = queue.SimpleQueue()

    def start(self) -> None:
        """Start the threads; they end with the process, or at `stop`."""
        for number in range(_THREADS):
            threading.Thread(target=self._run, name=f"tls-handshake-{number}", daemon=True).start()

    def stop(self) -> None:
        """End the threads after the step that each is at."""
        for _ in range(_THREADS):
            self._due.put(None)

    def step(self, connection: ClientConnection) -> None:
        """Take the next step of this connection's handshake soon."""
        self._due.put(connection)

    def _run(self) -> None:
        while (connection := self._due.get()) is not None:
            tls: Any = connection.sock
            try:
                step = Step(connection, tls.handshake())
            except Exception as error:  # noqa: BLE001 - whatever OpenSSL says, only this connection fails
                step = Step(connection, error=error)
            self._done(step)
