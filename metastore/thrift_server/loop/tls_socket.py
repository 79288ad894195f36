"""A socket with TLS, of a client or to the upstream, that behaves for the event loop like a plain one: it never blocks.

Rule: OpenSSL must not be used by two threads for one connection. The loop reads while the thread of a call may be
sending, so every use holds the connection's lock, for as long as it takes to encrypt what fits into its buffer.
"""

import select
import ssl
import threading
from contextlib import suppress

from metastore.thrift_server.auth.identity import Identity, of_certificate

_RECORD = 1 << 14
"""Bytes: the most that a TLS record carries, and so the most that a read gives."""


class TlsSocket:
    """The methods of a socket that `Server` and `Forwarder` use."""

    def __init__(self, wrapped: ssl.SSLSocket) -> None:
        """Wrap a socket; ``wrapped``: its handshake may not be complete yet."""
        self._ssl = wrapped
        self._ssl.settimeout(0)
        self._lock = threading.Lock()

    def handshake(self, *, may_wait: bool = True) -> int:  # noqa: ARG002 - TLS waits for nobody but the client
        """Continue the handshake; return 0 if it is complete, else the epoll event to wait for. Raises: OSError."""
        with self._lock:
            try:
                self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                return select.EPOLLIN
            except ssl.SSLWantWriteError:
                return select.EPOLLOUT
        return 0

    def identity(self, named_by: str) -> Identity:
        """Return the user that the other side's verified certificate names, by `of_certificate`."""
        return of_certificate(self._ssl.getpeercert(), named_by)

    def fileno(self) -> int:
        """Return the number of the socket."""
        return self._ssl.fileno()

    def recv(self, size: int) -> bytes:
        """Return the received bytes, at most about ``size``. Raises: BlockingIOError (none), OSError."""
        pieces = []
        with self._lock:
            while size > 0:
                try:
                    piece = self._ssl.recv(max(size, _RECORD))
                except ssl.SSLWantReadError:
                    break
                pieces.append(piece)
                size -= len(piece)
                if len(piece) < _RECORD:
                    return b"".join(pieces)
        if not pieces:
            raise BlockingIOError
        return b"".join(pieces)

    def send(self, data: bytes | memoryview) -> int:
        """Send as much as the client takes now. Raises: BlockingIOError (nothing), OSError."""
        sent = 0
        with self._lock:
            while sent < len(data):
                try:
                    sent += self._ssl.send(data[sent : sent + _RECORD])
                except ssl.SSLWantWriteError:
                    break
        if not sent and data:
            raise BlockingIOError
        return sent

    def close(self) -> None:
        """Send a TLS goodbye if the client listens, and close."""
        with self._lock:
            with suppress(OSError, ValueError):
                self._ssl.unwrap()
            self._ssl.close()
