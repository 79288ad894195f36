"""The wake-up of idle Workers: PostgreSQL notifies them when any server or Initiator queues a compaction.

Rule: this only saves time. A Worker looks by itself every ``hive.compactor.worker.sleep.time``; after a lost connection
it looks once, to make up for missed notifications.
"""

import os
import select
import weakref
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
    """A thread that listens for queued compactions."""

    def __init__(self, url: str, wake: Callable[[], None]) -> None:
        """Prepare the thread; ``wake``: called when there may be work."""
        self._listener, self._wake = Listener(url, CHANNEL), wake
        self._stopping = Event()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # Not closed by stop(): the thread may outlive stop() and still poll the eventfd.
        weakref.finalize(self, os.close, self._bell)
        self._thread = Thread(target=self._run, name="compactions-heard", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening. A connecting thread ends with the process."""
        self._stopping.set()
        os.eventfd_write(self._bell, 1)
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listener.connect()
            except UnavailableError as error:
                _log.warning("compaction_notifications_unavailable", reason=str(error))
                self._stopping.wait(_RECONNECT_S)
                continue
            self._wake()
            with suppress(UnavailableError):  # The next attempt to connect reports the reason.
                self._listen()
            self._stopping.wait(_LOST_S)
        self._listener.close()

    def _listen(self) -> None:
        ears = select.poll()  # poll() works with any number of descriptors.
        for ear in (self._bell, self._listener):
            ears.register(ear, select.POLLIN)
        while not self._stopping.is_set():
            ears.poll()
            if self._listener.heard():
                self._wake()
