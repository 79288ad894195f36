"""Connections to PostgreSQL, kept open and lent to one thread or fiber at a time.

Rules: a connection is lent only when it looks alive, and kept afterwards only when it is idle: no open transaction, no
unread answer. A connection that PostgreSQL closed while it lay here (a restart) is noticed without a round trip, since
bytes or an end of stream wait on its socket; so a restart costs a reconnection, not an error. Fibers must not wait for
a connection, and they are few (`metastore.thrift_server.dispatch.workers`): what they borrow comes on top of the size.
"""

import select
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import cast
from uuid import uuid4

import psycopg2
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, connection

from metastore.db import network, origin, sessions
from metastore.db.fibers import in_fiber
from metastore.errors import UnavailableError

_CONNECT_SECONDS = 5.0


class PooledConnection:
    """A connection, the names of what it has prepared, and the means to look at its socket."""

    __slots__ = ("_poll", "prepared", "raw", "spoiled")

    def __init__(self, raw: connection) -> None:
        self.raw = raw
        self.prepared: set[str] = set()
        self.spoiled = False
        raw.notices = cast("list[str]", deque())  # psycopg2 caps a list at 50 notices; a deque is uncapped.
        self._poll = select.poll()
        self._poll.register(raw.fileno(), select.POLLIN | select.POLLERR | select.POLLHUP)

    @property
    def quiet(self) -> bool:
        """True if nothing waits on the socket; on an idle connection any bytes are the server's farewell."""
        return not self.raw.closed and not self._poll.poll(0)

    @property
    def told(self) -> list[str]:
        """The notices of PostgreSQL since the last call."""
        with suppress(psycopg2.Error):  # The connection is gone.
            self.raw.poll()  # Only the next look at the socket takes in what came with the last answer.
        notices = self.raw.notices
        if not notices:
            return []
        texts = list(notices)
        notices.clear()
        return texts

    @property
    def idle(self) -> bool:
        """True if the connection is open, outside of any transaction, and its prepared statements are known."""
        fit = not (self.raw.closed or self.spoiled)
        return fit and bool(self.raw.get_transaction_status() == TRANSACTION_STATUS_IDLE)


class ConnectionPool:
    """At most ``size`` connections for threads, and a connection for each fiber; the last used is lent first."""

    def __init__(self, url: str, size: int, wait_s: float, session: Mapping[str, str], schema: str) -> None:
        self.url, self.size, self._wait_s = url, size, wait_s
        self.silence_s: float | None = None
        """How long PostgreSQL may say nothing at all to a statement; None: as long as it likes."""
        self.process = uuid4().hex
        """Who we are, for triggers: the setting ``metastore.process`` of each of our sessions."""
        self.tell: Callable[[Iterable[str]], None] = lambda _told: None
        """Called with what PostgreSQL said (RAISE INFO) in a transaction, after its end, committed or not."""
        self._parameters = sessions.parameters(
            url, "metastore", {**session, "metastore.process": self.process}, schema=schema
        )
        self._places = threading.BoundedSemaphore(size)
        self._idle: deque[PooledConnection] = deque()
        self._lent = self._timeline = 0

    @property
    def lent(self) -> int:
        """The approximate number of connections in use."""
        return self._lent

    def take(self) -> PooledConnection:
        """A connection that was alive a moment ago. Raises: UnavailableError, having sent nothing."""
        if not in_fiber() and not self._places.acquire(timeout=self._wait_s):
            raise UnavailableError(
                f"The metastore is busy: all {self.size} database connections were in use for "
                f"{self._wait_s:g} s. Nothing was changed, try again."
            )
        self._lent += 1
        try:
            while self._idle:
                link = self._idle.pop()
                if link.quiet:
                    return link
                _close(link)
            return self._connect()
        except BaseException:
            self._free_place()
            raise

    def give(self, link: PooledConnection) -> None:
        """Take a connection back, or close it if it is not fit to be lent again."""
        texts = link.told
        if link.idle:
            self._idle.append(link)
        else:
            _close(link)
        self._free_place()
        if texts:
            self.tell(texts)

    def close(self) -> None:
        """Close the idle connections; their users close the lent connections."""
        while self._idle:
            _close(self._idle.pop())

    def _free_place(self) -> None:
        self._lent -= 1
        if not in_fiber():
            self._places.release()

    def _connect(self) -> PooledConnection:
        raw = network.connect(self._parameters, _CONNECT_SECONDS)
        try:
            self._timeline = origin.require(
                lambda query: network.ask(raw, query, seconds=_CONNECT_SECONDS), self._timeline
            )
        except BaseException as error:
            raw.close()
            if isinstance(error, psycopg2.Error | TimeoutError):
                raise UnavailableError(
                    f"The metastore's database does not answer, nothing was changed, try again: {first_line(error)}"
                ) from error
            raise
        return PooledConnection(raw)


def first_line(error: Exception) -> str:
    """Return a driver's message without its details."""
    return str(error).strip().split("\n", 1)[0]


def _close(link: PooledConnection) -> None:
    try:
        link.raw.close()
    except psycopg2.Error:
        return  # The connection is gone already.
