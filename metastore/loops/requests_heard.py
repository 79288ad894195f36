"""What wakes idle Workers: PostgreSQL says when a compaction is queued, by any server or Initiator.

Rule: this only saves time. A Worker looks by itself every ``hive.compactor.worker.sleep.time``; what is said while the
connection is away is made up for by a look when it is back.
"""

import os
import select
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from metastore.compaction.queue.rules.requests import CHANNEL
from metastore.db.listener import Listener
from metastore.errors import UnavailableError
from metastore.telemetry.logs import get_logger

_RECONNECT_S, _LOST_S = 5.0, 1.0
_STOP_S = 2.0
_log = get_logger(__name__)


class RequestsHeard:
    """A thread that listens."""

    def __init__(self, url: str, wake: Callable[[], None]) -> None:
        """``wake``: there may be something to do."""
        self._listener, self._wake = Listener(url, CHANNEL), wake
        self._stopping = Event()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = Thread(target=self._run, name="compactions-heard", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening. A thread that is connecting is left to the process's end."""
        self._stopping.set()
        os.eventfd_write(self._bell, 1)
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listener.connect()
            except UnavailableError as error:
                _log.warning("compactions_not_heard", reason=str(error))
                self._stopping.wait(_RECONNECT_S)
                continue
            self._wake()
            with suppress(UnavailableError):  # the next attempt to connect says why
                self._listen()
            self._stopping.wait(_LOST_S)
        self._listener.close()

    def _listen(self) -> None:
        ears = select.poll()  # descriptors may have any number
        for ear in (self._bell, self._listener):
            ears.register(ear, select.POLLIN)
        while not self._stopping.is_set():
            ears.poll()
            if self._listener.heard():
                self._wake()
