"""The HTTP port: /livez, /readyz and /metrics.

Rule: every question here must be answered while everything else is starting, stuck or stopping, so it has threads of
its own and waits for nothing but the database's probe.
"""

import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple
from urllib.parse import urlsplit

from metastore.telemetry.metrics import Metrics
from metastore.tls.contexts import RenewedContext
from metastore.web.health import Health
from metastore.web.listening import Listener

_JSON = "application/json; charset=utf-8"


class Page(NamedTuple):
    """An answer."""

    body: bytes
    content_type: str = _JSON
    status: HTTPStatus = HTTPStatus.OK


Route = Callable[[Mapping[str, str]], Page]


class WebServer:
    """Serves the routes on a port of its own."""

    def __init__(
        self, host: str, port: int, health: Health, metrics: Metrics, version: str, tls: RenewedContext | None = None
    ) -> None:
        """``tls``: None: in the clear."""
        self._address, self._tls = (host, port), tls
        self._health, self._metrics, self._version = health, metrics, version
        self.routes: dict[str, Route] = {
            "/": self._index,
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/metrics": self._metrics_page,
        }

    def start(self) -> tuple[str, int]:
        """Listen; returns the address bound, so port 0 asks for a free port. Raises: OSError."""
        routes = self.routes

        class Handler(_Handler):
            pages = routes

        self._server = Listener(self._address, Handler, self._tls)
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def _index(self, _: Mapping[str, str]) -> Page:
        return Page(_json({"service": "transaction metastore", "version": self._version, "paths": sorted(self.routes)}))

    def _livez(self, _: Mapping[str, str]) -> Page:
        return Page(_json({"alive": True}))

    def _readyz(self, _: Mapping[str, str]) -> Page:
        """Ready when every part is; a stopping server is not, so that nobody is sent here any more."""
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
        content_type, body = self._metrics.text(headers.get("Accept", ""))
        return Page(body, content_type)


class _Handler(BaseHTTPRequestHandler):
    pages: Mapping[str, Route] = {}
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_GET(self) -> None:
        """Answer with the page, or 404."""
        route = self.pages.get(urlsplit(self.path).path)
        page = (
            route(dict(self.headers)) if route else Page(_json({"error": "no such path"}), status=HTTPStatus.NOT_FOUND)
        )
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    do_HEAD = do_GET  # noqa: N815 - the standard library's name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Probes come every few seconds: nothing worth a line."""


def _json(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
