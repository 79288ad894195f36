"""Leadership: one replica at a time holds a session advisory lock of the database.

Rule: leadership only saves duplicate work; what a leader does must be correct with two of them, because the lock goes
when its connection breaks, and its former holder learns that late. The connection is never pooled: a pool would lend
the lock to others.
"""

import zlib
from contextlib import suppress
from threading import Lock

import psycopg2
from psycopg2.extensions import connection

from metastore.db import sessions

_FAMILY = 0x6C656164  # "lead"; the first half of every such lock's key


class Leadership:
    """One role in the whole installation, for example ``loops``. Safe to ask from several threads."""

    def __init__(self, url: str, role: str) -> None:
        self._url, self._key = url, zlib.crc32(role.encode()) - 2**31
        self._session: connection | None = None
        self._one_at_a_time = Lock()

    def is_leader(self) -> bool:
        """Take the leadership if it is free, or make sure that it is still ours."""
        with self._one_at_a_time:
            return self._hold()

    def release(self) -> None:
        """Let it go, so that another replica need not wait for a time-out."""
        with self._one_at_a_time:
            self._close()

    def _hold(self) -> bool:
        try:
            if self._session is None:
                return self._take()
            with self._session.cursor() as cursor:
                cursor.execute("SELECT 1")
        except psycopg2.Error:
            self._close()
            return False
        return True

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        with suppress(psycopg2.Error), session.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock_all()")  # a closed session's end is noticed a little later
        session.close()

    def _take(self) -> bool:
        session = psycopg2.connect(**sessions.parameters(
            self._url, "metastore leader", {"statement_timeout": "5s"}), connect_timeout=5, keepalives_idle=30)
        taken = False
        try:
            session.autocommit = True
            with session.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_FAMILY, self._key])
                taken = bool(cursor.fetchall()[0][0])
        finally:
            if taken:
                self._session = session
            else:
                session.close()
        return taken
