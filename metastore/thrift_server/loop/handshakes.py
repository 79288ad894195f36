"""Handshakes of TLS and of SASL, away from the event loop: each takes a millisecond, and a stranger may ask for many.

Rule: a thread takes one step of one handshake, which never waits for the client; between steps the connection waits in
epoll like any other. So a client that stalls holds nothing but its socket, and a client that fails takes only these
threads' time. Steps that ask a database or a directory server have threads of their own: while those hang, other
clients get in. All but the steps themselves is for the event loop's thread.
"""

import queue
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple

import structlog

from metastore.config.security import TlsSettings
from metastore.errors import AccessDeniedError
from metastore.thrift_server.auth.identity import NOBODY, Identity
from metastore.thrift_server.auth.sasl import Mechanisms
from metastore.thrift_server.loop.connection import ClientConnection
from metastore.thrift_server.loop.connections import READ, Connections
from metastore.thrift_server.loop.sasl_socket import WAITS, SaslSocket
from metastore.thrift_server.loop.tls_socket import TlsSocket
from metastore.tls.contexts import RenewedContext

_THREADS = 2
_PATIENT_THREADS = 4
_log = structlog.get_logger("metastore.server")


class HandshakeStep(NamedTuple):
    """The result of one step: the epoll event to wait for, 0 when the handshake is complete, or the error."""

    connection: ClientConnection
    waits_for: int = 0
    error: Exception | None = None
    identity: Identity = NOBODY
    """The identity of the client, once the handshake is complete."""


class Handshakes:
    """The handshakes of connections, from the first byte to the identity, or to an end."""

    def __init__(
        self,
        settings: TlsSettings,
        connections: Connections,
        ring: Callable[[], None],
        mechanisms: Mechanisms,
        largest: int,
    ) -> None:
        """Prepare the threads. ``ring``: wakes the loop, on any thread; ``largest``: bytes of a frame of SASL.

        Without mechanisms clients do not negotiate. Raises: InvalidInputError (an unusable key store).
        """
        self._settings, self._connections, self._ring = settings, connections, ring
        self._mechanisms, self._largest = mechanisms, largest
        self._context = RenewedContext(settings) if settings.use_ssl else None
        self._due: queue.SimpleQueue[ClientConnection | None] = queue.SimpleQueue()
        self._waiting: queue.SimpleQueue[ClientConnection | None] = queue.SimpleQueue()
        self._taken: deque[HandshakeStep] = deque()
        self.failed = 0
        self.refused = 0
        """Clients that could not prove who they are."""

    @property
    def certificate_expires(self) -> float:
        """Seconds since 1970 at which the port's certificate ends; infinite without TLS."""
        return self._context.expires if self._context is not None else inf

    def start(self) -> None:
        """Start the threads; they end with the process, or at `stop`."""
        for number in range(_THREADS):
            threading.Thread(target=self._run, args=(self._due,), name=f"handshake-{number}", daemon=True).start()
        for number in range(_PATIENT_THREADS if self._mechanisms else 0):
            threading.Thread(target=self._run, args=(self._waiting,), name=f"login-{number}", daemon=True).start()

    def stop(self) -> None:
        """End the threads after their present step."""
        for _ in range(_THREADS):
            self._due.put(None)
        for _ in range(_PATIENT_THREADS):
            self._waiting.put(None)

    def begin(self, sock: socket.socket, address: Any) -> None:
        """Begin a connection; it is watched for one event at a time until its handshake is complete."""
        wrapped: socket.socket | TlsSocket = sock
        try:
            if self._context is not None:
                tls = self._context.get().wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                wrapped = TlsSocket(tls)
        except OSError as error:  # The connection is gone already.
            self.failed += 1
            _log.debug("tls_handshake_failed", peer=address[0], reason=str(error))
            sock.close()
            return
        connection = ClientConnection(
            SaslSocket(wrapped, self._mechanisms, self._largest, f"{address[0]}:{address[1]}")
            if self._mechanisms
            else wrapped,
            address,
            self._connections.now,
        )
        connection.handshaking = True
        self._connections.add(connection, READ | select.EPOLLONESHOT)

    def step(self, connection: ClientConnection) -> None:
        """Run the next step on another thread, after bytes have arrived. Until it is back the socket stays open."""
        if not connection.busy:
            connection.busy = True
            self._due.put(connection)

    def completed(self) -> Iterator[ClientConnection]:
        """Take up the outcomes of steps; yield the complete connections, whose first message may have come too."""
        while self._taken:
            step = self._taken.popleft()
            connection = step.connection
            connection.busy = False
            if connection.closed:
                connection.sock.close()
            elif isinstance(step.error, AccessDeniedError):
                self.refused += 1
                _log.warning("login_refused", peer=connection.peer, reason=str(step.error), refused=self.refused)
                self._connections.close(connection)
            elif step.error is not None:
                self._fail(connection, _reason(step.error))
            elif step.waits_for:
                self._connections.watch_once(connection, step.waits_for)
            else:
                connection.identity = step.identity._replace(address=connection.peer)
                connection.user = step.identity.user
                connection.handshaking = False
                connection.active = self._connections.now
                self._connections.watch(connection, READ)
                yield connection

    def sweep(self) -> None:
        """End handshakes that take too long."""
        patience = self._settings.handshake_timeout.total_seconds()
        for connection in self._connections:
            if connection.handshaking and not connection.busy and self._connections.now - connection.active > patience:
                self._fail(connection, f"not complete after {patience:.0f} s")

    def _fail(self, connection: ClientConnection, reason: str) -> None:
        self.failed += 1
        self._connections.warn("tls_handshake_failed", peer=connection.peer, reason=reason, failed=self.failed)
        self._connections.close(connection)

    def _run(self, due: "queue.SimpleQueue[ClientConnection | None]") -> None:
        while (connection := due.get()) is not None:
            sock: Any = connection.sock
            try:
                waits_for = sock.handshake(may_wait=due is self._waiting)
                if waits_for == WAITS:
                    self._waiting.put(connection)
                    continue
                known = NOBODY if waits_for else sock.identity(self._settings.client_user)
                step = HandshakeStep(connection, waits_for, identity=known)
            except Exception as error:  # noqa: BLE001 - whatever a library or a certificate says, only this client fails
                step = HandshakeStep(connection, error=error)
            self._taken.append(step)
            self._ring()


def _reason(error: Exception) -> str:
    """Return OpenSSL's message, without its place in the sources."""
    return str(getattr(error, "verify_message", "") or getattr(error, "reason", "") or error).lower().replace("_", " ")
