"""Leadership: of each role one replica at a time holds a session advisory lock of the database.

Rule: leadership only saves duplicate work; what a leader does must be correct with two of them, because the lock goes
when its connection breaks, and its former holder learns that late. All roles of a process are held by one connection,
which is never pooled: a pool would lend the locks to others. A call waits for PostgreSQL a few seconds at most.
"""

import zlib
from contextlib import suppress
from threading import Lock

import psycopg2
from psycopg2.extensions import connection

from metastore.db import network, sessions
from metastore.errors import UnavailableError

_SECONDS = 5.0
_LAST_SECONDS = 1.0
FAMILY = 0x6C656164  # "lead" is the first half of every such lock's key.


class Leadership:
    """The roles that this process holds in the whole installation. Its methods are thread-safe."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: connection | None = None
        self._held: set[str] = set()
        self._one_at_a_time = Lock()

    def is_leader(self, role: str) -> bool:
        """Take the leadership of a role if it is free, or make sure that it is still ours."""
        with self._one_at_a_time:
            return self._hold(role)

    def release(self) -> None:
        """Release all roles, so that another replica need not wait for a time-out.

        The end of the process does it as well.
        """
        if self._one_at_a_time.acquire(timeout=_LAST_SECONDS):
            self._close()
            self._one_at_a_time.release()

    def _hold(self, role: str) -> bool:
        try:
            if self._session is None:
                self._session = self._connected()
            if role in self._held:
                network.ask(self._session, "SELECT 1", seconds=_SECONDS)
            elif self._take(self._session, role):
                self._held.add(role)
            elif not self._held:
                self._close()  # A process without a role keeps no connection.
        except (psycopg2.Error, TimeoutError, UnavailableError):
            self._close()
        return role in self._held

    def _close(self) -> None:
        session, self._session = self._session, None
        self._held.clear()
        if session is None:
            return
        with suppress(psycopg2.Error, TimeoutError):  # PostgreSQL notices the end of a closed session a little later.
            network.ask(session, "SELECT pg_advisory_unlock_all()", seconds=_LAST_SECONDS)
        session.close()

    def _connected(self) -> connection:
        return network.connect(
            sessions.parameters(self._url, "metastore leader", {"statement_timeout": "5s"}), _SECONDS
        )

    @staticmethod
    def _take(session: connection, role: str) -> bool:
        key = zlib.crc32(role.encode()) - 2**31
        [(taken,)] = network.ask(session, "SELECT pg_try_advisory_lock(%s, %s)", [FAMILY, key], _SECONDS)
        return bool(taken)
