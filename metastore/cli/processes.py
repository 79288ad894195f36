"""Several server processes on one port: the kernel spreads the connections over them.

Rule: the process that was started serves nothing itself. It owns the port, the embedded PostgreSQL and the ready file,
and when any of the others ends by itself, it ends them all: its supervisor starts everything again. They end by
themselves when it is gone. Each is a server like any other replica: one of them leads the loops.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metastore.config import Settings
from metastore.config.sources import PREFIX
from metastore.db.embedded import EmbeddedPostgres
from metastore.errors import InvalidInputError, MetastoreError
from metastore.telemetry.logs import get_logger

_DATABASE = f"{PREFIX}METASTORE_DATABASE_URL"
_PATIENCE_S = 10.0
"""The patience before a server is killed, longer than a drain may take."""

_log = get_logger(__name__)


class ProcessEndedError(MetastoreError):
    """Error: a server process ended by itself."""


@dataclass
class Processes:
    """A group of ``number`` server processes; ``options``: the options of ``serve`` that each process gets."""

    settings: Settings
    number: int
    options: list[str]
    data_dir: Path
    stopping: threading.Event
    _children: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def run(self, ready_file: Path | None, write: Any) -> None:
        """Serve until stopped; ``write`` puts the ready file's content into the file, once all processes answer.

        Raises: ProcessEndedError, InvalidInputError (the port is taken), and errors of the embedded PostgreSQL.
        """
        with ExitStack() as running:
            taken = running.enter_context(_reserved(self.settings.server.host, self.settings.server.port))
            environment, database_url = dict(os.environ), self.settings.database.full_url
            if not database_url:
                postgres = EmbeddedPostgres(self.data_dir, archive=self.settings.database.archive_dir)
                postgres.start()
                running.callback(postgres.stop)
                environment[_DATABASE], database_url = postgres.url, postgres.tcp_url
            places = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="metastore-processes-")))
            running.callback(self._end)
            for place in range(self.number):
                self._start(place, taken.getsockname()[1], places, environment)
            addresses = [self._wait_for(places / f"{place}.json") for place in range(self.number)]
            if ready_file and not self.stopping.is_set():
                write(
                    ready_file,
                    {
                        **addresses[0],
                        "database_url": database_url,
                        "pid": os.getpid(),
                        "processes": [{"pid": process["pid"], "http": process["http"]} for process in addresses],
                    },
                )
                running.callback(ready_file.unlink, missing_ok=True)
            while not self.stopping.wait(0.2):
                self._require_all()

    def _start(self, place: int, port: int, places: Path, environment: dict[str, str]) -> None:
        http_port = self.settings.server.http_port
        command = [
            sys.executable,
            "-m",
            "metastore",
            "serve",
            *self.options,
            "--port",
            str(port),
            "--http-port",
            str(http_port + place if http_port else 0),
            "--ready-file",
            str(places / f"{place}.json"),
            "--process",
            str(place),
        ]
        # A new session keeps Ctrl-C from the children: this process stops them. If it dies, their input ends.
        self._children.append(
            subprocess.Popen(  # noqa: S603 - our own program
                command, env=environment, stdin=subprocess.PIPE, start_new_session=True
            )
        )

    def _wait_for(self, ready: Path) -> dict[str, Any]:
        while not ready.exists():
            if self.stopping.wait(0.05):
                return {"pid": 0, "http": ""}
            self._require_all()
        addresses: dict[str, Any] = json.loads(ready.read_text())
        return addresses

    def _require_all(self) -> None:
        for child in self._children:
            if child.poll() is not None and not self.stopping.is_set():
                raise ProcessEndedError(f"Server process {child.pid} ended with {child.returncode}, so all are ended.")

    def _end(self) -> None:
        """Tell all processes to finish their calls, and wait for them."""
        for child in self._children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in self._children:
            try:
                child.wait(self.settings.server.drain_timeout.total_seconds() + _PATIENCE_S)
            except subprocess.TimeoutExpired:
                _log.warning("process_killed", pid=child.pid)
                child.kill()
                child.wait()
            if child.stdin is not None:
                child.stdin.close()


def _reserved(host: str, port: int) -> socket.socket:
    """Return a port on which only several of our processes can listen from now on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as alone:  # An unshared bind also notices a metastore that shares the port.
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            alone.bind((host, port))
            port = alone.getsockname()[1]
        shared = socket.socket(family)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind((host, port))
    except OSError as error:
        raise InvalidInputError(
            f"The Thrift port {port} on {host} cannot be used: {error.strerror}. Choose another "
            "one, or 0 for a free one."
        ) from error
    return shared
