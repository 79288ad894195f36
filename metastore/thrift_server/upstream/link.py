"""The event loop's state of one client's connection to the upstream, and of the call on it."""

from socket import socket

from metastore.thrift_server.loop.connection import ClientConnection
from metastore.thrift_server.loop.tls_socket import TlsSocket
from metastore.thrift_server.upstream.reply_reader import Reply
from metastore.thrift_server.wire.protocol import Header


class UpstreamLink:
    """A client's link to the upstream."""

    __slots__ = (
        "asked",
        "attempts",
        "begun",
        "client",
        "fd",
        "header",
        "held",
        "interest",
        "lacks",
        "moved",
        "passed",
        "raw",
        "reply",
        "said",
        "saying",
        "sending",
        "sock",
    )

    def __init__(self, client: ClientConnection) -> None:
        self.client = client
        self.sock: socket | TlsSocket | None = None
        self.fd = -1
        self.interest = 0
        self.header: Header | None = None  # The header of the call in work.
        self.raw = b""
        self.reply: Reply | None = None
        self.sending: memoryview | None = None  # The rest of the request.
        self.asked = False  # The whole request was sent.
        self.passed = False  # A part of the answer has gone to the client.
        self.held: bytearray | None = None  # The answer so far, of a method that the upstream may lack.
        self.lacks: set[str] = set()  # The methods that the other end of this connection does not have.
        self.attempts = 0
        self.said = 0  # The version of the session that the connection knows.
        self.saying = b""  # The message that the call in work adds to the session.
        self.begun = self.moved = 0.0
