"""The listening socket: it accepts new connections, and closes those beyond the limits at once.

Rule: only the event loop's thread accepts. If the process is out of file descriptors the loop goes on.
"""

import resource
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from metastore.config import ServerSettings
from metastore.thrift_server.loop.connections import Connections

BACKLOG = 1024


class ListeningSocket:
    """A port that listens until `close`."""

    def __init__(
        self,
        settings: ServerSettings,
        connections: Connections,
        begin: Callable[[socket.socket, Any], None],
        *,
        reuse_port: bool,
    ) -> None:
        """Prepare a port. ``begin``: gets each new connection with its address.

        ``reuse_port``: processes share the port.
        """
        self._settings, self._connections, self._begin, self._reuse_port = settings, connections, begin, reuse_port
        self.fd = -1

    def open(self) -> tuple[str, int]:
        """Listen, with as many file descriptors as this process may have; return the address. Raises: OSError."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        settings = self._settings
        self._socket = socket.create_server(
            (settings.host, settings.port),
            family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET,
            backlog=BACKLOG,
            reuse_port=self._reuse_port,
        )
        self._socket.settimeout(0)
        self.fd = self._socket.fileno()
        host, port = self._socket.getsockname()[:2]
        return host, port

    def watch(self, epoll: select.epoll) -> None:
        """Wake this epoll when a connection waits."""
        self._epoll = epoll
        epoll.register(self.fd, select.EPOLLIN)

    def close(self) -> bool:
        """Stop listening; return False if that was done before."""
        if self.fd < 0:
            return False
        self._epoll.unregister(self.fd)
        self._socket.close()
        self.fd = -1
        return True

    def accept(self) -> None:
        """Accept all waiting connections; those beyond the limits are closed at once."""
        for _ in range(BACKLOG):
            try:
                sock, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self._connections.warn("connection_not_accepted", reason=str(error), connections=len(self._connections))
                time.sleep(0.01)  # noqa: TID251 - out of file descriptors: the listener stays readable
                return
            if not self._connections.room(address[0]):
                sock.close()
                continue
            sock.settimeout(0)
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(self._settings.tcp_keepalive))
            self._begin(sock, address)
