"""A client's connection: its socket, received bytes that are not used yet, and bytes that could not be sent yet.

Rule: a connection works on one call at a time, so answers are in the order of the requests and memory is bounded by one
request, one answer and `MOST_AHEAD` bytes of requests sent ahead. Only the event loop touches a connection. Half a
request and half an answer must move: a connection that neither sends the rest nor reads on is closed.
"""

import socket
import time
from collections.abc import Callable
from typing import Any

from metastore.thrift_server.auth.identity import NOBODY, Identity
from metastore.thrift_server.loop.address_limits import AddressLimits, Usage
from metastore.thrift_server.loop.client_session import Session
from metastore.thrift_server.loop.sasl_socket import SaslSocket
from metastore.thrift_server.loop.tls_socket import TlsSocket
from metastore.thrift_server.wire.protocol import Header, Message
from metastore.thrift_server.wire.scanner import Scanner

MOST_AHEAD = 1 << 16
SLOWEST = 1 << 16
"""Bytes a second."""


class ClientConnection:
    """State of one client; handlers see it as `metastore.thrift_server.dispatch.call.Connection`."""

    __slots__ = (
        "active",
        "busy",
        "calls",
        "closed",
        "cut_off",
        "farewell",
        "fd",
        "groups",
        "handshaking",
        "header",
        "hurry",
        "identity",
        "interest",
        "left",
        "link",
        "message",
        "metaconf",
        "moved",
        "peer",
        "received",
        "scanner",
        "sending",
        "session",
        "since",
        "size",
        "sock",
        "usage",
        "user",
        "waiting",
    )

    def __init__(self, sock: socket.socket | TlsSocket | SaslSocket, address: Any, now: float) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
        self.usage: Usage | None = None  # The usage of its address.
        self.identity = NOBODY._replace(address=self.peer)
        self.handshaking = False
        self.user: str | None = None
        self.groups: tuple[str, ...] = ()
        self.metaconf: dict[str, str] | None = None
        self.link: Any = None  # The forwarder's `Link` to the upstream, which is made of a connection.
        self.session: Session | None = None  # The statements about the client that the upstream gets.
        self.closed = False
        self.cut_off = False  # We cut it off in the middle of an answer.
        self.calls = 0  # The number of calls that were begun.
        self.farewell = False  # The client said that it is about to end the connection.
        self.left: float | None = None  # When the client ended the connection without a farewell; None if we ended it.
        self.hurry: Callable[[], None] | None = None  # The function that ends a parked call.
        self.busy = False  # A call is in progress.
        self.waiting = False  # It waits for its next turn, with requests sent ahead.
        self.active = now  # The time when a message was last completed or answered.
        self.interest = 0  # The epoll events that are wanted.
        self.received: bytes | bytearray = b""
        self.scanner: Scanner | None = None  # The scanner of an incomplete message.
        self.header: Header | None = None  # The header of the same.
        self.message: Message | None = None  # A large message that waits for its turn.
        self.sending: memoryview | None = None  # The rest of an answer.
        self.since = self.moved = now  # When the half request or answer began, and when a part of it was last sent.
        self.size = 0  # The size of the answer.

    @property
    def who(self) -> dict[str, str | None]:
        """The client's names for log lines."""
        return {"peer": self.peer, "user": self.user}

    @property
    def host(self) -> str:
        """The address, without the port."""
        return self.peer.rpartition(":")[0]

    @property
    def held(self) -> int:
        """The number of bytes that wait for the rest, for a reader or for their turn."""
        waiting = self.message.data if self.message is not None else None
        return len(self.received) + len(self.sending or b"") + len(waiting or b"")

    def receive(self, most: int, now: float) -> int:
        """Receive at most ``most`` bytes. Return how many, 0 at the end. Raises: OSError."""
        data = self.sock.recv(most)
        self.moved = now
        if not self.received:
            self.received = data
            self.since = now
        else:
            if isinstance(self.received, bytes):
                self.received = bytearray(self.received)
            self.received += data
        return len(data)

    def send(self, data: bytes | memoryview) -> bool:
        """Send as much as the client takes now, and keep the rest in ``sending``. Return False if nothing can arrive.

        The loop sees later that the connection is broken.
        """
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return False
        if sent < len(data):
            self.begin(time.monotonic(), len(data))
            self.sending = memoryview(data)[sent:]
        return True

    def begin(self, now: float, size: int = 0) -> None:
        """Record that half a request or half an answer (of this size) begins now."""
        self.since = self.moved = now
        self.size = size

    def act_for(self, caller: Identity, limits: AddressLimits | None, now: float) -> None:
        """Switch the connection's calls, and their limits, to a planner's caller from now on."""
        self.identity, self.peer, self.user = caller, caller.address, caller.user or self.user
        if self.session is not None:
            self.session.version += 1  # The upstream must get this.
        if limits is not None:
            limits.left(self.usage, now)
            self.usage = limits.arrived(self.host, now)

    def end_parked_call(self) -> None:
        """Bring its call to an end, if that is parked."""
        if self.hurry is not None:
            self.hurry()

    def stuck(self, now: float, seconds: float) -> bool:
        """Return True if half a request or half an answer does not move, or moves slower than any network."""
        if self.sending is None and (self.busy or not self.received):
            return False
        patience = seconds + max(self.size, len(self.received)) / SLOWEST
        return now - self.moved > seconds or now - self.since > patience

    @property
    def idle(self) -> bool:
        """True if no message is half received, in work, or half sent."""
        return not (self.busy or self.received or self.sending)
