"""The server behind each HTTP port: an event loop for all connections, h11 for the protocol, threads for the answers.

Rules: a connection costs a socket, no thread; a thread answers one complete request. A request that is not complete in
time is cut off, and while there is no room its connection gives way to a new one; a request that is being answered
never does. Pages of the web have no access: a browser names the page's origin, or a host that is not ours (ADR 134).
"""

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatch
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import h11

from metastore.errors import InvalidInputError
from metastore.telemetry.logs import get_logger
from metastore.tls.contexts import RenewedContext
from metastore.web.answer_threads import AnswerThreads

_log = get_logger(__name__)
HEAD_S = 30.0
"""Seconds that a request may take to arrive, and an answer to be taken, besides a second for each 64 KB."""
_SLOWEST = 1 << 16
_PIECE = 1 << 18
_SMALL = 1 << 16
"""Bytes of a body that is read although its request is refused, so that the connection can go on."""
_LONGEST_HEAD = 1 << 14
_MOST_BUFFERED = 256 << 20
"""Bytes of the bodies of all requests that have arrived and are not answered."""
_PAUSE_S = 0.05
_FAREWELL_S = 1.0
_QUEUE = 128
JSON = "application/json; charset=utf-8"


class Page(NamedTuple):
    """The answer to a request."""

    body: bytes
    content_type: str = JSON
    status: HTTPStatus = HTTPStatus.OK


@dataclass(frozen=True)
class Request:
    """The head of a request. ``headers``: with names in lower case; ``address``: the caller's, without the port.

    ``certificate``: the caller's, as ``getpeercert`` gives it. ``gone``: is set when the caller leaves, or the port
    stops.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    address: str
    certificate: Mapping[str, Any] | None
    gone: threading.Event


class HttpService(Protocol):
    """A service that answers requests on a port."""

    def refusal(self, request: Request, /) -> Page | None:
        """Return why a request is refused before its body is read. It runs on the event loop and must not wait."""

    def answer(self, request: Request, body: bytes, /) -> Page:
        """Answer a request, on a thread that may wait."""


class Visitors(Protocol):
    """The count of connections of each address."""

    def room(self, host: str, now: float, /) -> bool:
        """Return True if another connection may come from the address."""

    def arrived(self, host: str, now: float, /) -> Any:
        """Count a connection, and return the argument of ``left``."""

    def left(self, usage: Any, now: float, /) -> None:
        """Forget a connection."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of a port for strangers. ``idle_s``: seconds that a connection may be silent between two requests."""

    connections: int = 64
    threads: int = 8
    longest_body: int = 0
    idle_s: float = 10.0
    handshake: timedelta = timedelta(seconds=10)
    hosts: Collection[str] = ()
    """Names, or patterns of names, by which the port may be called."""


class HttpServer:
    """A port and all its connections."""

    def __init__(
        self,
        name: str,
        service: HttpService,
        bounds: Bounds,
        tls: RenewedContext | None,
        visitors: Visitors | None = None,
    ) -> None:
        """Prepare a port. ``name``: of the threads; ``tls``: None: in the clear."""
        self._name, self._service, self._bounds, self._tls, self._visitors = name, service, bounds, tls, visitors
        self._waiting: dict[asyncio.Task[None], str] = {}
        """Connections without a complete request, with their addresses: the one that has waited longest is first."""
        self._connections: set[asyncio.Task[None]] = set()
        self._bytes: Counter[asyncio.Task[None]] = Counter()
        self._held = 0
        self.in_work = 0
        """Requests that are complete and not answered yet."""

    def start(self, host: str, port: int, inherited: socket.socket | None = None) -> tuple[str, int]:
        """Listen; return the address bound, so port 0 asks for a free one. Raises: OSError.

        ``inherited``: a socket that listens already, from the process that started this one.
        """
        self._listener = inherited or socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=_QUEUE
        )
        self._listener.setblocking(False)  # noqa: FBT003 - the module's own
        self._loop = asyncio.new_event_loop()
        self._threads = AnswerThreads(self._name, self._bounds.threads, self._loop)
        self._accepting = self._loop.create_task(self._accept())
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()
        bound, number = self._listener.getsockname()[:2]
        return str(bound), int(number)

    def stop(self, patience_s: float = 0.0) -> None:
        """Accept no more connections, wait a moment for answers, and close the rest. A second call does nothing."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._accepting.cancel)
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._drained(), self._loop).result(patience_s)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._threads.stop()
        self._listener.close()

    async def _drained(self) -> None:
        while self.in_work:  # noqa: ASYNC110 - at the end of a process
            await asyncio.sleep(_PAUSE_S)

    def _run(self) -> None:
        loop = self._loop
        try:
            loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=_FAREWELL_S))
            loop.close()

    # ------------------------------------------------------------------------------------------------ connections

    async def _accept(self) -> None:
        while True:
            try:
                sock, address = await self._loop.sock_accept(self._listener)
            except OSError:  # Without descriptors the listener stays readable.
                await asyncio.sleep(_PAUSE_S)
                continue
            if self._has_room(address[0]):
                task = self._loop.create_task(self._connection(sock, address[0]))
                self._connections.add(task)
                self._waiting[task] = address[0]
                task.add_done_callback(self._ended)
                await asyncio.sleep(0)  # A task that is cancelled before its first step would not close the socket.
            else:
                sock.close()

    def _has_room(self, address: str) -> bool:
        if self._visitors is not None and not self._visitors.room(address, self._loop.time()):
            return False
        if len(self._connections) < self._bounds.connections:
            return True
        if not self._waiting:
            _log.warning("http_port_is_full", port=self._name, peer=address)
            return False
        [(most, _)] = Counter(self._waiting.values()).most_common(1)
        self._give_up(next(task for task, waiting in self._waiting.items() if waiting == most))
        return True

    def _give_up(self, task: asyncio.Task[None]) -> None:
        self._waiting.pop(task, None)
        self._connections.discard(task)
        task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        self._waiting.pop(task, None)
        self._held -= self._bytes.pop(task, 0)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("http_connection_failed", port=self._name, exc_info=error)

    async def _connection(self, sock: socket.socket, address: str) -> None:
        usage = self._visitors.arrived(address, self._loop.time()) if self._visitors is not None else None
        reader, writer = _Reader(), None
        try:
            with suppress(OSError, TimeoutError, h11.RemoteProtocolError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                protocol = asyncio.StreamReaderProtocol(reader)
                transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, sock, **self._handshake())
                writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
                await _Talk(self, reader, writer, address).go_on()
                writer.close()
        finally:
            reader.gone.set()
            if self._visitors is not None:
                self._visitors.left(usage, self._loop.time())
            if writer is None:
                sock.close()
            elif not writer.is_closing():
                writer.transport.abort()

    def _handshake(self) -> Mapping[str, Any]:
        if self._tls is None:
            return {}
        patience = self._bounds.handshake.total_seconds()
        return {"ssl": self._tls.get(), "ssl_handshake_timeout": patience, "ssl_shutdown_timeout": _FAREWELL_S}

    # ------------------------------------------------------------------------------------------------ requests

    def refusal(self, request: Request, length: int | None) -> Page | None:
        """Return why a request is refused before its body is read."""
        if "origin" in request.headers:
            said = f"A request from a page of the web ({request.headers['origin'][:100]}) is not answered."
            return said_page(HTTPStatus.FORBIDDEN, "AccessDeniedError", said)
        host = _name_in(request.headers.get("host", ""))
        if self._tls is None and not self._is_ours(host):  # A certificate proves the name.
            said = (
                f"A request that calls this service by the name {host[:100]} is not answered, since a page of the web "
                "could: use its address, or list the name in metastore.http.hosts."
            )
            return said_page(HTTPStatus.FORBIDDEN, "AccessDeniedError", said)
        if length is None:
            return said_page(
                HTTPStatus.BAD_REQUEST,
                InvalidInputError.__name__,
                "A call must say how long its body is (Content-Length).",
            )
        if length > self._bounds.longest_body:
            said = f"The body is too large: {length} bytes, and at most {self._bounds.longest_body} are read."
            return said_page(HTTPStatus.BAD_REQUEST, InvalidInputError.__name__, said)
        return self._service.refusal(request)

    def _is_ours(self, host: str) -> bool:
        """Return True for an address, a name without a dot, or a listed name: no stranger's page has such a host."""
        if "." not in host and ":" not in host:
            return True
        with suppress(ValueError):
            ip_address(host)
            return True
        return any(fnmatch(host, pattern.lower()) for pattern in (socket.gethostname(), *self._bounds.hosts))

    def taken(self, size: int) -> bool:
        """Count bytes of a body of this task's request; beyond the limit, end the largest incomplete request."""
        own = asyncio.current_task()
        assert own is not None  # noqa: S101 - called by a connection
        self._bytes[own] += size
        self._held += size
        while self._held > _MOST_BUFFERED:
            most = max(self._waiting, key=self._bytes.__getitem__)
            self._held -= self._bytes.pop(most, 0)
            if most is own:
                return False
            _log.warning("http_body_given_up", port=self._name, peer=self._waiting[most])
            self._give_up(most)
        return True

    async def answered(self, request: Request, body: bytes) -> Page:
        """Answer a complete request on a thread."""
        own = asyncio.current_task()
        assert own is not None  # noqa: S101 - called by a connection
        address = self._waiting.pop(own)
        self.in_work += 1
        try:
            return await self._threads.run(partial(self._service.answer, request, body))
        finally:
            self.in_work -= 1
            self._waiting[own] = address
            self._held -= self._bytes.pop(own, 0)

    @property
    def idle_s(self) -> float:
        """The seconds that a connection may be silent between two requests."""
        return self._bounds.idle_s


class _Reader(asyncio.StreamReader):
    """A reader of a caller's bytes. ``gone``: is set when no more will come."""

    def __init__(self) -> None:
        super().__init__(_PIECE)
        self.gone = threading.Event()

    def feed_eof(self) -> None:
        """Set ``gone``; see `StreamReader`."""
        self.gone.set()
        super().feed_eof()

    def set_exception(self, exc: Exception) -> None:
        """Set ``gone``; see `StreamReader`."""
        self.gone.set()
        super().set_exception(exc)


class _Talk:
    """The requests of a connection, one after the other."""

    def __init__(self, server: HttpServer, reader: "_Reader", writer: asyncio.StreamWriter, address: str) -> None:
        self._server, self._reader, self._writer, self._address = server, reader, writer, address
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)

    async def go_on(self) -> None:
        """Answer until the caller leaves, or the connection must be closed."""
        patience, now = HEAD_S, asyncio.get_running_loop().time
        while True:
            if not self._http.trailing_data[0]:
                async with asyncio.timeout(patience):
                    self._http.receive_data(await self._reader.read(_PIECE))
            try:
                head = await self._event(now() + HEAD_S)
            except h11.RemoteProtocolError as error:
                if self._http.our_state is h11.IDLE:
                    said = f"This is no request of HTTP/1.1: {error}."
                    await self._send(said_page(HTTPStatus.BAD_REQUEST, InvalidInputError.__name__, said), closes=True)
                return
            if not isinstance(head, h11.Request):
                return
            await self._answer(head)
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()
            patience = self._server.idle_s

    async def _answer(self, head: h11.Request) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        certificate = self._writer.get_extra_info("peercert")
        request = Request(
            head.method.decode("latin-1"),
            head.target.decode("latin-1"),
            headers,
            self._address,
            certificate if isinstance(certificate, dict) else None,
            self._reader.gone,
        )
        length = None if "transfer-encoding" in headers else int(headers.get("content-length", 0))
        page = self._server.refusal(request, length)
        if page is not None and (length is None or length > _SMALL):  # The rest would be taken for the next request.
            await self._send(page, closes=True)
            return
        body = await self._body(length or 0)
        if body is None:
            said = "Too many large requests are in work here: try again later."
            await self._send(said_page(HTTPStatus.SERVICE_UNAVAILABLE, "LimitReachedError", said), closes=True)
            return
        if page is None:
            page = await self._server.answered(request, body)
        await self._send(page, whole=request.method != "HEAD")

    async def _body(self, length: int) -> bytes | None:
        """Read a body; None if there is no room for it."""
        if self._http.they_are_waiting_for_100_continue:
            going_on = h11.InformationalResponse(status_code=100, headers=[])
            self._writer.write(self._http.send(going_on) or b"")
        pieces, until = [], asyncio.get_running_loop().time() + HEAD_S + length / _SLOWEST
        while isinstance(event := await self._event(until), h11.Data):
            pieces.append(event.data)
            if not self._server.taken(len(event.data)):
                return None
        return b"".join(pieces)

    async def _event(self, until: float) -> Any:
        event = self._http.next_event()
        if event is h11.NEED_DATA:
            async with asyncio.timeout_at(until):
                while event is h11.NEED_DATA:
                    self._http.receive_data(await self._reader.read(_PIECE))
                    event = self._http.next_event()
        return event

    async def _send(self, page: Page, *, closes: bool = False, whole: bool = True) -> None:
        headers = [("Content-Type", page.content_type), ("Content-Length", str(len(page.body)))]
        if closes:
            headers.append(("Connection", "close"))
        parts = [
            self._http.send(h11.Response(status_code=page.status, headers=headers, reason=page.status.phrase.encode())),
            self._http.send(h11.Data(data=page.body)) if whole else b"",
            self._http.send(h11.EndOfMessage()),
        ]
        self._writer.write(b"".join(part for part in parts if part))
        if self._writer.transport.get_write_buffer_size():
            async with asyncio.timeout(HEAD_S + len(page.body) / _SLOWEST):
                await self._writer.drain()
        if closes:
            await self._part()

    async def _part(self) -> None:
        """Read on for a moment: closing with unread bytes would take the answer back."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                while await self._reader.read(_PIECE):
                    pass


def said_page(status: HTTPStatus, error: str, message: str) -> Page:
    """Return an error as every port answers it: a class for programs, and a sentence."""
    return Page(json.dumps({"error": error, "message": message}).encode() + b"\n", status=status)


def path_of(target: str) -> str:
    """Return the path of a request, without its query."""
    return urlsplit(target).path


def _name_in(host: str) -> str:
    """Return the name in a Host header, without brackets and port."""
    name = host.strip().lower()
    return name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0].rstrip(".")
