"""The planner's port: HTTP/1.1 with connections that stay, a JSON object in and a JSON object out.

Rules: a caller proves its identity, where it must, before any work, and its body is not decoded before its turn. Work
ends when its caller leaves. No page of the web can call (ADR 134).
"""

import json
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from time import monotonic, perf_counter
from typing import Any
from urllib.parse import urlsplit

from metastore.client.client import ActingFor
from metastore.config import CatalogSettings, PlannerSettings, TlsSettings
from metastore.errors import AccessDeniedError, InvalidInputError, NoSuchObjectError
from metastore.file_work import FilePool
from metastore.object_stores import ObjectStores
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.call_files import CallFiles
from metastore.planner.calls import CALLS
from metastore.planner.client_pool import Metastores
from metastore.planner.errors import answer_of, status_of
from metastore.planner.work_slots import Turns
from metastore.telemetry.logs import get_logger
from metastore.thrift_server.auth.identity import NOBODY, of_certificate
from metastore.thrift_server.loop.address_limits import AddressLimits
from metastore.tls.contexts import RenewedContext
from metastore.web.http_server import Bounds, HttpServer, Page, Request, path_of

_log = get_logger(__name__)
_PREFIX = "/v1/"
_LIVEZ = "/livez"
_LONGEST_BODY = 64 << 20
_LARGE = 1 << 16
"""The size of a body in bytes from which on decoding counts as work."""
_LARGE_AT_A_TIME = 2
_AS_AT_THE_METASTORE = {"commit": "commit_txn", "abort": "abort_txn"}
"""Calls that the limits refuse last, by their names there."""
_DRAIN_S = 3.0
_BETWEEN_CALLS_S = 1300.0
"""Seconds that a connection may be silent between calls: longer than Java's clients keep an idle one (1200 s)."""


class PlannerServer:
    """The server that answers calls on a port."""

    def __init__(
        self,
        metastores: Metastores,
        settings: PlannerSettings,
        tls: TlsSettings,
        *,
        requires_proof: bool = False,
        limits: AddressLimits | None = None,
        catalog: CatalogSettings | None = None,
        stores: ObjectStores | None = None,
    ) -> None:
        """Prepare the server. ``requires_proof``: the metastore answers only clients that prove who they are.

        Raises: InvalidInputError (key or trust store).
        """
        self.metastores, self.tls, self.limits = metastores, tls, limits
        self._requires_proof = requires_proof or (tls.use_ssl and tls.client_certificates == "required")
        self._stores = stores or ObjectStores()
        self.turns, self._large = Turns(settings.threads), Turns(_LARGE_AT_A_TIME)
        files = catalog or CatalogSettings()
        self._files = FilePool(files.files_threads, files.files_timeout.total_seconds(), self.turns.aside)
        bounds = Bounds(
            connections=settings.connections,
            threads=settings.connections,
            longest_body=_LONGEST_BODY,
            idle_s=_BETWEEN_CALLS_S,
            handshake=tls.handshake_timeout,
            hosts=(*tls.http_hosts, *filter(None, [urlsplit(settings.uri).hostname])),
        )
        self._http = HttpServer("planner", self, bounds, RenewedContext(tls) if tls.use_ssl else None, limits)

    def start(self, host: str, port: int, inherited: socket.socket | None = None) -> tuple[str, int]:
        """Listen; return the address bound, so port 0 asks for a free one. Raises: OSError."""
        return self._http.start(host, port, inherited)

    def stop(self) -> None:
        """Stop listening, and wait for short calls to end."""
        self._http.stop(_DRAIN_S)

    @property
    def in_work(self) -> int:
        """The number of calls in progress."""
        return self._http.in_work

    def refusal(self, request: Request) -> Page | None:
        """Return why a request is refused: see `Service`."""
        try:
            self._require(request)
        except Exception as error:  # noqa: BLE001 - the caller gets every error
            return _page(status_of(error), answer_of(error))
        return None

    def answer(self, request: Request, body: bytes) -> Page:
        """Answer a request: see `Service`."""
        if request.method == "GET":
            return _page(HTTPStatus.OK, {"alive": True})
        began, name = perf_counter(), _call_in(request)
        try:
            page = _page(HTTPStatus.OK, self._answer(name, request, body))
        except Exception as error:  # noqa: BLE001 - the caller gets every error
            page = _page(status_of(error), answer_of(error))
            if page.status is HTTPStatus.INTERNAL_SERVER_ERROR:
                _log.error("planner_call_failed", call=name, exc_info=error)
        _log.debug("planner_call", call=name, status=int(page.status), ms=round((perf_counter() - began) * 1000, 2))
        return page

    def user_of(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Return the user in the certificate; None without one. Raises: AccessDeniedError if one is required."""
        identity = of_certificate(certificate, self.tls.client_user) if self.tls.use_ssl else NOBODY
        if identity.user is None and self._requires_proof:
            raise AccessDeniedError(
                "This planner answers only callers that prove who they are by a client certificate "
                "(metastore.client.keystore.path), and the certificate of this connection, if any, names no user."
            )
        return identity.user

    def _require(self, request: Request) -> None:
        """Raise the error of a request, before its body is read."""
        if request.method == "GET" and path_of(request.path) == _LIVEZ:
            return
        name = _call_in(request)
        if request.method != "POST" or not request.path.startswith(_PREFIX) or name not in CALLS:
            raise NoSuchObjectError(
                f"There is no call {request.path[:100]}: calls are POST {_PREFIX}NAME, with {', '.join(CALLS)}."
            )
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":
            raise InvalidInputError(f"The body's Content-Type must be application/json, not {content_type[:100]!r}.")
        self.user_of(request.certificate)
        if self.limits is not None:
            self._count(self.limits, request.address, name)

    @staticmethod
    def _count(limits: AddressLimits, address: str, name: str) -> None:
        """Count a call of an address. Raises: LimitReachedError."""
        now = monotonic()
        limits.sweep(now)
        usage = limits.usage(address, now)
        refusal = limits.refusal(usage, _AS_AT_THE_METASTORE.get(name, name), now) if usage is not None else None
        if refusal is not None:
            raise refusal

    def _answer(self, name: str, request: Request, content: bytes) -> Answer:
        method, caller = CALLS[name], (request.address, request.gone)
        with ExitStack() as held:
            is_large = len(content) > _LARGE
            if is_large:
                held.enter_context(self._large.turn(*caller))
            if is_large or method.is_work:
                held.enter_context(self.turns.turn(*caller))
            body = Body.of(content)
            user = self.user_of(request.certificate)
            acting_for = ActingFor(user, f"{request.address}:0")  # The caller's port changes with each connection.
            client = held.enter_context(self.metastores.lent(acting_for))
            settings = self.metastores.settings(client)
            files = CallFiles(
                stores=self._stores,
                pool=self._files,
                schemes=settings.schemes,
                readable=settings.readable,
                gone=request.gone,
            )
            return method.answer(PlannerCall(body, client, settings, files, user, request.gone, request.address))


def _call_in(request: Request) -> str:
    return path_of(request.path).removeprefix(_PREFIX)


def _page(status: HTTPStatus, answer: Answer) -> Page:
    return Page(json.dumps(answer, separators=(",", ":")).encode(), status=status)
