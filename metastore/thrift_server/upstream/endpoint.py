"""A connection to the upstream as its clients make it: the address, and the first messages.

Rule: a connection stands for one client. The client's statements about itself (``set_ugi``) and its settings
(``setMetaConf``) are sent on it first; a client whose certificate named a user is that user there too.
"""

import socket
import ssl
from collections.abc import Sequence
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from metastore.catalog.service.upstream_changes import OutcomeLostError
from metastore.client.client import Address, parse_uris
from metastore.config import ServerSettings, UpstreamSettings
from metastore.errors import InvalidInputError, MetaError, UnavailableError
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore
from metastore.thrift_server.dispatch.call import Connection
from metastore.thrift_server.loop.client_session import Session, require_short
from metastore.thrift_server.loop.tls_socket import TlsSocket
from metastore.thrift_server.upstream.reply_reader import FramedReply, Reply, UnframedReply
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import BinaryProtocol, CompactProtocol, Header, WireProtocol
from metastore.thrift_server.wire.scanner import MalformedError
from metastore.tls.contexts import ClientSide, RenewedContext

PIECE = 1 << 16


class Upstream:
    """The address of the upstream, and its protocol."""

    def __init__(self, settings: UpstreamSettings, server: ServerSettings) -> None:
        """Prepare the endpoint. Raises: InvalidInputError (an address, a store)."""
        try:
            self._addresses = parse_uris(",".join(settings.uris))
        except ValueError as error:
            raise InvalidInputError(f"metastore.upstream.uris: {error}.") from error
        self.settings, self._framed = settings, server.framed
        self.protocol: WireProtocol = CompactProtocol() if server.compact_protocol else BinaryProtocol()
        self._accelerated: Any = TCompactProtocolAccelerated if server.compact_protocol else TBinaryProtocolAccelerated
        self._tls = RenewedContext(_client_side(settings)) if settings.use_ssl else None
        self._next = 0

    def __str__(self) -> str:
        """Return the addresses."""
        return ", ".join(map(str, self._addresses))

    def message(self, raw: bytes) -> bytes:
        """Return a message in the form in which it is sent."""
        return len(raw).to_bytes(4) + raw if self._framed else raw

    def reply(self, method: str) -> Reply:
        """Return a reader of the next answer."""
        limit = self.settings.max_reply_size
        if self._framed:
            return FramedReply(self.protocol, method, limit)
        return UnframedReply(self.protocol, method, limit)

    def bare(self, message: bytes) -> bytes:
        """Return a message without its frame."""
        return message[4:] if self._framed else message

    def written(self, method: str, *arguments: Any) -> bytes:
        """Encode a call of ours."""
        buffer = TMemoryBuffer()
        getattr(ThriftHiveMetastore.Client(self._accelerated(buffer)), f"send_{method}")(*arguments)
        written: bytes = buffer.getvalue()
        return written

    def read(self, method: str, answer: bytes) -> Any:
        """Decode the result of an answer. Raises: the generated exception that it carries, TApplicationException."""
        return getattr(ThriftHiveMetastore.Client(self._accelerated(TMemoryBuffer(answer))), f"recv_{method}")()

    def set_ugi(self, user: str) -> bytes:
        """Encode the message that names a user."""
        return self.written("set_ugi", user, [])

    def note_setting(self, client: Connection, header: Header, message: bytes) -> bytes:
        """Keep a ``setMetaConf`` message, and return it. Raises: MetaError for too much."""
        require_short(header.method, len(message))
        try:
            said, _ = self.protocol.decode(CODECS[header.method], message, header.end)
        except Exception as error:
            raise MetaError(f"{header.method} cannot be read: {error}") from error
        written = self.written(header.method, said.key, said.value)
        session_of(client).set(said.key or "", written)
        return written

    def open(self, said_first: Sequence[bytes]) -> socket.socket:
        """Return a blocking connection to the first address that answers, beginning with the last that did.

        Raises: UnavailableError with the failure of each.
        """
        reasons = []
        for turn in range(len(self._addresses)):
            index = (self._next + turn) % len(self._addresses)
            address = self._addresses[index]
            try:
                sock = self._open(address, said_first)
            except (OSError, MalformedError) as error:
                reasons.append(f"upstream {address} does not answer: {reason(error)}")
            else:
                self._next = index
                return sock
        raise UnavailableError("; ".join(reasons))

    def said_first(self, client: Connection, without: bytes = b"") -> tuple[bytes, ...]:
        """Return the messages that a new connection sends first: the client's user, proven or not, and its settings.

        ``without``: a message to leave out, because it is sent next.
        """
        session, proven = session_of(client), client.identity.user
        said = (*((self.set_ugi(proven),) if proven else session.user), *session.settings)
        return tuple(message for message in said if message is not without)

    def call(self, method: str, raw: bytes, said_first: Sequence[bytes]) -> tuple[bytes, str]:
        """Make a call on a connection of its own; return the answer as it came, and its outcome.

        For threads that may wait.
        Raises: UnavailableError (it was not sent), OutcomeLostError (unknown).
        """
        with self.open(said_first) as sock:
            sock.settimeout(self.settings.timeout.total_seconds())
            reply = self.reply(method)
            try:
                answer = self._exchange(sock, raw, reply)
                return self.bare(answer), reply.outcome
            except (OSError, MalformedError) as error:
                raise OutcomeLostError(lost(self, method, reason(error))) from error

    def _open(self, address: Address, said_first: Sequence[bytes]) -> socket.socket:
        sock = socket.create_connection(address, timeout=self.settings.connect_timeout.total_seconds())
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._tls is not None:
                sock = self._tls.get().wrap_socket(sock, server_hostname=address.host)
            for raw in said_first:
                self._exchange(sock, raw, self.reply("set_ugi"))  # The answer does not matter: a server may refuse.
        except BaseException:
            sock.close()
            raise
        return sock

    def _exchange(self, sock: socket.socket, raw: bytes, reply: Reply) -> bytes:
        sock.sendall(self.message(raw))
        pieces = []
        while True:
            data = sock.recv(PIECE)
            if not data:
                raise ConnectionResetError("the upstream closed the connection")
            pieces.append(data)
            if reply.take(data):
                return b"".join(pieces)


def session_of(client: Connection) -> Session:
    """Return the first messages of the client's upstream connections."""
    if client.session is None:
        client.session = Session()
    return client.session


def unblocked(sock: socket.socket) -> socket.socket | TlsSocket:
    """Return the connection for an event loop."""
    if isinstance(sock, ssl.SSLSocket):
        return TlsSocket(sock)
    sock.setblocking(False)  # noqa: FBT003 - the module's own
    return sock


def _client_side(settings: UpstreamSettings) -> ClientSide:
    return ClientSide(
        settings.truststore,
        settings.truststore_password,
        settings.keystore,
        settings.keystore_password,
        verify_hostname=settings.verify_hostname,
    )


def reason(error: BaseException) -> str:
    """Return the reason of an error, as a phrase."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not believed: {error.verify_message.rstrip('.')}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS: {error.reason.lower().replace('_', ' ')}"
    return (getattr(error, "strerror", None) or str(error)).lower()


def lost(upstream: Upstream, method: str, why: str) -> str:
    """Return the error text for a client whose answer did not arrive."""
    return (
        f"The connection to the upstream ({upstream}) broke off during {method} ({why}): it may or may not have "
        "been done. Read the state back before you repeat it."
    )
