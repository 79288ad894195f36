"""The HTTP port: /livez, /readyz and /metrics.

Rule: every request here must be answered while other parts are starting, stuck or stopping, so the port has threads of
its own and waits only for the database's probe.
"""

import json
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus

from metastore.telemetry.metrics import Metrics
from metastore.tls.contexts import RenewedContext
from metastore.web.health import Health
from metastore.web.http_server import Bounds, HttpServer, Page, Request, path_of, said_page

Route = Callable[[Mapping[str, str]], Page]


class WebServer:
    """The server of these routes on a port of its own."""

    def __init__(
        self,
        host: str,
        port: int,
        health: Health,
        metrics: Metrics,
        version: str,
        tls: RenewedContext | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        """Prepare the server. ``tls``: None: in the clear. ``hosts``: more names by which the port may be called."""
        self._address = (host, port)
        self._health, self._metrics, self._version = health, metrics, version
        self._server = HttpServer("http", self, Bounds(hosts=hosts), tls)
        self.routes: dict[str, Route] = {
            "/": self._index,
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/metrics": self._metrics_page,
        }

    def start(self) -> tuple[str, int]:
        """Listen; return the address bound, so port 0 asks for a free port. Raises: OSError."""
        return self._server.start(*self._address)

    def stop(self) -> None:
        """Stop listening."""
        self._server.stop()

    def refusal(self, request: Request) -> Page | None:
        """Return why a request is refused: see `Service`."""
        if request.method not in {"GET", "HEAD"}:
            said = f"{request.method[:20]} is not answered here: everything is read by GET."
            return said_page(HTTPStatus.METHOD_NOT_ALLOWED, "InvalidInputError", said)
        if path_of(request.path) not in self.routes:
            said = f"There is no such path here: paths are {', '.join(sorted(self.routes))}."
            return said_page(HTTPStatus.NOT_FOUND, "NoSuchObjectError", said)
        return None

    def answer(self, request: Request, _body: bytes) -> Page:
        """Answer a request: see `Service`."""
        return self.routes[path_of(request.path)](request.headers)

    def _index(self, _: Mapping[str, str]) -> Page:
        return Page(_json({"service": "transaction metastore", "version": self._version, "paths": sorted(self.routes)}))

    def _livez(self, _: Mapping[str, str]) -> Page:
        return Page(_json({"alive": True}))

    def _readyz(self, _: Mapping[str, str]) -> Page:
        """Answer ready if every part is; a stopping server is not, so that no client is sent here any more."""
        parts = self._health.parts()
        ready = all(part.ready for part in parts.values()) and not self._health.stopping
        body = {
            "ready": ready,
            "stopping": self._health.stopping,
            "parts": {
                name: {"ready": part.ready, **({"reason": part.reason} if part.reason else {})}
                for name, part in parts.items()
            },
        }
        return Page(_json(body), status=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)

    def _metrics_page(self, headers: Mapping[str, str]) -> Page:
        content_type, body = self._metrics.text(headers.get("accept", ""))
        return Page(body, content_type)


def _json(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
