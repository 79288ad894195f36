"""What an HTTP port listens with."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from metastore.tls.contexts import RenewedContext

_PAUSE_S = 0.05


class Listener(ThreadingHTTPServer):
    """A thread for each connection, which does its handshake, too."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        tls: RenewedContext | None,
        inherited: socket.socket | None = None,
    ) -> None:
        """``inherited``: a socket that listens already, from the process that started this one."""
        self._tls = tls
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler, bind_and_activate=inherited is None)
        if inherited is not None:
            self.socket.close()
            self.socket = inherited
            self._note_address()

    def server_bind(self) -> None:
        """Bind without looking up our own name, which may take seconds where names cannot be looked up."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self._note_address()

    def _note_address(self) -> None:
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection, whose handshake, if any, is done by the thread that reads from it. Raises: OSError.

        Without descriptors the listener stays readable: so a pause, or this thread would do nothing but try.
        """
        try:
            connection, address = super().get_request()
        except OSError:
            threading.Event().wait(_PAUSE_S)
            raise
        if self._tls is not None:
            connection = self._tls.get().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in mid-answer is no news."""
