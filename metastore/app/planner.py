"""The planner beside a server: a process of its own on a port that this process holds.

Rule: the port is this process's, so its address is known before anything runs and stays the same when the planner dies:
connections wait in the port's queue meanwhile. The planner is started when the first of them comes, and again, with
growing pauses, as long as there are some; it ends with this process, however that ends.
"""

import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib.util import find_spec
from time import monotonic

from metastore.config import Settings
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)
_NEEDED = ("pyarrow", "numpy")
_QUEUE = 128
_LOOK_S = 0.2
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(milliseconds=100), timedelta(seconds=30)
_LIVED_S = 60.0
_PATIENCE_S = 5.0


class PlannerBeside:
    """The planner's process and port. ``options``: settings for the planner, in the command line's form."""

    def __init__(self, settings: Settings, options: Sequence[str]) -> None:
        self._settings, self._options = settings, list(options)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @staticmethod
    def is_installed() -> bool:
        """Return True if the planner's libraries are installed; the image of only the server lacks them."""
        return all(find_spec(name) is not None for name in _NEEDED)

    def listen(self) -> str:
        """Take the port. Returns the URL for clients. Raises: OSError."""
        host, port = self._settings.server.host, self._settings.planner.port
        self._port = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._port.bind((host, port))
            self._port.listen(_QUEUE)
        except OSError:
            self._port.close()
            raise
        self._woken, self._wake = os.pipe()
        shown = f"[{host}]" if ":" in host else host or "0.0.0.0"  # noqa: S104 - shown, not bound
        return f"{'https' if self._settings.tls.use_ssl else 'http'}://{shown}:{self._port.getsockname()[1]}"

    def start(self, metastore: str, environment: Mapping[str, str]) -> None:
        """Wait for connections. ``metastore``: its address; ``environment``: the planner's, with its TLS settings."""
        command = [sys.executable, "-m", "metastore", "planner", "--inherited", str(self._port.fileno())]
        command += ["--uri", metastore, "--host", self._settings.server.host, *self._options]
        self._thread = threading.Thread(target=self._run, args=(command, environment), name="planner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the planner, and give the port back."""
        self._stopping.set()
        os.write(self._wake, b".")
        if self._thread is not None:
            self._thread.join()
        self._port.close()
        os.close(self._wake)
        os.close(self._woken)

    def _run(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            select.select([self._port.fileno(), self._woken], [], [])
            if self._stopping.is_set():
                return
            began = monotonic()
            code = self._watched(command, environment)
            if self._stopping.is_set():
                return
            pause = _FIRST_PAUSE if monotonic() - began > _LIVED_S else pause
            _log.warning("planner_ended", code=code, again_after_s=pause.total_seconds())
            self._stopping.wait(pause.total_seconds())
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _watched(self, command: Sequence[str], environment: Mapping[str, str]) -> int | None:
        """Run the planner until it ends, or is to end; its exit code."""
        try:
            child = subprocess.Popen(  # noqa: S603 - our own program
                command,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,  # whose end tells it that this process is gone
                pass_fds=[self._port.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("planner_not_started", reason=str(error))
            return None
        _log.info("planner_started", pid=child.pid)
        while child.poll() is None and not self._stopping.wait(_LOOK_S):
            pass
        child.terminate()
        try:
            child.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdin is not None:
            with suppress(OSError):
                child.stdin.close()
        return child.returncode
