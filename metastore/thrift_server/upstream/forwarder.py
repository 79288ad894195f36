"""Forwarding of calls to the upstream and of their answers, on the event loop.

Rules: each client has a connection to the upstream of its own, made when it is first needed. The loop never waits:
connections are made by other threads. An answer is passed on piece by piece, and the next is read only after the client
has taken the last. A call is sent twice only if that has the same effect as sending it once.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from select import EPOLLIN, EPOLLOUT, EPOLLRDHUP, epoll
from socket import socket

import structlog

from metastore.catalog.service.upstream_changes import OutcomeLostError
from metastore.client.client import is_repeatable
from metastore.errors import MetastoreError, UnavailableError
from metastore.telemetry.calls import CallStats
from metastore.thrift_server.dispatch.registry import Handler
from metastore.thrift_server.loop.connection import ClientConnection
from metastore.thrift_server.upstream.endpoint import PIECE, Upstream, lost, reason, session_of, unblocked
from metastore.thrift_server.upstream.link import UpstreamLink
from metastore.thrift_server.upstream.replaced_methods import REPLACED, is_unknown, newer_request, older_answer
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import Header, Message
from metastore.thrift_server.wire.scanner import MalformedError

_CONNECTORS = 4
_READ, _WRITE = EPOLLIN | EPOLLRDHUP, EPOLLOUT
_log = structlog.get_logger("metastore.upstream")


class ForwardedMethods:
    """The methods that go to the upstream: those without a handler, also if only the upstream knows them."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        """Prepare the set. ``handlers``: the methods that are answered here."""
        self._handlers = handlers

    def forwards(self, method: str) -> bool:
        """Return True if calls of the method go to the upstream as they are."""
        return method not in self._handlers

    def keeps(self, method: str) -> bool:
        """Return True if a call of this method is forwarded to the upstream as raw bytes."""
        handler = self._handlers.get(method)
        return handler is None or handler.shared


class Outgoing:
    """The services of the server that the forwarder uses."""

    def __init__(
        self,
        pass_on: Callable[[ClientConnection, bytes], bool],
        end: Callable[[ClientConnection, bytes], None],
        close: Callable[[ClientConnection], None],
        ring: Callable[[], None],
    ) -> None:
        """Prepare the methods. ``pass_on``: sends a part of an answer, and tells if the client takes more at once.

        ``end``: ends the call, and gets the rest of the answer. ``close``: closes the client's connection. ``ring``:
        wakes the loop.
        """
        self.pass_on, self.end, self.close, self.ring = pass_on, end, close, ring


class Forwarder:
    """The forwarder with all connections to the upstream."""

    def __init__(self, upstream: Upstream, stats: CallStats, refuse: Callable[[Header, MetastoreError], bytes]) -> None:
        """Prepare the forwarder. ``stats``: of forwarded calls; ``refuse``: encodes an error as an answer."""
        self.upstream, self._stats, self._refuse = upstream, stats, refuse
        self._links: dict[int, UpstreamLink] = {}
        self._wanted: SimpleQueue[Callable[[], Callable[[], None]] | None] = SimpleQueue()
        """The tasks from other threads; each step returns what the loop has to do then."""
        self._done: deque[Callable[[], None]] = deque()
        self._timeout = upstream.settings.timeout.total_seconds()

    def start(self, polled: epoll, out: Outgoing) -> None:
        """Serve this loop from now on."""
        self._epoll, self._out = polled, out
        for number in range(_CONNECTORS):
            threading.Thread(target=self._work, name=f"upstream-{number}", daemon=True).start()

    def stop(self) -> None:
        """Close all connections."""
        for _ in range(_CONNECTORS):
            self._wanted.put(None)
        for link in list(self._links.values()):
            self._drop(link)

    # ----------------------------------------------------------------------------------------- called by the event loop

    def put(self, client: ClientConnection, message: Message) -> None:
        """Begin a call; its client is busy until ``Outgoing.end``."""
        link: UpstreamLink | None = client.link
        if link is None:
            link = client.link = UpstreamLink(client)
        link.header, link.raw = message.header, message.raw or message.data or b""
        link.attempts, link.passed, link.held = 0, False, bytearray() if message.header.method in REPLACED else None
        link.begun = time.perf_counter()
        link.saying = b""
        if message.header.method == "setMetaConf":
            try:
                link.saying = self.upstream.note_setting(client, message.header, link.raw)
            except MetastoreError as error:
                self._end(link, error, outcome=type(error).__name__)
                return
        if link.said != session_of(client).version:  # The client has changed its user since this connection was used.
            self._drop(link)
        self._attempt(link)

    def gone(self, client: ClientConnection) -> None:
        """Close a gone client's connection to the upstream, with the call on it."""
        link: UpstreamLink | None = client.link
        client.link = None
        if link is None:
            return
        in_work, link.header = link.header, None
        self._drop(link)
        if in_work is not None:
            self._count(in_work.method, "CLIENT_GONE", link)
            self._out.end(client, b"")

    def turn_to(self, fd: int, event: int) -> bool:
        """Handle an event of this descriptor; return whether it is ours."""
        link = self._links.get(fd)
        if link is None:
            return False
        try:
            if event & EPOLLOUT:
                self._send(link)
            if event & ~EPOLLOUT and link.sock is not None:
                self._read(link)
        except (OSError, MalformedError) as error:
            self._broken(link, error)
        return True

    def taken(self, client: ClientConnection) -> None:
        """Continue to read from the upstream, since the client has taken the bytes passed so far."""
        link: UpstreamLink | None = client.link
        if link is not None and link.sock is not None and link.header is not None:
            link.moved = time.monotonic()
            self._watch(link, _READ)

    def connected(self) -> None:
        """Continue links whose connection was made or failed, and translated answers."""
        while self._done:
            self._done.popleft()()

    def sweep(self, now: float) -> None:
        """End calls whose answer does not come."""
        for link in list(self._links.values()):
            silent = now - link.moved
            if link.header is not None and link.client.sending is None and silent > self._timeout:
                link.attempts = 2  # No further attempt: the call has waited long enough.
                self._broken(link, TimeoutError())

    # ------------------------------------------------------------------------------------------ steps of the event loop

    def _attempt(self, link: UpstreamLink) -> None:
        link.attempts += 1
        link.sending, link.asked, link.reply = None, False, None
        if link.sock is not None:
            try:
                self._begin(link)
            except (OSError, MalformedError) as error:
                self._broken(link, error)
        else:
            link.said = session_of(link.client).version
            assert link.header is not None  # noqa: S101 - a call is in work
            said_first = self.upstream.said_first(link.client, link.saying)
            self._wanted.put(partial(self._opened, link, link.header, said_first))

    def _take(self, link: UpstreamLink, header: Header, sock: socket) -> None:
        """Take a connection that was made for a link's call."""
        if link.header is not header:  # The client is gone, or was answered meanwhile.
            sock.close()
            return
        link.sock, link.fd, link.interest = unblocked(sock), sock.fileno(), _READ
        self._links[link.fd] = link
        self._epoll.register(link.fd, _READ)
        try:
            self._begin(link)
        except (OSError, MalformedError) as failure:
            self._broken(link, failure)

    def _give_up(self, link: UpstreamLink, header: Header, error: MetastoreError) -> None:
        if link.header is header:
            self._end(link, error)

    def _begin(self, link: UpstreamLink) -> None:
        assert link.header is not None  # noqa: S101 - a call is in work
        method, raw = link.header.method, link.raw
        if method in link.lacks:
            method, raw = REPLACED[method].method, newer_request(self.upstream, link.header, raw)
        if link.held is not None:
            link.held.clear()
        link.reply = self.upstream.reply(method)
        link.sending = memoryview(self.upstream.message(raw))
        link.moved = time.monotonic()
        self._send(link)

    def _send(self, link: UpstreamLink) -> None:
        if link.sending is None or link.sock is None:
            return
        try:
            link.sending = link.sending[link.sock.send(link.sending) :]
        except BlockingIOError:
            pass
        else:
            link.moved = time.monotonic()
        if link.sending:
            self._watch(link, _READ | _WRITE)
        else:
            link.sending, link.asked = None, True
            self._watch(link, _READ)

    def _read(self, link: UpstreamLink) -> None:
        assert link.sock is not None  # noqa: S101 - it is watched
        try:
            data = link.sock.recv(PIECE)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError("the upstream closed the connection")
        if link.header is None or link.reply is None or link.client.closed:
            raise MalformedError("the upstream sends what nobody asked for")
        link.moved = time.monotonic()
        complete = link.reply.take(data)
        if link.held is not None:
            link.held += data
            if not self._is_its_own(link, link.header, link.reply.outcome, complete):
                return
            data, link.held = bytes(link.held), None
        link.passed = True
        if not self._out.pass_on(link.client, data) and not complete:
            self._watch(link, 0)  # No event is watched until the client has taken the piece.
        if complete:
            self._end(link, None)

    def _is_its_own(self, link: UpstreamLink, header: Header, outcome: str, complete: bool) -> bool:  # noqa: FBT001
        """Return True if the held bytes are the method's own answer, to be passed on; else a newer method is tried."""
        assert link.held is not None  # noqa: S101 - the method is of those
        if header.method in link.lacks:
            if complete:
                link.reply = None  # The answer is complete, even if the connection breaks now.
                self._wanted.put(partial(self._in_older_words, link, header, outcome, bytes(link.held)))
            return False
        if complete and outcome == "APPLICATION_EXCEPTION" and is_unknown(link.held):
            link.lacks.add(header.method)
            self._begin(link)
            return False
        return complete or outcome not in {"", "APPLICATION_EXCEPTION"}

    def _answered(self, link: UpstreamLink, header: Header, outcome: str, answer: bytes) -> None:
        if link.header is header:
            self._end(link, None, answer, outcome)

    def _broken(self, link: UpstreamLink, error: Exception) -> None:
        """Repeat the call on another connection if that does no harm, else tell the client."""
        header, pending, passed = link.header, link.asked, link.passed
        self._drop(link)
        if header is None or (pending and link.reply is None):
            return  # The connection ended while idle, or while the answer is being translated.
        _log.info("upstream_connection_broken", method=header.method, **link.client.who, reason=reason(error))
        if passed:  # The client has half an answer already.
            self._count(header.method, "BROKEN_OFF", link)
            link.header = None
            self._out.close(link.client)
            self._out.end(link.client, b"")
        elif (
            link.attempts == 1
            and not isinstance(error, MalformedError)
            and (not pending or is_repeatable(header.method))
        ):
            self._attempt(link)
        elif pending:
            self._end(link, OutcomeLostError(lost(self.upstream, header.method, reason(error))))
        else:
            self._end(link, UnavailableError(f"upstream {self.upstream} does not answer: {reason(error)}"))

    def _end(self, link: UpstreamLink, error: MetastoreError | None, answer: bytes = b"", outcome: str = "") -> None:
        header, link.header, link.raw = link.header, None, b""
        assert header is not None  # noqa: S101 - a call is in work
        if not outcome:
            outcome = link.reply.outcome if error is None and link.reply is not None else "UPSTREAM_UNAVAILABLE"
        link.reply = None
        self._count(header.method, outcome, link)
        if error is not None:
            _log.warning("call_not_forwarded", method=header.method, **link.client.who, reason=str(error))
            answer = self._refuse(header, error)
        self._out.end(link.client, answer)

    def _count(self, method: str, outcome: str, link: UpstreamLink) -> None:
        self._stats.record(method if method in CODECS else "unknown", outcome, time.perf_counter() - link.begun)

    def _drop(self, link: UpstreamLink) -> None:
        sock, link.sock = link.sock, None
        link.lacks.clear()
        if sock is not None:
            del self._links[link.fd]
            with suppress(OSError, ValueError):
                self._epoll.unregister(link.fd)
            sock.close()

    def _watch(self, link: UpstreamLink, interest: int) -> None:
        if link.interest != interest and link.sock is not None:
            link.interest = interest
            self._epoll.modify(link.fd, interest)

    # ------------------------------------------------------------------------------------------ called by other threads

    def _work(self) -> None:
        while (step := self._wanted.get()) is not None:
            self._done.append(step())
            self._out.ring()

    def _opened(self, link: UpstreamLink, header: Header, said_first: tuple[bytes, ...]) -> Callable[[], None]:
        try:
            return partial(self._take, link, header, self.upstream.open(said_first))
        except MetastoreError as error:
            return partial(self._give_up, link, header, error)
        except Exception as error:  # noqa: BLE001 - the client must get an answer whatever happened
            return partial(self._give_up, link, header, UnavailableError(f"upstream {self.upstream}: {error}"))

    def _in_older_words(self, link: UpstreamLink, header: Header, outcome: str, answer: bytes) -> Callable[[], None]:
        try:
            return partial(self._answered, link, header, outcome, older_answer(self.upstream, header, answer))
        except Exception as error:  # noqa: BLE001 - the client must get an answer whatever happened
            return partial(self._give_up, link, header, UnavailableError(f"upstream {self.upstream}: {error}"))
