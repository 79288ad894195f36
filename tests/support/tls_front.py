"""TLS in front of a PostgreSQL that has none, as a pooler or a proxy has it: what arrives in the clear is turned away.

Clients of PostgreSQL ask for TLS before anything else, and are answered by one letter.
"""

import selectors
import socket
import ssl
import threading
from contextlib import suppress

_TLS, _GSS = 80877103, 80877104
_YES, _NO = b"S", b"N"


class TlsFront:
    """A context manager; ``port`` is where it listens on 127.0.0.1."""

    def __init__(self, port: int, keystore) -> None:
        """``port``: that of the PostgreSQL; ``keystore``: a PEM file with key and certificate."""
        self._behind, self.served, self.turned_away = port, 0, 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(keystore)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            while (code := int.from_bytes(client.recv(8, socket.MSG_WAITALL)[4:])) == _GSS:
                client.sendall(_NO)
            if code != _TLS:
                self.turned_away += 1
                return
            client.sendall(_YES)
            with self._context.wrap_socket(client, server_side=True) as front, \
                    socket.create_connection(("127.0.0.1", self._behind)) as back:
                self.served += 1
                _pass_on(front, back)


def _pass_on(front: ssl.SSLSocket, back: socket.socket) -> None:
    """Both ways, on this thread alone: OpenSSL wants one thread for a connection."""
    with selectors.DefaultSelector() as both:  # select() knows no descriptor above 1023
        for side in (front, back):
            both.register(side, selectors.EVENT_READ)
        while True:
            for source in [front] if front.pending() else [key.fileobj for key, _ in both.select()]:
                data = source.recv(1 << 16)
                if not data:
                    return
                (back if source is front else front).sendall(data)
