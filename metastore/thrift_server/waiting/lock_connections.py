"""Which lock requests without a transaction were made over which connection, as far as this process knows.

Rules: a request belongs to the connection over which it was last made or checked. It is tied to that connection, and
may end soon after it, if nobody has asked about it over any other connection (ADR 0045). This is memory only: of a
process that dies nothing is known, and its clients' locks live for the usual time.
"""

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from time import monotonic

from metastore.locks.orphans.rules import Gone, Left
from metastore.thrift_server.dispatch.call import Connection

AT_ONCE = 1.0
"""Seconds. A client that connects for each call has ended the connection by then."""


@dataclass(slots=True)
class _KnownRequest:
    """A request and its connection, as of the moment when it was made or first looked at over this connection."""

    connection: Connection
    tied: bool
    calls: int
    at: float
    looks: int = 0


class LockConnections:
    """Requests and their connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, _KnownRequest] = {}

    def took(self, lock_id: int, connection: Connection, *, tied: bool = True) -> None:
        """Note a request that was made. ``tied``: whether its client keeps a connection over several calls."""
        with self._lock:
            known = self._held.get(lock_id)  # made again, by a client that lost the answer
            self._held[lock_id] = _held(connection, tied=tied and known is None)

    def looked(self, lock_id: int, connection: Connection) -> None:
        """Note that a request was looked at."""
        with self._lock:
            known = self._held.get(lock_id)
            if known is None or known.connection is not connection:
                self._held[lock_id] = _held(connection, tied=False)
            else:
                known.looks += 1

    def gave(self, lock_ids: Iterable[int]) -> None:
        """Forget requests that are released."""
        with self._lock:
            for lock_id in lock_ids:
                self._held.pop(lock_id, None)

    def of(self, connection: Connection) -> frozenset[int]:
        """Return the requests of a connection."""
        with self._lock:
            return frozenset(lock_id for lock_id, holder in self._held.items() if holder.connection is connection)

    def left(self) -> Left:
        """Return what became of the connections. As long as a call is in work nothing did: it may rely on the lock."""
        left = Left([], set(), set())
        with self._lock:
            for lock_id, holder in self._held.items():
                if not holder.connection.closed or holder.connection.busy:
                    left.here.add(lock_id)
                elif holder.tied and holder.connection.left is not None:
                    at_once = holder.connection.calls == holder.calls and holder.connection.left - holder.at < AT_ONCE
                    left.gone.append(Gone(lock_id, holder.looks, at_once))
                else:
                    left.over.add(lock_id)
        return left

    def keep(self, lock_ids: Collection[int], left: Left) -> None:
        """Forget what has left, and of those that were here what is not among ``lock_ids``, because it is no more."""
        self.gave((left.here - set(lock_ids)) | left.over | {request.lock_id for request in left.gone})


def _held(connection: Connection, *, tied: bool) -> _KnownRequest:
    return _KnownRequest(connection, tied, connection.calls, monotonic())
