"""The process of a planner: its port, and its metastore."""

import socket
from collections.abc import Mapping

from metastore import __version__
from metastore.config import Settings
from metastore.errors import InvalidInputError
from metastore.planner.client_pool import Metastores
from metastore.planner.server import PlannerServer
from metastore.telemetry.logs import get_logger
from metastore.thrift_server.loop.address_limits import AddressLimits

_log = get_logger(__name__)


class PlannerProcess:
    """The process of a planner. ``uri``: the metastore's; ``inherited``: the file descriptor of a listening socket."""

    def __init__(self, settings: Settings, uri: str | None, inherited: int | None = None) -> None:
        """Prepare the process. Raises: InvalidInputError."""
        self._host, self._port = settings.server.host, settings.planner.port
        try:
            self._metastores = Metastores(uri)
        except ValueError as error:
            raise InvalidInputError(str(error)) from error
        self._server = PlannerServer(
            self._metastores,
            settings.planner,
            settings.tls,
            requires_proof=settings.identity.requires_proof,
            limits=AddressLimits(settings.limits),
            catalog=settings.catalog,
            stores=settings.stores,
        )
        self._scheme = "https" if settings.tls.use_ssl else "http"
        self._inherited = inherited
        self.uri = ""

    def start(self) -> None:
        """Listen. Raises: InvalidInputError if the port is not available."""
        taken = None if self._inherited is None else socket.socket(fileno=self._inherited)
        try:
            host, port = self._server.start(self._host, self._port, taken)
        except OSError as error:
            raise InvalidInputError(
                f"The planner's port {self._port} on {self._host} cannot be used: {error.strerror}. Choose another "
                "one, or 0 for a free one."
            ) from error
        self.uri = f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        _log.info("planning", planner=self.uri, metastore=self._metastores.uri, version=__version__)

    def addresses(self) -> Mapping[str, object]:
        """Return the planner's address, the metastore's, and the version."""
        return {"planner": self.uri, "metastore": self._metastores.uri, "version": __version__}

    def stop(self) -> None:
        """Stop listening. Calls in progress end with the process, and their callers turn to another planner."""
        self._server.stop()
        self._metastores.close()
