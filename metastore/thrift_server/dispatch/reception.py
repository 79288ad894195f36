"""From a decoded message to its call, or to the answer that it gets although no handler sees it.

Rule: an unknown method, arguments that cannot be, and a client that may not call it, or calls too often, are answered;
the connection stays.
"""

import time
from collections.abc import Iterable

import structlog
from thrift.Thrift import TApplicationException, TMessageType

from metastore.errors import AccessDeniedError, InvalidRequestError, LimitReachedError, MetastoreError
from metastore.telemetry.calls import CallStats
from metastore.thrift_server.auth.access import Access
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.dispatch.errors import wire_exception
from metastore.thrift_server.dispatch.middleware import Middleware
from metastore.thrift_server.loop.address_limits import Limits, Usage
from metastore.thrift_server.loop.connection import ClientConnection
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import Header, Message, WireProtocol

_log = structlog.get_logger("metastore.server")


class Reception:
    """Who may call what, and how."""

    def __init__(
        self,
        methods: Iterable[str],
        access: Access,
        middleware: Middleware,
        protocol: WireProtocol,
        stats: CallStats,
        limits: Limits,
    ) -> None:
        """``methods``: those that have a handler."""
        self._limits = limits
        self._codecs = {method: CODECS[method] for method in methods}
        self._access, self._middleware = access, middleware
        self._protocol, self._stats = protocol, stats

    def call(self, connection: ClientConnection, message: Message) -> Call:
        """The call that a decoded message is, with its answer if no handler gets to see it."""
        header, method = message.header, message.header.method
        codec = self._codecs.get(method)
        started = time.perf_counter()
        over = None if connection.usage is None else self._over(connection.usage, method)
        if codec is None:
            text = f"Invalid method name: '{method}'"
            return self.refused(connection, header, TApplicationException(TApplicationException.UNKNOWN_METHOD, text))
        complaint = message.complaint or codec.unset(message.arguments)
        if complaint:
            return self.refused(
                connection, header, TApplicationException(TApplicationException.PROTOCOL_ERROR, complaint)
            )
        unknown = codec.unknown(message.arguments)
        call = Call(method, codec.read_arguments(message.arguments), connection, header.seqid, started)
        if message.raw is not None:
            call.raw = message.raw
        if header.message_type != TMessageType.CALL:
            call.expected = False
        refusal = self._access.refusal(connection.identity, method, call.args)
        if refusal is not None:
            self._middleware.deny(call, AccessDeniedError(refusal))
        elif over is not None:
            self._middleware.deny(call, over)
        elif unknown:
            self._middleware.deny(call, InvalidRequestError(unknown))
        return call

    def denied(self, connection: ClientConnection, header: Header) -> bytes:
        """The answer to a call of the upstream's that is not allowed; nothing if it is."""
        over = None if connection.usage is None else self._over(connection.usage, header.method)
        refusal = self._access.refusal(connection.identity, header.method)
        error = AccessDeniedError(refusal) if refusal is not None else over
        if error is None:
            return b""
        self._stats.record(header.method if header.method in CODECS else "unknown", "DENIED", 0.0)
        if refusal is not None:
            _log.info("call_refused", method=header.method, **connection.who, outcome="DENIED", reason=refusal)
        return self.failure(header, error)

    def failure(self, header: Header, error: MetastoreError) -> bytes:
        """The answer that carries an error, as the method declares it; for methods that we do not know as well."""
        codec = CODECS.get(header.method)
        exception = wire_exception(error, header.method, codec.exceptions if codec is not None else ())
        if codec is None or isinstance(exception, TApplicationException):
            plain = TApplicationException(TApplicationException.INTERNAL_ERROR, str(error))
            return self._protocol.application_exception(header.method, header.seqid, plain)
        return self._protocol.declared_exception(codec, header.seqid, exception)

    def _over(self, usage: Usage, method: str) -> LimitReachedError | None:
        """Count a call; why it is too many, None if it is not."""
        return self._limits.refusal(usage, method, time.monotonic())

    def refused(self, connection: ClientConnection, header: Header, error: TApplicationException) -> Call:
        """A message that no handler gets to see, answered."""
        unknown = error.type == TApplicationException.UNKNOWN_METHOD
        outcome = "UNKNOWN_METHOD" if unknown else "PROTOCOL_ERROR"
        self._stats.record(header.method if header.method in CODECS else "unknown", outcome, 0.0)
        _log.info("call_refused", method=header.method, **connection.who, outcome=outcome, reason=error.message)
        call = Call(header.method, (), connection, header.seqid)
        call.expected = header.message_type == TMessageType.CALL
        call.reply = self._protocol.application_exception(header.method, header.seqid, error)
        return call
