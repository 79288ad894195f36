"""The Thrift server: one event loop reads, decodes and answers for all connections, and runs what is coalesced.

Rules: an idle client costs a socket and a kilobyte, no thread. What one client sends (garbage, half a message, nothing
at all, too much) hurts no other connection. Answers for clients that are gone are dropped. Draining finishes what was
begun.
"""

import os
import resource
import select
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import structlog
from thrift.Thrift import TApplicationException, TMessageType

from metastore.config import ServerSettings
from metastore.config.security import TlsSettings
from metastore.telemetry.calls import CallStats
from metastore.thrift_server.auth import identity
from metastore.thrift_server.auth.access import Access, Everybody
from metastore.thrift_server.call import Call
from metastore.thrift_server.codec import CODECS
from metastore.thrift_server.connection import MOST_AHEAD, ClientConnection
from metastore.thrift_server.handler import Handler
from metastore.thrift_server.handshakes import Handshakes, Step
from metastore.thrift_server.large import Turns
from metastore.thrift_server.messages import PIECE, Message, Messages
from metastore.thrift_server.middleware import Middleware
from metastore.thrift_server.protocol import BinaryProtocol, CompactProtocol, Header, WireProtocol
from metastore.thrift_server.scanner import MalformedError
from metastore.thrift_server.tls_socket import TlsSocket
from metastore.thrift_server.workers import Lane, Pool, Seats, Waits
from metastore.tls.contexts import RenewedContext

MOST_IN_A_ROW = 16
"""Requests sent ahead that one connection has answered at once, before all others have had their turn."""
BACKLOG = 1024

_READ, _WRITE = select.EPOLLIN | select.EPOLLRDHUP, select.EPOLLOUT
_ROUNDS = 16
"""How often the loop looks for more calls before it begins batches. One look that finds none is enough (ADR 25)."""
_SWEEP_SECONDS = 1.0
_DRAIN_SECONDS = 0.02
_LAST_ROUND_SECONDS = 1.0
_SWITCH_SECONDS = 0.0002
"""How long a computing thread may keep the interpreter from the loop, which needs it back after every system call.
Measured with one handler computing and 8 clients: 11,000 getStatus a second, 1,700 with Python's default."""
_WARN_EVERY_SECONDS = 10.0
_log = structlog.get_logger("metastore.server")


class Server:
    """Serves the handlers on a port until it is drained."""

    def __init__(self, settings: ServerSettings, handlers: Mapping[str, Handler], stats: CallStats | None = None, *,
                 reuse_port: bool = False, tls: TlsSettings | None = None, access: Access | None = None,
                 seats: Seats | None = None) -> None:
        """``reuse_port``: several processes listen on one port and the kernel spreads connections over them.

        ``tls``: None or without ``use_ssl``: in the clear. Raises: InvalidInputError (a key store cannot be used).
        """
        self._tls = tls or TlsSettings()
        self._context = RenewedContext(self._tls) if self._tls.use_ssl else None
        self._access = access or Everybody()
        self._handshakes = Handshakes(self._stepped)
        self._steps: deque[Step] = deque()
        self._settings, self._handlers, self._reuse_port = settings, handlers, reuse_port
        self.stats = stats or CallStats()
        self.stats.server = self
        self._protocol: WireProtocol = CompactProtocol() if settings.compact_protocol else BinaryProtocol()
        slow = settings.slow_call.total_seconds()
        self._messages = Messages(self._protocol, settings)
        self._middleware = Middleware(handlers, self._protocol, self.stats, slow)
        self._finished: deque[list[Call]] = deque()
        self._runnable: deque[Lane] = deque()
        self._pool = Pool(seats or Seats(settings.worker_threads), self._middleware.run, self._done)
        lanes = {handler.lane for handler in handlers.values() if handler.lane}
        self._lanes = {name: Lane(self._middleware.run_batch, self._finished.append, self._wanted) for name in lanes}
        self._put = {
            name: self._lanes[handler.lane].put if handler.lane else self._pool.put
            for name, handler in handlers.items()
            if not handler.immediate
        }
        self._connections: dict[int, ClientConnection] = {}
        self._waking = False
        self._resumed: deque[ClientConnection] = deque()
        self._ahead: deque[ClientConnection] = deque()  # they have sent more than their share
        self._taken = 0  # bytes that were received or could not be sent since the last look at all connections
        self._large = Turns(self._begin_large)
        self._busy: set[ClientConnection] = set()  # of calls in work, also when the client is gone
        self._draining: float | None = None
        self._warned = -_WARN_EVERY_SECONDS
        self._now = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="thrift-loop", daemon=True)
        self._running = False
        self.refused_connections = self.failed_handshakes = 0

    # ------------------------------------------------------------------------------------------------ life

    @property
    def ready(self) -> bool:
        """Whether new connections are accepted."""
        return self._running and self._draining is None

    @property
    def connections(self) -> int:
        """Open client connections."""
        return len(self._connections)

    @property
    def in_flight(self) -> int:
        """Calls that are being worked on."""
        return len(self._busy)

    def start(self) -> tuple[str, int]:
        """Listen and serve; the address is the one bound, so port 0 asks for a free one. Raises: OSError."""
        settings = self._settings
        sys.setswitchinterval(_SWITCH_SECONDS)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._listener = socket.create_server(
            (settings.host, settings.port),
            family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET,
            backlog=BACKLOG,
            reuse_port=self._reuse_port,
        )
        self._listener.settimeout(0)
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._waits = Waits(self._epoll)
        self._pool.start()
        if self._context is not None:
            self._handshakes.start()
        self._large.start()
        self._running = True
        self._thread.start()
        host, port = self._listener.getsockname()[:2]
        return host, port

    def begin_drain(self, timeout: float | None = None) -> None:
        """From now on: accept nobody, finish the calls in flight. The default time-out is that of the settings."""
        if self._running and self._draining is None:
            seconds = self._settings.drain_timeout.total_seconds() if timeout is None else timeout
            self._draining = time.monotonic() + seconds
            os.eventfd_write(self._wake, 1)

    def drain(self, timeout: float | None = None) -> bool:
        """Stop accepting, finish the calls in flight, close all connections; False if calls were left unfinished.

        The time-out counts from the beginning of the drain. Safe to call twice, and from a signal's thread.
        """
        self.begin_drain(timeout)
        if not self._running or self._draining is None:
            return True
        self._thread.join(max(0.0, self._draining - time.monotonic()) + _LAST_ROUND_SECONDS)
        finished = not self._busy
        self._large.stop()
        self._pool.stop(0.2)
        self._handshakes.stop()
        return finished

    # ------------------------------------------------------------------------------------------------ loop

    def _run(self) -> None:
        """The loop's thread."""
        try:
            swept = time.monotonic()
            rounds = 0
            while not self._over():
                patience = _SWEEP_SECONDS if self._draining is None else _DRAIN_SECONDS
                events = self._epoll.poll(0 if self._runnable or self._ahead else patience)
                self._now = time.monotonic()
                for fd, event in events:
                    connection = self._connections.get(fd)
                    if connection is not None:
                        self._serve(connection, event)
                    elif fd == self._wake:
                        self._go_on()
                    elif fd == self._listener.fileno():
                        self._accept()
                    else:
                        self._waits.end(fd)
                for _ in range(len(self._ahead)):
                    self._resume(self._ahead.popleft())
                rounds = rounds + 1 if events and self._runnable else 0
                if not events or rounds == _ROUNDS:
                    rounds = 0
                    self._run_lanes()
                self._answer()
                if self._now - swept >= _SWEEP_SECONDS or self._taken > self._settings.max_buffered >> 3:
                    swept = self._now
                    self._sweep()
                    self._waits.sweep(self._now)
        finally:
            self._running = False
            for connection in list(self._connections.values()):
                self._close(connection)
            self._listener.close()
            self._epoll.close()

    def _over(self) -> bool:
        """Whether draining is complete; begins it and closes what is idle."""
        if self._draining is None:
            return False
        if self._listener.fileno() >= 0:
            self._epoll.unregister(self._listener.fileno())
            self._listener.close()
            return False  # one more round for requests that have arrived already
        for connection in list(self._busy):
            _hurry(connection)
        for connection in [c for c in self._connections.values() if not c.busy and not c.sending]:
            self._close(connection)
        return not (self._connections or self._busy) or self._now >= self._draining

    def _serve(self, connection: ClientConnection, event: int) -> None:
        """One connection has something to read or room to write. Nothing that goes wrong here leaves the connection."""
        try:
            if connection.handshaking:
                self._take_step(connection)
                return
            if event & select.EPOLLOUT:
                self._send_rest(connection)
            if event & ~select.EPOLLOUT and not connection.closed:
                self._read(connection)
        except MalformedError as error:
            _log.info("connection closed: malformed message", **connection.who, reason=str(error))
            self._close(connection)
        except Exception:  # noqa: BLE001 - the loop serves everybody else
            _log.exception("connection closed: unexpected error", **connection.who)
            self._close(connection)

    def _accept(self) -> None:
        """Take all waiting connections; those beyond the limit are closed at once."""
        for _ in range(BACKLOG):
            try:
                sock, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self._warn("cannot accept a connection", reason=str(error), connections=len(self._connections))
                time.sleep(0.01)  # noqa: TID251 - out of file descriptors: the listener stays readable
                return
            if len(self._connections) >= self._settings.max_connections:
                self.refused_connections += 1
                self._warn(
                    "connection refused: too many connections",
                    peer=address[0],
                    limit=self._settings.max_connections,
                    setting="metastore.server.max.connections",
                    refused=self.refused_connections,
                )
                sock.close()
                continue
            sock.settimeout(0)
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(self._settings.tcp_keepalive))
            if self._context is None:
                self._add(ClientConnection(sock, address, self._now), _READ)
            else:
                self._shake_hands(sock, address)

    def _add(self, connection: ClientConnection, interest: int) -> None:
        self._connections[connection.fd] = connection
        connection.interest = interest
        self._epoll.register(connection.fd, interest)

    # ------------------------------------------------------------------------------------------------ handshakes

    def _shake_hands(self, sock: socket.socket, address: Any) -> None:
        """Begin a TLS connection; it is watched for one event at a time until its handshake is complete."""
        try:
            tls = TlsSocket(sock, self._context.get())  # type: ignore[union-attr]
        except OSError as error:  # gone already
            self.failed_handshakes += 1
            _log.debug("tls_handshake_failed", peer=address[0], reason=str(error))
            sock.close()
            return
        connection = ClientConnection(tls, address, self._now)
        connection.handshaking = True
        self._add(connection, _READ | select.EPOLLONESHOT)

    def _take_step(self, connection: ClientConnection) -> None:
        """Something has arrived: the next step, on another thread. Until it is back nobody closes the socket."""
        if not connection.busy:
            connection.busy = True
            self._handshakes.step(connection)

    def _stepped(self, step: Step) -> None:
        """Called by the handshakes' threads."""
        self._steps.append(step)
        self._ring()

    def _go_on_shaking(self, step: Step) -> None:
        """The loop takes the outcome of a step up."""
        connection = step.connection
        connection.busy = False
        if connection.closed:
            connection.sock.close()
        elif step.error is not None:
            self._end_handshake(connection, _tls_reason(step.error))
        elif step.waits_for:
            self._epoll.modify(connection.fd, step.waits_for | select.EPOLLRDHUP | select.EPOLLONESHOT)
        else:
            tls: TlsSocket = connection.sock  # type: ignore[assignment]
            connection.identity = identity.of_certificate(tls.certificate, self._tls.client_user)
            connection.user = connection.identity.user
            connection.handshaking = False
            connection.active = self._now
            connection.interest = _READ
            self._epoll.modify(connection.fd, _READ)
            self._read(connection)  # the first message may have come with the end of the handshake

    def _end_handshake(self, connection: ClientConnection, reason: str) -> None:
        self.failed_handshakes += 1
        self._warn("tls_handshake_failed", peer=connection.peer, reason=reason, failed=self.failed_handshakes)
        self._close(connection)

    # ------------------------------------------------------------------------------------------------ connections

    def _warn(self, event: str, **fields: Any) -> None:
        """A warning that may come thousands of times: written every few seconds."""
        if self._now - self._warned >= _WARN_EVERY_SECONDS:
            self._warned = self._now
            _log.warning(event, **fields)

    def _sweep(self) -> None:
        """Close what is idle or stuck for too long, and what is stuck for longest while all together hold too much.

        A message that never gets complete counts as idle.
        """
        self._taken = 0
        patience = self._tls.handshake_timeout.total_seconds()
        for connection in [c for c in self._connections.values() if c.handshaking and not c.busy]:
            if self._now - connection.active > patience:
                self._end_handshake(connection, f"not complete after {patience:.0f} s")
        limit = self._settings.idle_timeout.total_seconds()
        if limit > 0:
            for connection in [c for c in self._connections.values() if not c.busy and self._now - c.active > limit]:
                _log.info("connection closed: idle", **connection.who, seconds=round(limit))
                self._close(connection)
        patience = self._settings.transfer_timeout.total_seconds()
        holding = [c for c in list(self._connections.values()) if c.held]
        for connection in holding if patience > 0 else ():
            if connection.stuck(self._now, patience):
                _log.info("connection closed: half a request or an answer does not move", **connection.who,
                          bytes=connection.held, setting="metastore.server.transfer.timeout")
                self._close(connection)
        excess = sum(connection.held for connection in holding) - self._settings.max_buffered
        for connection in sorted(holding, key=lambda c: c.moved) if excess > 0 else ():
            if excess > 0 and connection.held > PIECE:
                excess -= connection.held
                _log.warning("connection closed: half requests and answers take too much memory", **connection.who,
                             bytes=connection.held, setting="metastore.server.max.buffered")
                self._close(connection)

    def _close(self, connection: ClientConnection) -> None:
        """Forget the connection; a call that is being worked on goes on, and its answer is dropped."""
        if not connection.closed:
            connection.closed = True
            del self._connections[connection.fd]
            connection.received, connection.scanner, connection.sending, connection.message = b"", None, None, None
            _hurry(connection)
            with suppress(OSError):  # the thread of its call may just have closed it
                self._epoll.unregister(connection.fd)
            if not connection.busy:
                connection.sock.close()

    def _ended(self, connection: ClientConnection) -> None:
        """The client has ended the connection, or its machine has."""
        if not connection.farewell:
            connection.left = time.monotonic()
        self._close(connection)

    def _watch(self, connection: ClientConnection, interest: int) -> None:
        if connection.interest != interest:
            connection.interest = interest
            self._epoll.modify(connection.fd, interest)

    # ------------------------------------------------------------------------------------------------ requests

    def _read(self, connection: ClientConnection) -> None:
        """Take what has arrived."""
        try:
            data = connection.sock.recv(PIECE)
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionResetError:
            data = b""
        except OSError:  # the network has given up, which says nothing about the client
            self._close(connection)
            return
        if not data:
            self._ended(connection)
            return
        self._taken += len(data)
        connection.moved = self._now
        if not connection.received:
            connection.received = data
            connection.since = self._now
        else:
            if isinstance(connection.received, bytes):
                connection.received = bytearray(connection.received)
            connection.received += data
        if connection.busy or connection.sending:
            if len(connection.received) > MOST_AHEAD:
                self._watch(connection, connection.interest & ~_READ)
            return
        self._next(connection)

    def _next(self, connection: ClientConnection) -> None:
        """Begin calls until one is in work, no message is complete or it is others' turn. Raises: MalformedError."""
        for _ in range(MOST_IN_A_ROW):
            if not connection.received or connection.busy or connection.sending or connection.closed:
                return
            message = self._messages.next(connection)
            if message is None:
                return
            connection.active = connection.since = self._now
            self._begin(connection, message)
        if connection.received and not connection.waiting:
            connection.waiting = True
            self._ahead.append(connection)

    def _begin(self, connection: ClientConnection, message: Message) -> None:
        """Hand a message to its handler, or answer it at once. Raises: MalformedError."""
        header = message.header
        if header.message_type not in {TMessageType.CALL, TMessageType.ONEWAY}:
            raise MalformedError(f"a message of type {header.message_type} is not a call")
        codec = CODECS.get(header.method)
        connection.calls += 1
        if codec is not None and codec.oneway:
            connection.farewell = header.method == "shutdown"
            return  # shutdown and reinitialize: heard, without effect, and without an answer even if sent as a call
        if message.data is not None:
            self._occupy(connection)
            connection.message = message
            self._large.put(connection)
            return
        call = self._call(connection, message)
        put = self._put.get(call.method)
        if put is not None and not call.reply:
            self._occupy(connection)
            call.lane = put
            put(call)
            return
        if not call.reply:
            self._middleware.run(call)
        if call.expected:
            self._send(connection, call.reply)
            self._watch_sending(connection)

    def _begin_large(self, connection: ClientConnection) -> None:
        """As `_begin`, for a large message whose turn it is, on the thread of those.

        Its call goes to the pool even if it is one of a lane: what takes long must not run on the event loop.
        """
        message, connection.message = connection.message, None
        if message is None or message.data is None:  # the client is gone
            call = Call("", (), connection)
            call.expected, call.large, call.reply = False, True, b"dropped"
            self._done(call)
            return
        try:
            call = self._call(connection, self._messages.decoded(message.header, message.data))
        except Exception as error:  # noqa: BLE001 - the client must get an answer whatever happened
            _log.exception("a large message was given up", **connection.who)
            call = self._refused(connection, message.header, TApplicationException(
                TApplicationException.INTERNAL_ERROR, str(error)))
        call.large = True
        call.lane = self._put.get(call.method)
        if call.lane is not None and not call.reply:
            self._pool.put(call)
            return
        if not call.reply:
            self._middleware.run(call)
        self._done(call)

    def _occupy(self, connection: ClientConnection) -> None:
        """The connection works on a call from now on."""
        connection.busy = True
        self._busy.add(connection)

    def _call(self, connection: ClientConnection, message: Message) -> Call:
        """The call that a decoded message is, with its answer if no handler gets to see it."""
        header, method = message.header, message.header.method
        codec = CODECS.get(method)
        started = time.perf_counter()
        if codec is None or method not in self._handlers:
            text = f"Invalid method name: '{method}'"
            return self._refused(connection, header, TApplicationException(TApplicationException.UNKNOWN_METHOD, text))
        complaint = message.complaint or codec.unset(message.arguments)
        if complaint:
            return self._refused(
                connection, header, TApplicationException(TApplicationException.PROTOCOL_ERROR, complaint))
        call = Call(method, codec.read_arguments(message.arguments), connection, header.seqid, started)
        call.expected = header.message_type == TMessageType.CALL
        refusal = self._access.refusal(connection.identity, method)
        if refusal is not None:
            self._middleware.deny(call, refusal)
        return call

    def _refused(self, connection: ClientConnection, header: Header, error: TApplicationException) -> Call:
        """A message that no handler gets to see, answered."""
        unknown = error.type == TApplicationException.UNKNOWN_METHOD
        outcome = "UNKNOWN_METHOD" if unknown else "PROTOCOL_ERROR"
        self.stats.record(header.method if header.method in CODECS else "unknown", outcome, 0.0)
        _log.info("call refused", method=header.method, **connection.who, outcome=outcome, reason=error.message)
        call = Call(header.method, (), connection, header.seqid)
        call.expected = header.message_type == TMessageType.CALL
        call.reply = self._protocol.application_exception(header.method, header.seqid, error)
        return call

    # ------------------------------------------------------------------------------------------------ answers

    def _done(self, call: Call) -> None:
        """Called by the handlers' threads: the answer is sent from there, which spares a change of threads."""
        connection = self._settle(call) if call.reply else None  # a parked call has no answer yet
        if connection is not None and (connection.sending or connection.received or not connection.interest & _READ):
            self._resumed.append(connection)
            self._ring()

    def _wanted(self, lane: Lane) -> None:
        """A lane has something to do."""
        self._runnable.append(lane)
        if threading.get_ident() != self._thread.ident:
            self._ring()

    def _ring(self) -> None:
        """Wake the loop, unless it is awake for others already."""
        if not self._waking:
            self._waking = True
            os.eventfd_write(self._wake, 1)

    def _settle(self, call: Call) -> ClientConnection | None:
        """Send the answer of a call and let go of its connection, on any thread.

        None if the call is not over yet, because its handler is to undo what the client will never learn.
        While a connection is busy the loop does not close its socket, so that the answer cannot reach somebody else
        whose socket got the same number. Whoever of the two comes last closes it: this sets ``busy`` and then looks at
        ``closed``, `_close` the other way round. In the same way nothing received meanwhile is forgotten.
        """
        connection: ClientConnection = call.connection  # type: ignore[assignment]
        sent = call.expected and not connection.closed and self._send(connection, call.reply)
        if call.expected and not sent and call.effect is not None and not call.lost:
            call.lost, call.reply = True, b""
            call.again()
            return None
        if call.large:
            self._large.finished()
        call.args = ()  # whoever still knows the call needs no more than its answer
        connection.active = time.monotonic()
        connection.hurry = None
        self._busy.discard(connection)
        connection.busy = False
        if connection.closed:
            connection.sock.close()
        return connection

    def _send(self, connection: ClientConnection, reply: bytes) -> bool:
        """Send an answer, or as much as the client takes now; a broken connection is left for the loop to see.

        False if nothing of it can arrive.
        """
        if self._settings.framed:
            reply = len(reply).to_bytes(4) + reply
        try:
            sent = connection.sock.send(reply)
        except BlockingIOError:
            sent = 0
        except OSError:
            return False
        if sent < len(reply):
            connection.begin(time.monotonic(), len(reply))
            connection.sending = memoryview(reply)[sent:]
        return True

    def _run_lanes(self) -> None:
        """Begin batches of the lanes that have calls.

        Not before there is nothing left to read, so that a batch takes every call that has arrived.
        """
        for _ in range(len(self._runnable)):
            self._runnable.popleft().go(self._waits)

    def _answer(self) -> None:
        """Answer what is done."""
        while self._finished:
            for call in self._finished.popleft():
                if call.reply:  # a parked call has no answer yet
                    connection = self._settle(call)
                    if connection is not None:
                        self._resume(connection)

    def _go_on(self) -> None:
        """The loop was woken: go on with connections that have more to do."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        self._waking = False  # before looking: whoever finishes from now on wakes the loop again
        while self._resumed:
            self._resume(self._resumed.popleft())
        while self._steps:
            self._go_on_shaking(self._steps.popleft())

    def _watch_sending(self, connection: ClientConnection) -> None:
        if connection.sending:
            self._taken += len(connection.sending)
            self._watch(connection, connection.interest | _WRITE)

    def _resume(self, connection: ClientConnection) -> None:
        """Go on with a connection after an answer: with the rest of it, or with the next message."""
        connection.waiting = False
        if connection.closed or connection.busy:
            return
        if connection.sending:
            self._watch_sending(connection)
            return
        self._watch(connection, _READ)
        try:
            self._next(connection)
        except MalformedError as error:
            _log.info("connection closed: malformed message", **connection.who, reason=str(error))
            self._close(connection)
        except Exception:  # noqa: BLE001 - the loop serves everybody else
            _log.exception("connection closed: unexpected error", **connection.who)
            self._close(connection)

    def _send_rest(self, connection: ClientConnection) -> None:
        """The client takes more of its answer."""
        if connection.sending is None:
            return
        try:
            connection.sending = connection.sending[connection.sock.send(connection.sending) :]
        except BlockingIOError:
            return
        except (ConnectionResetError, BrokenPipeError):
            self._ended(connection)
            return
        except OSError:
            self._close(connection)
            return
        connection.active = connection.moved = self._now
        if not connection.sending:
            connection.sending = None
            connection.begin(self._now)
            self._resume(connection)


def _hurry(connection: ClientConnection) -> None:
    """Bring a parked call of this connection to an end."""
    if connection.hurry is not None:
        connection.hurry()


def _tls_reason(error: Exception) -> str:
    """What OpenSSL says, without where in its sources it says so."""
    return str(getattr(error, "verify_message", "") or getattr(error, "reason", "") or error).lower().replace("_", " ")
