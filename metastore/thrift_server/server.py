"""The Thrift server: one event loop reads, decodes and answers for all connections, and runs coalesced calls.

Rules: an idle client costs a socket and a kilobyte, no thread. Bytes of one client (garbage, half a message, none at
all, too many) affect no other connection. Answers for clients that are gone are dropped. Draining finishes calls in
progress.
"""

import os
import select
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from math import inf

import structlog
from thrift.Thrift import TMessageType

from metastore.config import ServerSettings
from metastore.config.security import TlsSettings
from metastore.telemetry.calls import CallStats
from metastore.thrift_server.auth.access import Access
from metastore.thrift_server.auth.sasl import Mechanisms
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.dispatch.large_calls import LargeCalls
from metastore.thrift_server.dispatch.middleware import Middleware
from metastore.thrift_server.dispatch.registry import Handler
from metastore.thrift_server.dispatch.workers import FiberWaits, Lane, Seats, WorkerPool
from metastore.thrift_server.loop.address_limits import AddressLimits
from metastore.thrift_server.loop.connection import MOST_AHEAD, ClientConnection
from metastore.thrift_server.loop.connections import READ, WRITE, Connections
from metastore.thrift_server.loop.handshakes import Handshakes
from metastore.thrift_server.loop.listening_socket import ListeningSocket
from metastore.thrift_server.loop.message_reader import ALL_HERE, PIECE, Messages, Routes
from metastore.thrift_server.upstream.endpoint import Upstream
from metastore.thrift_server.upstream.forwarder import ForwardedMethods, Forwarder, Outgoing
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import BinaryProtocol, CompactProtocol, Message, WireProtocol
from metastore.thrift_server.wire.scanner import MalformedError

MOST_IN_A_ROW = 16
"""Requests sent ahead that one connection has answered at once, before all others have had their turn."""

_CALLS = frozenset((TMessageType.CALL, TMessageType.ONEWAY))
_ONEWAY = frozenset(name for name, codec in CODECS.items() if codec.oneway)
_ROUNDS = 16
"""The number of looks for more calls before the loop begins batches. One look that finds none is enough (ADR 25)."""
_FRAME_EXTRA = 1 << 16
"""Bytes by which a frame of SASL may be larger than the largest message in it."""
_SWEEP_SECONDS = 1.0
_DRAIN_SECONDS = 0.02
_LAST_ROUND_SECONDS = 1.0
_SWITCH_SECONDS = 0.0002
"""The seconds for which a computing thread may keep the interpreter; the loop needs it back after every system call.
Measured with one handler computing and 8 clients: 11,000 getStatus a second, 1,700 with Python's default."""
_log = structlog.get_logger("metastore.server")


class Server:
    """A server of the handlers on a port, until it is drained."""

    def __init__(
        self,
        settings: ServerSettings,
        handlers: Mapping[str, Handler],
        stats: CallStats | None = None,
        *,
        reuse_port: bool = False,
        tls: TlsSettings | None = None,
        mechanisms: Mechanisms | None = None,
        access: Access | None = None,
        seats: Seats | None = None,
        upstream: Upstream | None = None,
        forwarded: CallStats | None = None,
        limits: AddressLimits | None = None,
    ) -> None:
        """Prepare the server. ``reuse_port``: several processes listen on one port, and the kernel spreads connections.

        ``tls``: None or without ``use_ssl``: in the clear. ``mechanisms``: those of SASL. ``upstream``: gets the calls
        without a handler, which are counted as ``forwarded``. Raises: InvalidInputError (a key store cannot be used).
        """
        self._connections = Connections(settings, limits)
        tls, mechanisms = tls or TlsSettings(), mechanisms or {}
        self._handshakes = (
            Handshakes(tls, self._connections, self._ring, mechanisms, settings.max_message_size + _FRAME_EXTRA)
            if tls.use_ssl or mechanisms
            else None
        )
        begin = self._connections.begin if self._handshakes is None else self._handshakes.begin
        self._listener = ListeningSocket(settings, self._connections, begin, reuse_port=reuse_port)
        self._settings = settings
        self.stats = stats or CallStats()
        self.stats.server = self
        self._protocol: WireProtocol = CompactProtocol() if settings.compact_protocol else BinaryProtocol()
        slow = settings.slow_call.total_seconds()
        self._routes: Routes = ALL_HERE if upstream is None else ForwardedMethods(handlers)
        self._messages = Messages(self._protocol, settings, self._routes)
        seats = seats or Seats(settings.worker_threads)
        self._middleware = Middleware(
            handlers,
            self._protocol,
            self.stats,
            slow,
            seats,
            access=access,
            limits=self._connections.limits,
            framed=settings.framed,
        )
        self._forwarder = (
            None if upstream is None else Forwarder(upstream, forwarded or CallStats(), self._middleware.failure)
        )
        self._finished: deque[list[Call]] = deque()
        self._runnable: deque[Lane] = deque()
        self._pool = WorkerPool(seats, self._middleware.run, self._done)
        lanes = {handler.lane for handler in handlers.values() if handler.lane}
        by_name = {
            name: Lane(self._middleware.run_batch, self._middleware.finish, self._finished.append, self._wanted)
            for name in lanes
        }
        self._lanes = {name: by_name[handler.lane] for name, handler in handlers.items() if handler.lane}
        self._put = {
            name: self._lanes[name].put if handler.lane else self._pool.put
            for name, handler in handlers.items()
            if not handler.immediate
        }
        self._large = LargeCalls(self._messages, self._middleware, self._pool, self._put, self._lanes, self._done)
        self._apart = {name: handler.apart for name, handler in handlers.items() if handler.apart is not None}
        self._waking = False
        self._resumed: deque[ClientConnection] = deque()
        self._ahead: deque[ClientConnection] = deque()  # Connections that gave way after MOST_IN_A_ROW calls.
        self._busy: set[ClientConnection] = set()  # The connections with calls in work, also if the client is gone.
        self._draining: float | None = None
        self._thread = threading.Thread(target=self._run, name="thrift-loop", daemon=True)
        self._running = False

    # ------------------------------------------------------------------------------------------------ life

    @property
    def ready(self) -> bool:
        """True if new connections are accepted."""
        return self._running and self._draining is None

    @property
    def connections(self) -> int:
        """The number of open client connections."""
        return len(self._connections)

    @property
    def in_flight(self) -> int:
        """The number of calls in progress."""
        return len(self._busy)

    @property
    def refused_connections(self) -> int:
        """The number of connections closed at once because there were too many."""
        return self._connections.refused

    @property
    def limits_reached(self) -> Mapping[str, int]:
        """The number of times that clients of an address reached each limit."""
        return self._connections.limits.reached

    @property
    def failed_handshakes(self) -> int:
        """The number of TLS handshakes that ended without a connection."""
        return self._handshakes.failed if self._handshakes is not None else 0

    @property
    def certificate_expires(self) -> float:
        """Seconds since 1970 at which the port's certificate ends; infinite without TLS."""
        return self._handshakes.certificate_expires if self._handshakes is not None else inf

    @property
    def refused_logins(self) -> int:
        """The number of clients that could not prove who they are."""
        return self._handshakes.refused if self._handshakes is not None else 0

    def start(self) -> tuple[str, int]:
        """Listen and serve; return the address bound, so port 0 asks for a free port. Raises: OSError."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        address = self._listener.open()
        self._epoll = select.epoll()
        self._listener.watch(self._epoll)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._wake)  # Threads may still write to it after the loop has ended.
        self._epoll.register(self._wake, select.EPOLLIN)
        self._waits = FiberWaits(self._epoll)
        self._pool.start()
        self._connections.start(self._epoll)
        if self._forwarder is not None:
            self._connections.closing = self._forwarder.gone
            self._forwarder.start(
                self._epoll, Outgoing(self._pass_on, self._forwarded, self._connections.close, self._ring)
            )
        if self._handshakes is not None:
            self._handshakes.start()
        self._large.start()
        self._running = True
        self._thread.start()
        return address

    def begin_drain(self, timeout: float | None = None) -> None:
        """Accept no connection from now on, and finish the calls in progress. The default time-out is a setting."""
        if self._running and self._draining is None:
            seconds = self._settings.drain_timeout.total_seconds() if timeout is None else timeout
            self._draining = time.monotonic() + seconds
            os.eventfd_write(self._wake, 1)

    def drain(self, timeout: float | None = None) -> bool:
        """Stop accepting, finish the calls in progress, close all connections; False if calls were left unfinished.

        The time-out counts from the beginning of the drain. Safe to call twice, and from a signal's thread.
        """
        self.begin_drain(timeout)
        if not self._running or self._draining is None:
            return True
        self._thread.join(max(0.0, self._draining - time.monotonic()) + _LAST_ROUND_SECONDS)
        finished = not self._busy
        self._large.stop()
        self._pool.stop(0.2)
        if self._handshakes is not None:
            self._handshakes.stop()
        return finished

    # ------------------------------------------------------------------------------------------------ loop

    def _run(self) -> None:
        """Run the loop, on its thread."""
        try:
            swept = time.monotonic()
            rounds = 0
            connections, by_fd = self._connections, self._connections.by_fd
            while not self._over():
                patience = _SWEEP_SECONDS if self._draining is None else _DRAIN_SECONDS
                events = self._epoll.poll(0 if self._runnable or self._ahead else patience)
                connections.now = time.monotonic()
                for fd, event in events:
                    connection = by_fd.get(fd)
                    if connection is not None:
                        self._serve(connection, event)
                    else:
                        self._turn_to(fd, event)
                for _ in range(len(self._ahead)):
                    self._resume(self._ahead.popleft())
                rounds = rounds + 1 if events and self._runnable else 0
                nobody_else = len(self._busy) >= len(by_fd)  # No other connection could send anything now.
                if not events or nobody_else or rounds == _ROUNDS:
                    rounds = 0
                    self._run_lanes()
                self._answer()
                if connections.now - swept >= _SWEEP_SECONDS or connections.taken > connections.many:
                    swept = connections.now
                    self._sweep()
        finally:
            self._running = False
            for connection in self._connections:
                self._connections.close(connection)
            if self._forwarder is not None:
                self._forwarder.stop()
            self._listener.close()
            self._epoll.close()

    def _turn_to(self, fd: int, event: int) -> None:
        """Handle an event of a descriptor that is not a client's."""
        if fd == self._wake:
            self._go_on()
        elif fd == self._listener.fd:
            self._listener.accept()
        elif self._forwarder is None or not self._forwarder.turn_to(fd, event):
            self._waits.end(fd)

    def _sweep(self) -> None:
        """End connections and waits that have lasted too long."""
        if self._handshakes is not None:
            self._handshakes.sweep()
        self._connections.sweep()
        self._waits.sweep(self._connections.now)
        if self._forwarder is not None:
            self._forwarder.sweep(self._connections.now)

    def _over(self) -> bool:
        """Return True if draining is complete; begin it, and close idle connections."""
        if self._draining is None:
            return False
        if self._listener.close():
            return False  # Another round serves requests that have arrived already.
        for connection in list(self._busy):
            connection.end_parked_call()
        for connection in [c for c in self._connections if not c.busy and not c.sending]:
            self._connections.close(connection)
        return not (self._connections or self._busy) or self._connections.now >= self._draining

    def _serve(self, connection: ClientConnection, event: int) -> None:
        """Serve a connection that has bytes to read or room to write. Its errors affect no other."""
        try:
            if connection.handshaking and self._handshakes is not None:
                self._handshakes.step(connection)
                return
            if event & select.EPOLLOUT:
                self._send_rest(connection)
            if event & ~select.EPOLLOUT and not connection.closed:
                self._read(connection)
        except Exception as error:  # noqa: BLE001 - the loop serves everybody else
            self._close_failed(connection, error)

    def _close_failed(self, connection: ClientConnection, error: Exception) -> None:
        """Close a connection after an error; an unreadable message is the client's fault, all other errors are ours."""
        if isinstance(error, MalformedError):
            _log.info("connection_closed_malformed", **connection.who, reason=str(error))
        else:
            _log.exception("connection_closed_unexpected", **connection.who, exc_info=error)
        self._connections.close(connection)

    # ------------------------------------------------------------------------------------------------ requests

    def _read(self, connection: ClientConnection) -> None:
        """Read the received bytes."""
        connections = self._connections
        try:
            taken = connection.receive(PIECE, connections.now)
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionResetError:
            taken = 0
        except OSError:  # The network has failed, which says nothing about the client.
            connections.close(connection)
            return
        if not taken:
            connections.ended(connection)
            return
        connections.taken += taken
        if connection.busy or connection.sending:
            if len(connection.received) > MOST_AHEAD:
                self._connections.watch(connection, connection.interest & ~READ)
            return
        self._next(connection)

    def _next(self, connection: ClientConnection) -> None:
        """Begin calls until one is in work, no message is complete or others have their turn.

        Raises: MalformedError.
        """
        begun = 0
        while connection.received and not (connection.busy or connection.sending or connection.closed):
            if begun == MOST_IN_A_ROW:
                if not connection.waiting:
                    connection.waiting = True
                    self._ahead.append(connection)
                return
            message = self._messages.next(connection)
            if message is None:
                return
            begun += 1
            connection.active = connection.since = self._connections.now
            self._begin(connection, message)

    def _begin(self, connection: ClientConnection, message: Message) -> None:
        """Hand a message to its handler, or answer it at once. Raises: MalformedError."""
        header = message.header
        if header.message_type not in _CALLS:
            raise MalformedError(f"a message of type {header.message_type} is not a call")
        connection.calls += 1
        if header.method in _ONEWAY:
            connection.farewell = header.method == "shutdown"
            return  # shutdown and reinitialize have no effect, and no answer even if sent as a call.
        if self._forwarder is not None and self._routes.forwards(header.method):
            self._forward(self._forwarder, connection, message)
            return
        if message.data is not None:
            self._occupy(connection)
            connection.message = message
            self._large.put(connection)
            return
        call = self._middleware.admit(connection, message)
        put = self._put.get(call.method)
        if put is not None and not call.reply:
            self._occupy(connection)
            call.lane = self._lanes.get(call.method)
            apart = self._apart.get(call.method)
            (put if apart is None or not apart(call) else self._pool.put)(call)
            return
        if not call.reply:
            self._middleware.run(call)
        if call.expected:
            self._send(connection, call.reply)
            if connection.sending is not None:
                self._watch_sending(connection)

    def _forward(self, forwarder: Forwarder, connection: ClientConnection, message: Message) -> None:
        """Hand a message to the upstream. Raises: MalformedError."""
        if message.header.message_type != TMessageType.CALL:
            raise MalformedError(f"{message.header.method} has an answer: it cannot be sent without wanting it")
        denied = self._middleware.denied(connection, message.header)
        if denied:
            self._send(connection, denied)
            self._watch_sending(connection)
            return
        self._occupy(connection)
        forwarder.put(connection, message)

    def _occupy(self, connection: ClientConnection) -> None:
        """Record that the connection works on a call from now on."""
        connection.busy = True
        self._busy.add(connection)

    # ------------------------------------------------------------------------------------------------ answers

    def _done(self, call: Call) -> None:
        """Answer a call on the handler's thread, which saves a change of threads."""
        connection = self._settle(call)
        if connection is not None and (
            connection.sending or connection.received or connection.cut_off or not connection.interest & READ
        ):
            self._resumed.append(connection)
            self._ring()

    def _wanted(self, lane: Lane) -> None:
        """Record that a lane has work."""
        self._runnable.append(lane)
        if threading.get_ident() != self._thread.ident:
            self._ring()

    def _ring(self) -> None:
        """Wake the loop, unless it is awake already."""
        if not self._waking:
            self._waking = True
            os.eventfd_write(self._wake, 1)

    def _settle(self, call: Call) -> ClientConnection | None:
        """Send the answer of a call and release its connection, on any thread.

        None if the call is not over yet: it is parked, or its handler has to undo an effect that the client will never
        learn. None as well if it is over already: it was answered while the batch that had parked it was still in work.
        While a connection is busy the loop does not close its socket, so that the answer cannot reach another client
        whose socket got the same number. The last of the two closes it: this sets ``busy`` and then looks at
        ``closed``, `_close` the other way round. In the same way no bytes received meanwhile are forgotten.
        """
        reply = vars(call).pop("reply", b"")  # Only one thread gets the reply.
        if not reply:
            return None
        connection: ClientConnection = call.connection  # type: ignore[assignment]
        wanted = call.expected and not call.cut_off
        sent = wanted and not connection.closed and self._send(connection, reply)
        connection.cut_off = call.cut_off
        if call.expected and not sent and call.effect is not None and not call.lost:
            call.lost = True
            call.again()
            return None
        if call.large:
            self._large.finished()
        call.args = ()  # Only the answer of the call is still needed.
        connection.active = time.monotonic()
        connection.hurry = None
        self._busy.discard(connection)
        connection.busy = False
        if connection.closed:
            connection.sock.close()
        return connection

    def _send(self, connection: ClientConnection, reply: bytes | memoryview) -> bool:
        """Send an answer, or as much as the client takes now. Return False if nothing of it can arrive."""
        if self._settings.framed and isinstance(reply, bytes):  # An answer in a file has its length there.
            reply = len(reply).to_bytes(4) + reply
        return connection.send(reply)

    def _pass_on(self, connection: ClientConnection, data: bytes) -> bool:
        """Send a part of the upstream's answer, framed as it came. Return True if the client takes more at once."""
        if connection.sending:
            connection.sending = memoryview(bytes(connection.sending) + data)
            return False
        connection.send(data)
        self._watch_sending(connection)
        return connection.sending is None

    def _forwarded(self, connection: ClientConnection, answer: bytes) -> None:
        """End a call to the upstream; ``answer``: the bytes that are still to be sent."""
        if answer and not connection.closed:
            self._send(connection, answer)
        connection.active = self._connections.now
        self._busy.discard(connection)
        connection.busy = False
        if connection.closed:
            connection.sock.close()
        else:
            self._resume(connection)

    def _run_lanes(self) -> None:
        """Begin batches of the lanes that have calls.

        It waits until there is nothing left to read, or no connection left that could send, so that a batch takes every
        call that has arrived.
        """
        for _ in range(len(self._runnable)):
            self._runnable.popleft().go(self._waits)

    def _answer(self) -> None:
        """Answer finished calls."""
        while self._finished:
            for call in self._finished.popleft():
                connection = self._settle(call)
                if connection is not None:
                    self._resume(connection)

    def _go_on(self) -> None:
        """Continue connections that have more to do: the loop was woken."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        self._waking = False  # Cleared before the queue is read: a call that finishes from now on wakes the loop again.
        while self._resumed:
            self._resume(self._resumed.popleft())
        for connection in self._handshakes.completed() if self._handshakes is not None else ():
            self._serve(connection, READ)
        if self._forwarder is not None:
            self._forwarder.connected()

    def _watch_sending(self, connection: ClientConnection) -> None:
        if connection.sending:
            self._connections.taken += len(connection.sending)
            self._connections.watch(connection, connection.interest | WRITE)

    def _resume(self, connection: ClientConnection) -> None:
        """Continue a connection after an answer: with the rest of it, or with the next message."""
        connection.waiting = False
        if connection.closed or connection.busy:
            return
        if connection.cut_off:
            self._connections.close(connection)
            return
        if connection.sending:
            self._watch_sending(connection)
            return
        if connection.interest != READ:
            self._connections.watch(connection, READ)
        try:
            self._next(connection)
        except Exception as error:  # noqa: BLE001 - the loop serves everybody else
            self._close_failed(connection, error)

    def _send_rest(self, connection: ClientConnection) -> None:
        """Send more of an answer to a client that takes it."""
        if connection.sending is None:
            return
        try:
            connection.sending = connection.sending[connection.sock.send(connection.sending) :]
        except BlockingIOError:
            return
        except (ConnectionResetError, BrokenPipeError):
            self._connections.ended(connection)
            return
        except OSError:
            self._connections.close(connection)
            return
        connection.active = connection.moved = self._connections.now
        if not connection.sending:
            connection.sending = None
            connection.begin(self._connections.now)
            if connection.busy and self._forwarder is not None:  # More of the answer is to come.
                self._connections.watch(connection, connection.interest & ~WRITE)
                self._forwarder.taken(connection)
            self._resume(connection)
