"""A listener between our server and PostgreSQL that notes every message with SQL and the rows of its answer.

It understands the simple query protocol, which psycopg2 speaks; a server that used another would be refused with a
clear error, not silently recorded as doing nothing.
"""

import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import Self

_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102


@dataclass
class Exchange:
    """A message with SQL and the last result that PostgreSQL gave to it: column names and rows as text."""

    sql: str
    columns: list[str] = field(default_factory=list)
    rows: list[list[str | None]] = field(default_factory=list)


class Wiretap:
    """Forwards connections to a PostgreSQL at ``host:port``; a context manager."""

    def __init__(self, host: str, port: int) -> None:
        self.target = host, port
        self.exchanges: list[Exchange] = []
        self.options = ""
        self.refused: str | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._listener, *self._sockets):
            end.close()

    def taken(self) -> list[Exchange]:
        """What was exchanged since the last time."""
        if self.refused:
            raise RuntimeError(self.refused)
        exchanges, self.exchanges = self.exchanges, []
        return exchanges

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self.target)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(end)
            connection = _Connection(self, near, far)
            for pump in (connection.forth, connection.back):
                threading.Thread(target=pump, daemon=True).start()


class _Connection:
    """One connection: two pumps that look at what they carry."""

    def __init__(self, tap: Wiretap, near: socket.socket, far: socket.socket) -> None:
        self.tap, self.near, self.far = tap, near, far
        self.current = Exchange("")

    def forth(self) -> None:
        """From the server to PostgreSQL."""
        try:
            while True:
                start = _body(self.near)
                code = struct.unpack_from(">i", start)[0]
                if code not in {_SSL, _GSS}:
                    break
                self.near.sendall(b"N")
            if code != _CANCEL:
                words = start[4:].split(b"\0")
                self.tap.options = dict(zip(words[::2], words[1::2], strict=False)).get(b"options", b"").decode()
            self.far.sendall(struct.pack(">i", len(start) + 4) + start)
            while True:
                kind, body = _message(self.near)
                if kind == b"Q":
                    self.current = Exchange(body[:-1].decode())
                    self.tap.exchanges.append(self.current)
                elif kind in {b"P", b"B"}:
                    self.tap.refused = "the server speaks the extended query protocol, which is not recorded here"
                self.far.sendall(kind + struct.pack(">i", len(body) + 4) + body)
        except (OSError, EOFError):
            self.far.close()

    def back(self) -> None:
        """From PostgreSQL to the server."""
        try:
            while True:
                kind, body = _message(self.far)
                if kind == b"T":
                    self.current.columns, self.current.rows = _columns(body), []
                elif kind == b"D":
                    self.current.rows.append(_row(body))
                self.near.sendall(kind + struct.pack(">i", len(body) + 4) + body)
        except (OSError, EOFError):
            self.near.close()


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _body(sock: socket.socket) -> bytes:
    return _exactly(sock, struct.unpack(">i", _exactly(sock, 4))[0] - 4)


def _message(sock: socket.socket) -> tuple[bytes, bytes]:
    return _exactly(sock, 1), _body(sock)


def _columns(body: bytes) -> list[str]:
    """Names out of a RowDescription: each followed by 18 bytes about the type."""
    names = []
    at = 2
    for _ in range(struct.unpack_from(">h", body)[0]):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode())
        at = end + 19
    return names


def _row(body: bytes) -> list[str | None]:
    values: list[str | None] = []
    at = 2
    for _ in range(struct.unpack_from(">h", body)[0]):
        size = struct.unpack_from(">i", body, at)[0]
        at += 4
        values.append(None if size < 0 else body[at : at + size].decode())
        at += max(size, 0)
    return values
