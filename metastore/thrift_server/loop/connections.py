"""The open connections of a server: the events to watch, and the rules for closing them.

Rule: only the event loop's thread calls this. A silent connection is never closed while a call of its own is in work.
"""

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import structlog

from metastore.config import LimitSettings, ServerSettings
from metastore.thrift_server.loop.address_limits import AddressLimits, Usage
from metastore.thrift_server.loop.connection import ClientConnection
from metastore.thrift_server.loop.message_reader import PIECE

READ, WRITE = select.EPOLLIN | select.EPOLLRDHUP, select.EPOLLOUT
_WARN_EVERY_SECONDS = 10.0
_LEAST_MANY = 1 << 22
_log = structlog.get_logger("metastore.server")


class Connections:
    """The connections by the number of their sockets."""

    def __init__(self, settings: ServerSettings, limits: AddressLimits | None = None) -> None:
        self._settings, self.limits = settings, limits or AddressLimits(LimitSettings())
        most = self.limits.settings.buffered
        self.many = max((min(settings.max_buffered, most) if most else settings.max_buffered) >> 3, _LEAST_MANY)
        """The bytes from which on `taken` is a reason to `sweep`."""
        self.by_fd: dict[int, ClientConnection] = {}
        self.now = time.monotonic()
        """The time when the loop last woke."""
        self.taken = 0
        """Bytes that were received or could not be sent since the last `sweep`."""
        self.refused = 0
        self.closing: Callable[[ClientConnection], None] | None = None
        """A function that gets each connection that is closed."""
        self._warned: dict[tuple[str, object], float] = {}

    def start(self, epoll: select.epoll) -> None:
        """Watch on this epoll from now on."""
        self._epoll = epoll

    def __len__(self) -> int:
        return len(self.by_fd)

    def __iter__(self) -> Iterator[ClientConnection]:
        """Return the connections of this instant; they may be closed meanwhile."""
        return iter(list(self.by_fd.values()))

    def warn(self, event: str, **fields: Any) -> None:
        """Log a frequent warning: each kind and reason once every few seconds."""
        kind = event, fields.get("reason")
        if self.now - self._warned.get(kind, -_WARN_EVERY_SECONDS) >= _WARN_EVERY_SECONDS:
            self._warned[kind] = self.now
            _log.warning(event, **fields)

    def room(self, peer: str) -> bool:
        """Return True if another connection may come from the peer; count and warn if not."""
        if len(self.by_fd) < self._settings.max_connections:
            return self.limits.room(peer, self.now)
        self.refused += 1
        self.warn(
            "connection_refused",
            peer=peer,
            limit=self._settings.max_connections,
            setting="metastore.server.max.connections",
            refused=self.refused,
        )
        return False

    def begin(self, sock: socket.socket, address: Any) -> None:
        """Begin a connection in the clear."""
        self.add(ClientConnection(sock, address, self.now), READ)

    def add(self, connection: ClientConnection, interest: int) -> None:
        """Watch the connection for these events."""
        self.by_fd[connection.fd] = connection
        connection.usage = self.limits.arrived(connection.host, self.now)
        connection.interest = interest
        self._epoll.register(connection.fd, interest)

    def watch(self, connection: ClientConnection, interest: int) -> None:
        """Watch the connection for these events instead."""
        if connection.interest != interest:
            connection.interest = interest
            self._epoll.modify(connection.fd, interest)

    def watch_once(self, connection: ClientConnection, event: int) -> None:
        """Watch the connection for the next event of this kind only."""
        connection.interest = event | select.EPOLLRDHUP | select.EPOLLONESHOT
        self._epoll.modify(connection.fd, connection.interest)

    def close(self, connection: ClientConnection) -> None:
        """Close and forget the connection; a call in work goes on, and its answer is dropped."""
        if not connection.closed:
            connection.closed = True
            del self.by_fd[connection.fd]
            connection.received, connection.scanner, connection.sending, connection.message = b"", None, None, None
            self.limits.left(connection.usage, self.now)
            connection.end_parked_call()
            if self.closing is not None:
                self.closing(connection)
            with suppress(OSError):  # The thread of its call may just have closed it.
                self._epoll.unregister(connection.fd)
            if not connection.busy:
                connection.sock.close()

    def ended(self, connection: ClientConnection) -> None:
        """Close a connection that the client, or its machine, has ended."""
        if not connection.farewell:
            connection.left = time.monotonic()
        self.close(connection)

    def sweep(self) -> None:
        """Close connections that are idle or stuck for too long, and the longest stuck ones while all hold too much.

        A message that never gets complete counts as idle.
        """
        self.taken = 0
        self.limits.sweep(self.now)
        limit = self._settings.idle_timeout.total_seconds()
        if limit > 0:
            for connection in [c for c in self if not c.busy and self.now - c.active > limit]:
                _log.info("connection_closed_idle", **connection.who, seconds=round(limit))
                self.close(connection)
        patience = self._settings.transfer_timeout.total_seconds()
        holding = [c for c in self if c.held]
        for connection in holding if patience > 0 else ():
            if connection.stuck(self.now, patience):
                _log.info(
                    "connection_closed_stuck",
                    **connection.who,
                    bytes=connection.held,
                    setting="metastore.server.transfer.timeout",
                )
                self.close(connection)
        if self.limits.settings.buffered:
            by_usage: dict[Usage, list[ClientConnection]] = {}
            for connection in holding:
                if connection.usage is not None:
                    by_usage.setdefault(connection.usage, []).append(connection)
            for usage, its in by_usage.items():
                if self._relieve(its, self.limits.settings.buffered, "metastore.limit.buffered"):
                    self.limits.reach(usage, "buffered", self.now)
        self._relieve(holding, self._settings.max_buffered, "metastore.server.max.buffered")

    def _relieve(self, holding: list[ClientConnection], most: int, setting: str) -> bool:
        """Close those that have not moved for longest, until all together hold no more than this.

        Return whether any.
        """
        excess = sum(connection.held for connection in holding) - most
        relieved = False
        for connection in sorted(holding, key=lambda c: c.moved) if excess > 0 else ():
            if excess > 0 and connection.held > PIECE:
                excess -= connection.held
                _log.warning("connection_closed_memory", **connection.who, bytes=connection.held, setting=setting)
                self.close(connection)
                relieved = True
        return relieved
