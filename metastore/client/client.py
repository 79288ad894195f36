"""A Thrift client of the metastore: every method of the interface, fail-over, and no call repeated unsafely.

Rules: a call is sent a second time only if sending it twice means the same as sending it once (``_REPEATABLE``). Any
other whose answer did not arrive raises ``AnswerLostError``: the server may have executed it. One connection carries
one call at a time, so threads that share a client wait for each other; give a thread that must not wait (a heartbeat)
its own with ``clone()``.
"""

import contextlib
import getpass
import os
import socket
import ssl
import threading
from types import ModuleType, TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from metastore.client.answers import ANSWERS
from metastore.client.tls import of_environment
from metastore.errors import MetastoreError
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from metastore.thrift_gen.operators import MetastoreOperators
from metastore.thrift_gen.operators import ttypes as operators_ttypes
from metastore.tls.contexts import ClientSide, client_context

Client = TypeVar("Client", bound="MetastoreClient")
DEFAULT_URI = "thrift://localhost:9083"
DEFAULT_PORT = 9083
URI_VARIABLE = "METASTORE_URI"

# Repeating these has the same effect as calling them once (CLIENT-1). Everything named get_* or show_* is repeatable as
# well, unless _NOT_READS has it; so are all others of our own (metastore_*). A commit is not here although the
# metastore forgives a second commit: metastore.client.outcome asks first.
_REPEATABLE = frozenset(
    (
        "abort_txn",
        "abort_txns",
        "add_dynamic_partitions",
        "add_write_ids_to_min_history",
        "aliveSince",
        "check_lock",
        "flushCache",
        "getCounter",
        "getCounters",
        "getMetaConf",
        "getName",
        "getOption",
        "getOptions",
        "getStatus",
        "getStatusDetails",
        "getVersion",
        "heartbeat",
        "heartbeat_lock_materialization_rebuild",
        "heartbeat_txn_range",
        "partition_name_has_valid_characters",
        "partition_name_to_spec",
        "partition_name_to_vals",
        "set_ugi",
        "unlock",
    )
)
_NOT_READS = frozenset(("get_delegation_token", "get_lock_materialization_rebuild", "metastore_commit_batch"))
_BROKEN = (TTransportException, TProtocolException, OSError, EOFError)


class MetastoreUnreachableError(MetastoreError):
    """Error: no server of the list answers.

    The call did nothing, or was safe to repeat and the repetition failed too.
    """


class AnswerLostError(MetastoreUnreachableError):
    """Error: the connection broke after the call had been sent, so its outcome is unknown.

    Hive's clients send it again (CLIENT-2).
    """


class Address(NamedTuple):
    """The address of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the address as it is written in hive.metastore.uris."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


def parse_uris(text: str) -> tuple[Address, ...]:
    """Parse a hive.metastore.uris value: one thrift://host[:port] or several with commas.

    Raises: ValueError that quotes the wrong part.
    """
    return tuple(_parse_uri(part.strip()) for part in text.split(","))


def _parse_uri(text: str) -> Address:
    scheme, separator, rest = text.rpartition("://")
    host, colon, port = rest.rstrip("/").rpartition(":")
    if not colon or port.endswith("]"):
        host, port = rest.rstrip("/"), str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if (separator and scheme != "thrift") or not host or not port.isascii() or not port.isdigit():
        raise ValueError(f"{text!r} is not a metastore address: write it as thrift://HOST:PORT")
    return Address(host, int(port))


class ActingFor(NamedTuple):
    """A planner's caller, for whom the client calls. ``user``: the user in its certificate; None: no user."""

    user: str | None
    address: str
    """``host:port``."""


class MetastoreClient:
    """Every Thrift method as an attribute, over one connection that is made when it is first needed.

    ``client.get_table("db", "t")`` returns the IDL's result and raises the IDL's exceptions (``client.types``), or
    MetastoreUnreachableError / AnswerLostError; a ``DomainClient`` raises our errors in place of the IDL's. Safe to use
    from several threads, one call at a time.
    """

    types: ModuleType = ttypes
    operators_types: ModuleType = operators_ttypes

    def __init__(
        self,
        uri: str | None = None,
        *,
        user: str | None = None,
        timeout_s: float = 600.0,
        connect_timeout_s: float = 10.0,
        tls: ClientSide | None = None,
        acting_for: ActingFor | None = None,
    ) -> None:
        """Prepare a client.

        ``tls``: None: from the environment (METASTORE_USE_SSL=true and kin, see `metastore.client.tls`).
        ``acting_for``: for planners, which servers trust that have the same user on the same machine, or list theirs.
        Raises: ValueError (the address), InvalidInputError (key or trust store).
        """
        self._acting_for = acting_for
        self._tls = tls or of_environment(os.environ)
        self._context = client_context(self._tls) if self._tls else None
        self.uri = uri or os.environ.get(URI_VARIABLE) or DEFAULT_URI
        self.user = user or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        self._addresses = parse_uris(self.uri)
        self._next = 0
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._one_call = threading.RLock()
        self._socket: TSocket | None = None
        self._thrift: Any = None
        self._server: Address | None = None

    def __getattr__(self, name: str) -> Any:
        """Return the Thrift method of that name, ready to be called."""
        if name.startswith("_") or not hasattr(_Thrift, name):
            raise AttributeError(f"the metastore's Thrift interface has no method {name!r}")

        def method(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, args, kwargs)

        return method

    def __enter__(self) -> Self:
        """Return the client; the first call connects."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def clone(self, *, timeout_s: float | None = None, acting_for: ActingFor | None = None) -> Self:
        """Return another client for the same servers and user, with a connection of its own."""
        return self._like(type(self), timeout_s, acting_for)

    def _like(
        self, kind: "type[Client]", timeout_s: float | None = None, acting_for: ActingFor | None = None
    ) -> "Client":
        return kind(
            self.uri,
            user=self.user,
            timeout_s=timeout_s or self._timeout_s,
            connect_timeout_s=self._connect_timeout_s,
            tls=self._tls,
            acting_for=acting_for or self._acting_for,
        )

    def close(self) -> None:
        """Close the connection after a goodbye as Hive's clients send it (oneway ``shutdown``, which stops nothing)."""
        with self._one_call:
            if self._socket is not None:
                with contextlib.suppress(*_BROKEN):  # A courtesy; the server notices the closed connection anyway.
                    self._thrift.shutdown()
            self._disconnect()

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._one_call:
            try:
                return self._send(name, args, kwargs)
            except _BrokenError as broken:
                if broken.timed_out or not _is_repeatable(name, (*args, *kwargs.values())):
                    raise AnswerLostError(
                        f"The connection to {self._server} broke during {name} ({broken}): it may or may not have been "
                        "done. Read the state back before you repeat it."
                    ) from broken
            try:
                return self._send(name, args, kwargs)
            except _BrokenError as broken:
                raise MetastoreUnreachableError(
                    f"The metastore at {self._server} broke off {name} twice: {broken}."
                ) from broken

    def _send(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._connect()
        try:
            return getattr(self._thrift, name)(*args, **kwargs)
        except _BROKEN as error:
            self._disconnect()
            raise _BrokenError(error) from error
        except ANSWERS:
            raise  # The answer was complete: the connection is good.
        except BaseException:
            self._disconnect()  # Half a message may be left on it.
            raise

    def _connect(self) -> None:
        """Ensure a live connection; a lost one is noticed before anything is sent."""
        if self._socket is not None and self._socket.isOpen():
            return
        self._disconnect()
        reasons = []
        for turn in range(len(self._addresses)):
            index = (self._next + turn) % len(self._addresses)
            address = self._addresses[index]
            try:
                self._open(address)
            except _BROKEN as error:
                self._disconnect()
                reasons.append(f"{address}: {_reason(error)}")
            else:
                self._next = index
                return
        raise MetastoreUnreachableError(
            f"No metastore answers ({'; '.join(reasons)}). Is it running, and is the address right?"
        )

    def _open(self, address: Address) -> None:
        handle = socket.create_connection(address, timeout=self._connect_timeout_s)
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._context is not None:
            handle = self._context.wrap_socket(handle, server_hostname=address.host)
        self._socket = TSocket(address.host, address.port)
        self._socket.setHandle(handle)
        self._thrift = _Thrift(TBinaryProtocolAccelerated(TBufferedTransport(self._socket, 65536)))
        self._server = address
        with contextlib.suppress(*ANSWERS):  # A server may refuse to know the user.
            self._thrift.set_ugi(self.user, [])  # The connect time-out applies: a peer that hangs here is no server.
        if self._acting_for is not None:
            self._act_for(self._acting_for)
        self._socket.setTimeout(self._timeout_s * 1000)

    def _act_for(self, caller: ActingFor) -> None:
        """Name the caller of the calls.

        Raises: the server's refusal, if it would take a proven user's calls for ours.
        """
        try:
            self._thrift.metastore_act_for(*caller)
        except ANSWERS as error:
            if caller.user and getattr(error, "type", None) != TApplicationException.UNKNOWN_METHOD:
                self._disconnect()
                raise  # An older server lacks the method; that is harmless for a caller without a proven user.

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._thrift = None


class _Thrift(ThriftHiveMetastore.Client, MetastoreOperators.Client):
    """Hive's interface and our own calls for operators, on one connection."""


class _BrokenError(Exception):
    """Error: the connection failed during a call that had been sent, or part of it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(_reason(error))
        self.timed_out = _is_timeout(error)


def _is_repeatable(name: str, args: tuple[Any, ...]) -> bool:
    if name == "allocate_table_write_ids":
        return not any(request.reallocate for request in args)  # A reallocation uses up an id each time.
    return is_repeatable(name)


def is_repeatable(name: str) -> bool:
    """Return True if repeating a method's call has the same effect as calling it once, whatever its arguments are."""
    return name in _REPEATABLE or (name.startswith(("get_", "show_", "metastore_")) and name not in _NOT_READS)


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or getattr(error, "type", None) == TTransportException.TIMED_OUT


def _reason(error: BaseException) -> str:
    """Return a phrase without library names."""
    inner = getattr(error, "inner", None) or error
    if _is_timeout(error):
        return "no answer in time"
    if isinstance(inner, ssl.SSLError):
        return f"TLS failed: {getattr(inner, 'verify_message', '') or inner.reason or inner}"
    if isinstance(inner, OSError):
        return (inner.strerror or str(inner)).lower()
    return "the server closed the connection"
