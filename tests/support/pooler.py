"""A pooler in transaction mode, like PgBouncer: after each transaction a backend is anybody's.

It speaks as much of PostgreSQL's protocol as psycopg2's simple queries need, and passes start-up options on, which
PgBouncer does not: so nothing but the backends tells that it is there. With ``refuses_options`` it says what PgBouncer says.
"""

import queue
import socket
import struct
import threading
from contextlib import suppress

SSL_REQUEST = 80877103


class Pooler:
    """On ``port``, before a PostgreSQL on a Unix socket that asks for no password."""

    def __init__(self, socket_path, *, backends=2, refuses_options=False):
        self._path, self._room, self._refuses = str(socket_path), backends, refuses_options
        self._idle = queue.LifoQueue()
        self._greeting = b""
        self._lock = threading.Lock()
        self._sockets = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with suppress(OSError, EOFError):
            start = self._start(client)
            if self._refuses and b"options\0" in start:
                client.sendall(_message(b"E", b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"))
                client.close()
                return
            self._give(self._take(start))   # so that the greeting is known
            client.sendall(self._greeting)
            backend = None
            while True:
                kind, body = _read(client)
                if kind == b"X":
                    break
                backend = backend or self._take(start)
                backend.sendall(_message(kind, body))
                if self._answer(backend, client) == b"I":
                    self._give(backend)
                    backend = None
            if backend is not None:
                backend.sendall(_message(b"Q", b"ROLLBACK\0"))
                self._answer(backend, None)
                self._give(backend)

    def _start(self, client):
        while True:
            size, = struct.unpack("!i", _exactly(client, 4))
            start = _exactly(client, size - 4)
            if struct.unpack("!i", start[:4]) != (SSL_REQUEST,):
                return start
            client.sendall(b"N")

    def _answer(self, backend, client):
        while True:
            kind, body = _read(backend)
            if client is not None:
                client.sendall(_message(kind, body))
            if kind == b"Z":
                return body

    def _take(self, start):
        with self._lock:
            makes = self._idle.empty() and self._room > 0
            self._room -= makes
        if not makes:
            return self._idle.get()
        backend = socket.socket(socket.AF_UNIX)
        self._sockets.append(backend)
        backend.connect(self._path)
        backend.sendall(struct.pack("!i", len(start) + 4) + start)
        greeting = b""
        while not greeting.endswith(_message(b"Z", b"I")):
            greeting += _message(*_read(backend))
        self._greeting = self._greeting or greeting
        return backend

    def _give(self, backend):
        self._idle.put(backend)


def _exactly(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _read(connection):
    kind = _exactly(connection, 1)
    size, = struct.unpack("!i", _exactly(connection, 4))
    return kind, _exactly(connection, size - 4)


def _message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body
