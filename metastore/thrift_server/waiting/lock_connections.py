"""Connections of lock requests without a transaction, as far as this process knows.

Rules: a request belongs to the connection over which it was last made or checked. It is tied to that connection, and
may end soon after it, if it was never checked over any other connection (ADR 0045). This is memory only: after the
death of a process, its clients' locks live for the usual time.
"""

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from time import monotonic

from metastore.locks.orphans.rules import Gone, Left
from metastore.thrift_server.dispatch.call import Connection

AT_ONCE = 1.0
"""The seconds after which a client that connects for each call has ended the connection."""


@dataclass(slots=True)
class _KnownRequest:
    """A request and its connection, as of the moment when it was made or first checked over this connection."""

    connection: Connection
    tied: bool
    calls: int
    at: float
    looks: int = 0


class LockConnections:
    """The requests and their connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, _KnownRequest] = {}

    def took(self, lock_id: int, connection: Connection, *, tied: bool = True) -> None:
        """Record a request that was made. ``tied``: True if its client keeps a connection over several calls."""
        with self._lock:
            known = self._held.get(lock_id)  # A client that lost the answer repeated the request.
            self._held[lock_id] = _held(connection, tied=tied and known is None)

    def looked(self, lock_id: int, connection: Connection) -> None:
        """Record a check of a request."""
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
        """Return the outcomes of the connections. During a call there is none: it may rely on the lock."""
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
        """Forget requests of ended connections, and those here that are missing in ``lock_ids``."""
        self.gave((left.here - set(lock_ids)) | left.over | {request.lock_id for request in left.gone})


def _held(connection: Connection, *, tied: bool) -> _KnownRequest:
    return _KnownRequest(connection, tied, connection.calls, monotonic())
