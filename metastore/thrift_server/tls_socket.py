"""A client's socket with TLS, that looks to the event loop like one without: it never blocks, and wants are errors.

Rules: OpenSSL must not be used by two threads for one connection. The loop reads while the thread of a call may be
sending, so every use holds the connection's lock, for as long as it takes to encrypt what the client takes. OpenSSL
works in memory, and the socket is read and written here: OpenSSL itself would ask the kernel twice for each record.
"""

import select
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_RECORD = 1 << 14
"""Bytes: the most that one TLS record carries, and so the most that one read gives."""


class TlsSocket:
    """What `Server` uses of a socket."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._unsent: bytes | memoryview = b""  # encrypted, and not taken by the client yet
        self._owed = 0  # bytes that were encrypted, and of which nobody has been told that they are sent
        self._lock = threading.Lock()

    def handshake(self) -> int:
        """Go on with the handshake; 0: it is complete, else the epoll event that it waits for. Raises: OSError."""
        with self._lock:
            if self._receive(_RECORD) == b"":
                raise ConnectionResetError("the client has left")
            complete = False
            try:
                with suppress(ssl.SSLWantReadError):
                    self._ssl.do_handshake()
                    complete = True
            finally:
                self._flush()  # an error is told to the client, too
            if self._unsent:
                return select.EPOLLOUT
            return 0 if complete else select.EPOLLIN

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """The client's verified certificate."""
        return self._ssl.getpeercert()

    def fileno(self) -> int:
        """The number of the socket."""
        return self._sock.fileno()

    def recv(self, size: int) -> bytes:
        """What has arrived, at most about ``size`` bytes. Raises: BlockingIOError (nothing), OSError."""
        with self._lock:
            at_the_end = self._receive(size) == b""
            pieces = []
            with suppress(ssl.SSLWantReadError):
                while self._incoming.pending:
                    piece = self._ssl.read(_RECORD)
                    if not piece:  # the client has said that it is the end
                        at_the_end = True
                        break
                    pieces.append(piece)
            self._flush()  # what the protocol itself answers
        data = b"".join(pieces)
        if not data and not at_the_end:
            raise BlockingIOError
        return data

    def send(self, data: bytes | memoryview) -> int:
        """Send what the client takes now. Raises: BlockingIOError (nothing), OSError.

        Of a record that it took in part nothing counts yet: the next call has to begin with the same bytes.
        """
        sent = 0
        with self._lock:
            while sent < len(data):
                if not self._owed:
                    record = data[sent:sent + _RECORD]
                    self._ssl.write(record)
                    self._owed = len(record)
                self._flush()
                if self._unsent:
                    break
                sent, self._owed = sent + self._owed, 0
        if not sent and data:
            raise BlockingIOError
        return sent

    def close(self) -> None:
        """Say goodbye if the client listens, and close."""
        with self._lock:
            with suppress(OSError, ValueError):
                self._ssl.unwrap()
            with suppress(OSError):
                self._flush()
            self._sock.close()

    def _receive(self, size: int) -> bytes | None:
        """Take what the socket has, which is b"" at its end; None: nothing now."""
        try:
            data = self._sock.recv(size)
        except BlockingIOError:
            return None
        if data:
            self._incoming.write(data)
        return data

    def _flush(self) -> None:
        """Send what is encrypted, or as much of it as the client takes now."""
        if self._outgoing.pending:
            fresh = self._outgoing.read()
            self._unsent = b"".join((self._unsent, fresh)) if self._unsent else fresh
        if self._unsent:
            with suppress(BlockingIOError):
                self._unsent = memoryview(self._unsent)[self._sock.send(self._unsent):]
