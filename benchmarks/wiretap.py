"""A listener between our server and PostgreSQL that records every message with SQL and its answer.

It understands the simple query protocol, which psycopg2 speaks; a server with another protocol is refused with a clear
error, not silently recorded as idle. It can also send queries in the server's own sessions, unnoticed by the server.
"""

import socket
import struct
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Self

_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
_PATIENCE_S = 60
_READY = b"Z"
_OF_AN_ANSWER = {b"T", b"D", b"C", b"E", b"I", _READY}


@dataclass
class Exchange:
    """A message with SQL and the last result that PostgreSQL gave to it: column names and rows as text."""

    sql: str
    columns: list[str] = field(default_factory=list)
    rows: list[list[str | None]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    """PostgreSQL's tag for each statement of the message, such as ``SELECT 1``."""
    received: int = 0
    """The bytes of the whole answer."""
    is_ours: bool = False
    """True if the listener itself sent the message."""
    answered: threading.Event = field(default_factory=threading.Event)

    def note(self, kind: bytes, body: bytes) -> None:
        """Add a message of the answer."""
        self.received += 5 + len(body)
        if kind == b"T":
            self.columns, self.rows = _columns(body), []
        elif kind == b"D":
            self.rows.append(_row(body))
        elif kind == b"C":
            self.done.append(body[:-1].decode())


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
        self._connections: list[_Connection] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._listener, *self._sockets):
            end.close()

    def taken(self) -> list[Exchange]:
        """Return the exchanges since the last call."""
        if self.refused:
            raise RuntimeError(self.refused)
        exchanges, self.exchanges = self.exchanges, []
        return exchanges

    def ask(self, sql: str) -> list[list[str | None]]:
        """Return the rows of a query in all open sessions of the server."""
        rows = []
        for connection in self._connections:
            if connection.is_open:
                rows += connection.ask(sql)
        return rows

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
            self._connections.append(connection)
            for pump in (connection.forth, connection.back):
                threading.Thread(target=pump, daemon=True).start()


class _Connection:
    """One connection: two pumps that look at the messages that pass."""

    def __init__(self, tap: Wiretap, near: socket.socket, far: socket.socket) -> None:
        self.tap, self.near, self.far = tap, near, far
        self.is_open = False
        self._unanswered: deque[Exchange] = deque()
        self._sending = threading.Lock()

    def ask(self, sql: str) -> list[list[str | None]]:
        """Return the rows of a query of our own. Raises: TimeoutError."""
        exchange = Exchange(sql, is_ours=True)
        self._send(exchange, sql.encode() + b"\0")
        if not exchange.answered.wait(_PATIENCE_S):
            raise TimeoutError(f"no answer within {_PATIENCE_S} s: {sql}")
        return exchange.rows

    def forth(self) -> None:
        """Pump from the server to PostgreSQL."""
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
                    exchange = Exchange(body[:-1].decode())
                    self.tap.exchanges.append(exchange)
                    self._send(exchange, body)
                    continue
                if kind in {b"P", b"B"}:
                    self.tap.refused = "the server speaks the extended query protocol, which is not recorded here"
                self.far.sendall(_packed(kind, body))
        except (OSError, EOFError, struct.error):  # this includes an end before the first message is complete
            self.far.close()

    def back(self) -> None:
        """Pump from PostgreSQL to the server."""
        try:
            while True:
                kind, body = _message(self.far)
                exchange = self._unanswered[0] if self._unanswered else None
                if exchange is not None:
                    exchange.note(kind, body)
                if exchange is None or not exchange.is_ours or kind not in _OF_AN_ANSWER:
                    self.near.sendall(_packed(kind, body))
                if kind == _READY:
                    self.is_open = True
                    if exchange is not None:
                        self._unanswered.popleft().answered.set()
        except (OSError, EOFError):
            self.is_open = False
            for exchange in self._unanswered:
                exchange.answered.set()
            self.near.close()

    def _send(self, exchange: Exchange, body: bytes) -> None:
        with self._sending:  # answers come in the order of the messages
            self._unanswered.append(exchange)
            self.far.sendall(_packed(b"Q", body))


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


def _packed(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">i", len(body) + 4) + body


def _message(sock: socket.socket) -> tuple[bytes, bytes]:
    return _exactly(sock, 1), _body(sock)


def _columns(body: bytes) -> list[str]:
    """Return the names in a RowDescription: each is followed by 18 bytes about the type."""
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
        text = body[at : at + max(size, 0)].decode(errors="replace")  # a binary cursor's values may be no text
        values.append(None if size < 0 else text)
        at += max(size, 0)
    return values
