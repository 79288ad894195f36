"""Which lock requests without a transaction were made over which connection, as far as this process knows.

Rule: a request belongs to the connection over which it was last made or checked. This is memory only: of a process that
dies nothing is known, and its clients' locks live as long as their heartbeats let them.
"""

import threading
from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol


class Connection(Protocol):
    """What is known of a client's connection."""

    closed: bool


class Left(NamedTuple):
    """Requests by what became of their connection."""

    gone: set[int]
    here: set[int]


class Holders:
    """Requests and their connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: dict[int, Connection] = {}

    def took(self, lock_id: int, connection: Connection) -> None:
        """A request was made or checked."""
        with self._lock:
            self._connections[lock_id] = connection

    def gave(self, lock_ids: Iterable[int]) -> None:
        """Requests that are released."""
        with self._lock:
            for lock_id in lock_ids:
                self._connections.pop(lock_id, None)

    def of(self, connection: Connection) -> frozenset[int]:
        """The requests of a connection."""
        with self._lock:
            return frozenset(lock_id for lock_id, one in self._connections.items() if one is connection)

    def left(self) -> Left:
        """Those whose connection is closed, each told once, and the others."""
        with self._lock:
            gone = {lock_id for lock_id, connection in self._connections.items() if connection.closed}
            for lock_id in gone:
                del self._connections[lock_id]
            return Left(gone, set(self._connections))

    def keep(self, lock_ids: Collection[int], asked: Collection[int]) -> None:
        """Forget those of the ``asked`` that are not among ``lock_ids``, because they are no more."""
        self.gave(set(asked) - set(lock_ids))
