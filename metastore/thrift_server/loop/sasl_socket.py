"""A client's socket whose first bytes may negotiate with SASL; afterwards each piece of data is in a frame.

Rule: it behaves for the event loop as `TlsSocket` does: it never blocks, and every use holds its lock, because the loop
reads while the thread of a call may be sending. A client that sends a Thrift message at once, without a negotiation,
is served in the clear; its identity is its certificate's, or the server's own user if it is a process of that user on
this machine, and access is decided by that.
"""

import select
import socket
import threading
from typing import Final

from metastore.errors import AccessDeniedError
from metastore.thrift_server.auth.identity import NOBODY, Identity
from metastore.thrift_server.auth.local_user import of_own_user
from metastore.thrift_server.auth.sasl import Mechanisms, Negotiation, NegotiationStatus, next_message, refusal
from metastore.thrift_server.loop.tls_socket import TlsSocket

WAITS: Final = -1
"""The result of `SaslSocket.handshake`: the next step may wait for others, so it needs a thread that may."""
_FRAME = 1 << 18
"""Bytes: the most that goes into one frame of ours."""
_LENGTH = 4
_PIECE = 1 << 14


class SaslSocket:
    """The methods of a socket that `Server` uses."""

    def __init__(self, inner: socket.socket | TlsSocket, mechanisms: Mechanisms, largest: int, peer: str) -> None:
        """Wrap a socket, whose TLS handshake may not be complete.

        ``largest``: bytes of a frame that is accepted; ``peer``: the client's address, ``host:port``.
        """
        self._inner, self._largest, self._peer = inner, largest, peer
        self._negotiation: Negotiation | None = Negotiation(mechanisms, peer.rpartition(":")[0])
        self._is_tls_ready = not isinstance(inner, TlsSocket)
        self._refused: AccessDeniedError | None = None
        self._received = bytearray()
        self._left = 0  # The rest of a frame whose content is passed on as it comes.
        self._sending: bytes | memoryview = b""
        self._covers = 0  # The bytes of the caller that are in `_sending`.
        self._lock = threading.Lock()

    def handshake(self, *, may_wait: bool = True) -> int:
        """Continue; return 0 at the end, `WAITS`, or the epoll event to wait for.

        Raises: OSError, AccessDeniedError.
        """
        with self._lock:
            if not self._is_tls_ready and isinstance(self._inner, TlsSocket):
                waits_for = self._inner.handshake()
                if waits_for:
                    return waits_for
                self._is_tls_ready = True
            return self._negotiate(may_wait=may_wait)

    def identity(self, named_by: str) -> Identity:
        """Return the identity that was proved; without a negotiation the certificate's."""
        if self._negotiation is not None:
            return self._negotiation.identity
        known = self._inner.identity(named_by) if isinstance(self._inner, TlsSocket) else NOBODY
        return known if known.user else of_own_user(self._peer)

    def fileno(self) -> int:
        """Return the number of the socket."""
        return self._inner.fileno()

    def recv(self, size: int) -> bytes:
        """Return received bytes, at most about ``size``. Raises: BlockingIOError (none), OSError."""
        with self._lock:
            if self._negotiation is None:
                if self._received:
                    data, self._received = bytes(self._received), bytearray()
                    return data
                return self._inner.recv(size)
            content = self._unframed()  # The first frame may have come with the last message of the negotiation.
            if not content:
                piece = self._inner.recv(size)
                if not piece:
                    return b""
                self._received += piece
                content = self._unframed()
        if not content:
            raise BlockingIOError
        return content

    def send(self, data: bytes | memoryview) -> int:
        """Send as much as the client takes now; call again with the rest.

        Raises: BlockingIOError (nothing), OSError.
        """
        with self._lock:
            if self._negotiation is None:
                return self._inner.send(data)
            sent = 0
            while sent < len(data):
                if not self._sending:
                    content = bytes(data[sent : sent + _FRAME])
                    self._covers = len(content)
                    self._sending = self._framed(content)
                if not self._flush():
                    break
                sent += self._covers
        if not sent and data:
            raise BlockingIOError
        return sent

    def close(self) -> None:
        """Close the socket."""
        self._inner.close()

    def _negotiate(self, *, may_wait: bool) -> int:
        """Continue the negotiation until it must wait for the client or for a thread."""
        negotiation = self._negotiation
        while negotiation is not None:
            if not self._flush():
                return select.EPOLLOUT
            if self._refused is not None:
                raise self._refused
            if negotiation.is_complete:
                return 0
            if self._received and negotiation.mechanism is None and self._received[0] != NegotiationStatus.START:
                self._negotiation = None  # A Thrift message: the client negotiates nothing.
                return 0
            if negotiation.waits and not may_wait and self._received:
                return WAITS
            if not self._answered(negotiation):
                try:
                    piece = self._inner.recv(_PIECE)
                except BlockingIOError:
                    return select.EPOLLIN
                if not piece:
                    raise ConnectionAbortedError("The client left during the negotiation")
                self._received += piece
        return 0

    def _answered(self, negotiation: Negotiation) -> bool:
        """Answer a message, or refuse it; return False if none is complete."""
        try:
            message = next_message(self._received)
            if message is not None:
                self._sending = negotiation.answer(message)
        except AccessDeniedError as error:
            self._refused, self._sending = error, refusal(str(error))
            return True
        return message is not None

    def _flush(self) -> bool:
        """Send what is framed; return True if nothing is left."""
        while self._sending:
            try:
                count = self._inner.send(self._sending)
            except BlockingIOError:
                return False
            self._sending = memoryview(self._sending)[count:]
        return True

    def _framed(self, content: bytes) -> bytes:
        mechanism = self._negotiation.mechanism if self._negotiation is not None else None
        wrapped = mechanism.wrap(content) if mechanism is not None and mechanism.protects else content
        return len(wrapped).to_bytes(_LENGTH, "big") + wrapped

    def _unframed(self) -> bytes:
        """Take the content of frames off the received bytes. Raises: ConnectionError."""
        mechanism = self._negotiation.mechanism if self._negotiation is not None else None
        if mechanism is None:
            return b""
        contents, received = [], self._received
        while received:
            if self._left:
                contents.append(bytes(received[: self._left]))
                del received[: self._left]
                self._left -= len(contents[-1])
                continue
            if len(received) < _LENGTH:
                break
            size = int.from_bytes(received[:_LENGTH], "big")
            if size > self._largest:
                raise ConnectionAbortedError(f"A frame of {size} bytes is refused: at most {self._largest} are read")
            if not mechanism.protects:
                del received[:_LENGTH]
                self._left = size
            elif len(received) < _LENGTH + size:
                break
            else:
                contents.append(mechanism.unwrap(bytes(received[_LENGTH : _LENGTH + size])))
                del received[: _LENGTH + size]
        return b"".join(contents)
