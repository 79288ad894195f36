"""Middleware around every call: admit it, run it, translate its error, encode the answer, measure, log.

Rules: an unknown method, impossible arguments, a forbidden call and a client that calls too often get an answer; the
connection stays. Whatever a handler raises, the client gets an answer; a call that PostgreSQL undid because of a
conflict is run again, `ATTEMPTS` times in all; for an unexpected failure the stack goes to the log and the real cause
to the client; a call is logged once, if it was slow or failed (not beyond a limit, which would be thousands of times),
and then its error drops the stack, which contains the call's arguments.
"""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import chain
from threading import BoundedSemaphore, Event
from typing import Any

import structlog
from thrift.Thrift import TApplicationException, TMessageType

from metastore.backoff import doubling
from metastore.config import LimitSettings
from metastore.errors import (
    AccessDeniedError,
    ConflictRetryError,
    EndedError,
    HeldUpError,
    InvalidRequestError,
    LimitReachedError,
    MetastoreError,
    OutcomeUnknownError,
    UnavailableError,
)
from metastore.telemetry.calls import CallStats
from metastore.thrift_server.auth.access import Access, Everybody
from metastore.thrift_server.dispatch.call import LATER, Call, PassedOn
from metastore.thrift_server.dispatch.errors import wire_exception
from metastore.thrift_server.dispatch.registry import Handler
from metastore.thrift_server.dispatch.sender import Sender
from metastore.thrift_server.dispatch.workers import Seats
from metastore.thrift_server.loop.address_limits import AddressLimits, Usage
from metastore.thrift_server.loop.connection import ClientConnection
from metastore.thrift_server.responses.streamed import InPieces, in_file
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import Header, Message, WireProtocol

ATTEMPTS = 3
LONGEST_LOGGED = 1000
PAUSES = 8
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(milliseconds=50), timedelta(milliseconds=500)
"""The pauses between tries of a call that a lock delays: 2.75 s in all, far below any client's time-out."""
_PLACES = BoundedSemaphore(4)
_SHARED = (UnavailableError, OutcomeUnknownError)
_log = structlog.get_logger("metastore.thrift")
_calls = structlog.get_logger("metastore.server")


class Middleware:
    """A middleware that turns a decoded call into the bytes of its answer, left in ``call.reply``."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        protocol: WireProtocol,
        stats: CallStats,
        slow_seconds: float,
        seats: Seats,
        *,
        access: Access | None = None,
        limits: AddressLimits | None = None,
        framed: bool = False,
    ) -> None:
        """Prepare the middleware. ``seats``: left by calls that wait for their clients.

        ``framed``: answers have a length in front.
        """
        self._handlers, self._protocol, self._stats, self._slow = handlers, protocol, stats, slow_seconds
        self._seats, self._framed = seats, framed
        self._access, self._limits = access or Everybody(), limits or AddressLimits(LimitSettings())

    def admit(self, connection: ClientConnection, message: Message) -> Call:
        """Convert a decoded message to a call, with its answer if no handler gets it."""
        header, method = message.header, message.header.method
        codec = CODECS[method] if method in self._handlers else None
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
            self.finish(call, AccessDeniedError(refusal))
        elif over is not None:
            self.finish(call, over)
        elif unknown:
            self.finish(call, InvalidRequestError(unknown))
        return call

    def denied(self, connection: ClientConnection, header: Header) -> bytes:
        """Return the refusal of a call for the upstream; nothing if it is allowed."""
        over = None if connection.usage is None else self._over(connection.usage, header.method)
        refusal = self._access.refusal(connection.identity, header.method)
        error = AccessDeniedError(refusal) if refusal is not None else over
        if error is None:
            return b""
        self._stats.record(header.method if header.method in CODECS else "unknown", "DENIED", 0.0)
        if refusal is not None:
            _calls.info("call_refused", method=header.method, **connection.who, outcome="DENIED", reason=refusal)
        return self.failure(header, error)

    def failure(self, header: Header, error: MetastoreError) -> bytes:
        """Encode an error as the method declares it, also for methods that we do not know."""
        codec = CODECS.get(header.method)
        exception = wire_exception(error, header.method, codec.exceptions if codec is not None else ())
        if codec is None or isinstance(exception, TApplicationException):
            plain = TApplicationException(TApplicationException.INTERNAL_ERROR, str(error))
            return self._protocol.application_exception(header.method, header.seqid, plain)
        return self._protocol.declared_exception(codec, header.seqid, exception)

    def _over(self, usage: Usage, method: str) -> LimitReachedError | None:
        """Count a call. Return why it exceeds the limits, None if it does not."""
        return self._limits.refusal(usage, method, time.monotonic())

    def refused(self, connection: ClientConnection, header: Header, error: TApplicationException) -> Call:
        """Answer a message that no handler gets."""
        unknown = error.type == TApplicationException.UNKNOWN_METHOD
        outcome = "UNKNOWN_METHOD" if unknown else "PROTOCOL_ERROR"
        self._stats.record(header.method if header.method in CODECS else "unknown", outcome, 0.0)
        _calls.info("call_refused", method=header.method, **connection.who, outcome=outcome, reason=error.message)
        call = Call(header.method, (), connection, header.seqid)
        call.expected = header.message_type == TMessageType.CALL
        call.reply = self._protocol.application_exception(header.method, header.seqid, error)
        return call

    def run(self, call: Call) -> None:
        """Run one call, as a batch of its own if its handler takes batches."""
        how = self._handlers[call.method]
        if how.lane is not None:
            self.run_batch([call])
            return
        handler = how.run
        try:
            result = handler(call, *call.args)
        except ConflictRetryError:
            result = _outcome(lambda: handler(call, *call.args), call, attempts=ATTEMPTS - 1)
        except HeldUpError as error:
            result = _patiently(lambda: handler(call, *call.args), call, error)
        except Exception as error:  # noqa: BLE001 - the client must get an answer whatever happened
            result = error
        if how.explain is not None and isinstance(result, EndedError):
            how.explain([call], [result])
        self.finish(call, result)

    def run_batch(self, calls: list[Call]) -> None:
        """Run calls of a lane: those of the same method together, methods in order of their first call."""
        by_method: dict[str, list[Call]] = {}
        for call in calls:
            by_method.setdefault(call.method, []).append(call)
        for method, batch in by_method.items():
            before, body = None, b""
            for call, result in zip(batch, self._batch_results(self._handlers[method], batch), strict=True):
                body = self.finish(call, result, body if result is before else b"")
                before = result

    def _batch_results(self, handler: Handler, batch: list[Call]) -> list[Any]:
        """Return results or errors; calls of a failed batch run alone, unless the failure is the database's.

        A commit whose outcome is unknown is never run again: it may have happened.
        """
        results = _outcome(lambda: handler.run(batch), *batch)
        if not isinstance(results, Exception):
            if len(results) == len(batch):
                if handler.explain is not None and any(isinstance(result, EndedError) for result in results):
                    handler.explain(batch, results)
                return list(results)
            results = TypeError(f"{batch[0].method} answered {len(results)} of {len(batch)} calls")
        if len(batch) == 1 or (isinstance(results, _SHARED) and not isinstance(results, ConflictRetryError)):
            return [results] * len(batch)
        return [result for call in batch for result in self._batch_results(handler, [call])]

    def finish(self, call: Call, result: Any, body: bytes = b"") -> bytes:
        """Encode the answer, count and log. Parked time does not count as the call's duration.

        ``body``: the result as bytes, if the previous call had the same. Returns the result as bytes, or None.
        """
        if result is LATER:
            return b""
        codec = CODECS[call.method]
        error: Exception | None = result if isinstance(result, Exception) else None
        if isinstance(result, PassedOn):
            call.reply, call.outcome = result
        elif error is None:
            try:
                if result is None and codec.success is not None:
                    raise TypeError("the handler returned nothing")  # noqa: TRY301
                if isinstance(result, InPieces):
                    self._send(call, result)
                else:
                    body = body or self._protocol.body(codec, result)
                    call.reply = self._protocol.head(codec, call.seqid) + body
                call.outcome = "ok"
            except Exception as encoding_error:  # noqa: BLE001 - whatever the encoder says, only this call fails
                error = encoding_error
        if error is not None:
            self._refuse(call, error)
        seconds = time.perf_counter() - call.started - call.parked
        self._stats.record(call.method, call.outcome, seconds)
        if (error is not None and not isinstance(error, LimitReachedError)) or seconds >= self._slow:
            self._log(call, error, seconds)
        if error is not None:
            _let_go(error)
            return b""
        return body

    def _send(self, call: Call, result: InPieces) -> None:
        """Send an answer while it is being read. The remainder then becomes the call's reply.

        A framed answer has its length before it: one of several pieces is first written to a file.
        """
        codec = CODECS[call.method]
        sender = Sender(call.connection, self._seats)  # type: ignore[arg-type]
        with result.pieces as pieces:
            before, after = self._protocol.around(codec, result.whole, result.kind, result.length)
            coming = (self._protocol.elements(result.kind, piece) for piece in pieces)
            data = self._protocol.head(codec, call.seqid) + before + next(coming, b"")
            if self._framed:
                more = next(coming, None)
                parts = chain((data, more or b""), coming, (after,))
                call.reply = data + after if more is None else in_file(parts, framed=True)
                return
            for piece in coming:
                rest = sender.send(data)
                call.cut_off = True  # Set in case the rest of the answer cannot be read.
                if rest is None:
                    call.reply = after
                    return
                if rest:
                    call.reply = in_file(chain((rest, piece), coming, (after,)))
                    break
                data = piece
            else:
                call.reply = data + after
        call.cut_off = False

    def _refuse(self, call: Call, error: Exception) -> None:
        codec = CODECS[call.method]
        exception = wire_exception(error, call.method, codec.exceptions)
        call.outcome = type(exception).__name__
        try:
            if isinstance(exception, TApplicationException):
                call.outcome = "INTERNAL_ERROR"
                call.reply = self._protocol.application_exception(call.method, call.seqid, exception)
            else:
                call.reply = self._protocol.declared_exception(codec, call.seqid, exception)
        except Exception:  # noqa: BLE001 - a text that cannot be encoded
            text = str(getattr(exception, "message", None)).encode("ascii", "backslashreplace").decode()
            plain = TApplicationException(TApplicationException.INTERNAL_ERROR, text)
            call.outcome = "INTERNAL_ERROR"
            call.reply = self._protocol.application_exception(call.method, call.seqid, plain)

    def _log(self, call: Call, error: Exception | None, seconds: float) -> None:
        fields = {
            "method": call.method,
            "peer": call.connection.peer,
            "user": call.connection.user,
            "ms": round(seconds * 1000, 1),
            **(call.context or {}),
        }
        if error is None:
            _log.warning("call_slow", **fields)
        elif call.outcome == "INTERNAL_ERROR" and not isinstance(error, MetastoreError | TApplicationException):
            _log.error("call_failed", outcome=call.outcome, exc_info=error, **fields)
        else:
            _log.info("call_refused", outcome=call.outcome, reason=_reason(error), **fields)


def _let_go(error: BaseException) -> None:
    """Drop the stacks of an error and of its causes.

    Frames and errors refer to each other, and a client's data would stay until the garbage collector runs.
    """
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is not None and current.__traceback__ is not None:
            current.__traceback__ = None
            waiting += [current.__cause__, current.__context__]


def _reason(error: Exception) -> str:
    return (getattr(error, "message", None) or str(error))[:LONGEST_LOGGED]


def _patiently(run: Callable[[], Any], call: Call, error: HeldUpError) -> Any:
    """Run a handler that another's lock delays again for a while; return its result, or the last refusal.

    This keeps a thread, so only a few calls do so at a time; the others are refused at once.
    """
    if not _PLACES.acquire(blocking=False):
        return error
    try:
        for pause in doubling(_FIRST_PAUSE, _LONGEST_PAUSE, PAUSES):
            Event().wait(pause.total_seconds())
            if call.connection.closed:
                return error
            result = _outcome(run, call)
            if not isinstance(result, HeldUpError):
                return result
            error = result
        return error
    finally:
        _PLACES.release()


def _outcome(run: Callable[[], Any], *calls: Call, attempts: int = ATTEMPTS) -> Any:
    """Return the result or the exception of a handler; run it again if PostgreSQL asks for that."""
    for left in reversed(range(attempts)):
        try:
            return run()
        except ConflictRetryError as error:
            if not left:
                return error
            for call in calls:
                call.log(attempts=ATTEMPTS - left + 1)
        except Exception as error:  # noqa: BLE001 - the client must get an answer whatever happened
            return error
    raise AssertionError
