"""The planner's port: HTTP/1.1 with connections that stay, a JSON object in and a JSON object out.

Rules: a body that is too long, or has no length, is refused before it is read. A caller proves its identity, where it
must, before anything is done. A call that waits for a lock ends when its caller leaves.
"""

import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from metastore.client.client import ActingFor
from metastore.config import PlannerSettings, TlsSettings
from metastore.errors import AccessDeniedError, InvalidInputError, LimitReachedError, NoSuchObjectError
from metastore.files import Files
from metastore.planner.answers import answer_of, status_of
from metastore.planner.body import Body
from metastore.planner.call import Answer, Call, Method
from metastore.planner.calls import CALLS
from metastore.planner.metastores import Metastores
from metastore.telemetry.logs import get_logger
from metastore.thrift_server.auth.identity import NOBODY, Identity, of_certificate
from metastore.tls.contexts import RenewedContext
from metastore.web.listening import Listener

_log = get_logger(__name__)
_PREFIX = "/v1/"
_LONGEST_BODY = 64 << 20
_LONGEST_QUEUE_S = 60.0
_DRAIN_S = 3.0
_IN_A_CALL_S, _BETWEEN_CALLS_S = 30.0, 1300.0
"""Seconds that a connection may be silent; between calls longer than Java's clients keep an idle one (1200 s)."""


class PlannerServer:
    """Answers calls on a port."""

    def __init__(self, metastores: Metastores, settings: PlannerSettings, tls: TlsSettings) -> None:
        """Raises: InvalidInputError (key or trust store)."""
        self.metastores, self.tls = metastores, tls
        self.files = Files()
        self.patience_s = _LONGEST_QUEUE_S
        self._context = RenewedContext(tls) if tls.use_ssl else None
        self._connections = settings.connections
        self._work = threading.BoundedSemaphore(settings.threads)
        self._running = 0
        self._changed = threading.Condition()

    def start(self, host: str, port: int, inherited: socket.socket | None = None) -> tuple[str, int]:
        """Listen; returns the address bound, so port 0 asks for a free one. Raises: OSError."""
        server = self

        class Handler(_Handler):
            planner = server

        self._listener = _Listener((host, port), Handler, self._context, inherited)
        self._listener.places = threading.BoundedSemaphore(self._connections)
        threading.Thread(target=self._listener.serve_forever, name="planner", daemon=True).start()
        bound, number = self._listener.server_address[:2]
        return str(bound), int(number)

    def stop(self) -> None:
        """Stop listening, and wait for short calls to end."""
        self._listener.shutdown()
        with self._changed:
            self._changed.wait_for(lambda: not self._running, _DRAIN_S)
        self._listener.server_close()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Around a call, from its first byte to its answer's last."""
        with self._changed:
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def answer(self, method: Method, content: bytes, caller: Identity, connection: socket.socket) -> Answer:
        """The answer to a call, which is the caller's at the metastore, too. Raises: whatever the call raises."""
        body = Body.of(content)
        acting_for = ActingFor(caller.user, caller.address)
        with self._place(method), self.metastores.lent(acting_for) as client:
            settings = self.metastores.settings(client)
            return method.answer(Call(body, client, settings, self.files, caller.user, _Gone(connection)))

    def caller_of(self, connection: Any, host: str) -> Identity:
        """Who calls, by the certificate, and from where. Raises: AccessDeniedError where there must be a user."""
        identity = of_certificate(connection.getpeercert(), self.tls.client_user) if self.tls.use_ssl else NOBODY
        if identity.user is None and self.tls.use_ssl and self.tls.client_certificates == "required":
            raise AccessDeniedError(
                "This planner answers only callers that prove who they are, and the certificate of this connection "
                "names no user."
            )
        return identity._replace(address=f"{host}:0")  # its ports come and go

    @contextmanager
    def _place(self, method: Method) -> Iterator[None]:
        if not method.is_work:
            yield
            return
        if not self._work.acquire(timeout=self.patience_s):
            raise LimitReachedError("The planner has been busy for a minute: try again, or start another.")
        try:
            yield
        finally:
            self._work.release()


class _Gone:
    """Whether a caller has left: a waiting caller sends nothing, so whatever arrives is the connection's end."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def wait(self, timeout: float) -> bool:
        """Wait for ``timeout`` seconds; True as soon as the connection is closed."""
        looking = select.poll()
        looking.register(self._connection, select.POLLIN | select.POLLHUP)
        return bool(looking.poll(timeout * 1000))


class _Listener(Listener):
    places: threading.BoundedSemaphore

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread, if there is room for another."""
        if not self.places.acquire(blocking=False):
            _log.warning("planner_is_full", peer=str(client_address[0]))
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer all calls of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()


class _Handler(BaseHTTPRequestHandler):
    planner: PlannerServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together
    timeout = _IN_A_CALL_S

    def do_GET(self) -> None:
        """Answer probes: the process is alive."""
        if urlsplit(self.path).path == "/livez":
            self._send(HTTPStatus.OK, {"alive": True})
        else:
            self._send(HTTPStatus.NOT_FOUND, answer_of(_no_such(self.path)))

    def parse_request(self) -> bool:
        """Read the head of a call, whose first line has arrived."""
        self.connection.settimeout(_IN_A_CALL_S)
        return super().parse_request()

    def do_POST(self) -> None:
        """Answer a call."""
        with self.planner.counted():
            self._do_call()
        self.connection.settimeout(_BETWEEN_CALLS_S)

    def _do_call(self) -> None:
        began, name = perf_counter(), urlsplit(self.path).path.removeprefix(_PREFIX)
        try:
            content = self._content()
        except InvalidInputError as error:
            self._send(status_of(error), answer_of(error))
            return
        try:
            status, answer = HTTPStatus.OK, self._answer(name, content)
        except Exception as error:  # noqa: BLE001 - the caller gets every error
            status, answer = status_of(error), answer_of(error)
            if status is HTTPStatus.INTERNAL_SERVER_ERROR:
                _log.error("planner_call_failed", call=name, exc_info=error)
        self._send(status, answer)
        _log.debug("planner_call", call=name, status=int(status), ms=round((perf_counter() - began) * 1000, 2))

    def _answer(self, name: str, content: bytes) -> Answer:
        caller = self.planner.caller_of(self.connection, str(self.client_address[0]))
        if not self.path.startswith(_PREFIX) or name not in CALLS:
            raise _no_such(self.path)
        return self.planner.answer(CALLS[name], content, caller, self.connection)

    def _content(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        self.close_connection = True  # until the body is read, the next bytes are no request
        if not length.isdecimal():
            raise InvalidInputError("A call must say how long its body is (Content-Length).")
        if int(length) > _LONGEST_BODY:
            raise InvalidInputError(f"The body is too large: {length} bytes, and at most {_LONGEST_BODY} are read.")
        content = self.rfile.read(int(length))
        if len(content) < int(length):
            raise InvalidInputError("The body ended early.")
        self.close_connection = self.headers.get("Connection", "").lower() == "close"
        return content

    def _send(self, status: HTTPStatus, answer: Answer) -> None:
        body = json.dumps(answer, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Calls are logged by their names."""


def _no_such(path: str) -> NoSuchObjectError:
    return NoSuchObjectError(f"There is no call {path[:100]}: calls are {_PREFIX}NAME, with {', '.join(CALLS)}.")
