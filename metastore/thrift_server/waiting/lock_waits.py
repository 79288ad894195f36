"""Waits of calls for locks: a waiter is woken instead of polling.

Rules: a waiter waits for one lock request to go, its latest blocker: until then it cannot be granted, and then the
waiter checks by itself and perhaps waits for another. So the release of a lock wakes one waiter of a queue of writers.
This module neither grants nor decides.

No wake is lost: a waiter is put here first, then marks the row it waits for (``LockService.watch``), and checks again
if the row is gone. From then on a trigger notifies this process when the row goes, whichever statement of whichever
replica removes it. If its check has found the mark already, it checks again if a notification about the row came since
that check had begun, or may have come. Without notifications no call waits here. One thread serves all waiters, and no
error ends it: an error wakes all waiters, and it begins to listen anew.
"""

import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Generic, TypeVar

from metastore.db.listener import Listener
from metastore.errors import UnavailableError
from metastore.telemetry.locks import LockStats
from metastore.telemetry.logs import get_logger

CHANNEL = "metastore_lock_released"
_RECONNECT_SECONDS = 1.0
_LOOK_SECONDS = 3600.0
_STOP_SECONDS = 2.0
_REMEMBERED = 10_000
"""The number of releases that are remembered."""
_log = get_logger(__name__)

Waiter = TypeVar("Waiter")


class Waiting(Generic[Waiter]):
    """The waiters, with the lock request and the deadline of each."""

    def __init__(
        self,
        patience: timedelta,
        wake: Callable[[Waiter], None],
        overdue: Callable[[Waiter], None],
        listener: Listener,
        stats: LockStats,
    ) -> None:
        """Prepare the waits. ``wake``: there is news for the waiter. ``overdue``: its ``patience`` is at an end.

        One of them is called, once, for each time that the waiter was put here and not removed.
        """
        stats.watch_waiters(self.__len__)
        self._stats = stats
        self.patience = patience.total_seconds()
        self._wake, self._overdue, self._listener = wake, overdue, listener
        self._lock = threading.Lock()
        self._waiters: dict[Waiter, tuple[int, float]] = {}
        self._by_lock: dict[int, set[Waiter]] = {}
        self._released: dict[int, int] = {}  # The latest releases, each with its place in the order of notifications.
        self.heard = 0
        """The number of releases heard; a value from before a look at the queue goes with it to `add`."""
        self._hears = False  # Other replicas can wake us: without that no call waits here.
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._looks_at = 0.0  # The time when the thread wakes by itself.
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="lock-waits", daemon=True)

    def __len__(self) -> int:
        """Return the number of waiters."""
        return len(self._waiters)

    def start(self) -> None:
        """Listen to the other replicas, and begin to watch deadlines."""
        self._connect()
        self._thread.start()

    def stop(self) -> None:
        """Wake all waiters, and accept none. A thread that is connecting is left to the process's end."""
        self._stopping = True
        os.eventfd_write(self._bell, 1)
        self._thread.join(_STOP_SECONDS)
        self._deaf()
        if self._thread.is_alive():
            return
        self._listener.close()
        os.close(self._bell)

    def add(self, waiter: Waiter, lock_id: int, since: float, heard: int) -> bool:
        """Add a waiter, whose patience began ``since`` (a perf_counter); False if waiting is not possible now.

        ``heard``: the count before the check that found the lock. A release since then wakes at once.
        """
        deadline = since + self.patience
        with self._lock:
            if not self._hears:
                return False
            self._waiters[waiter] = lock_id, deadline
            self._by_lock.setdefault(lock_id, set()).add(waiter)
            if deadline < self._looks_at:
                self._looks_at = deadline
                os.eventfd_write(self._bell, 1)
            over = self._released.get(lock_id, 0) > heard or self.heard - heard > _REMEMBERED
        if over and self.remove(waiter):
            self._wake_all([waiter])
        return True

    def remove(self, waiter: Waiter) -> bool:
        """Remove a waiter; False if it has been woken already."""
        with self._lock:
            return self._remove(waiter)

    def released(self, lock_ids: Iterable[int]) -> None:
        """Wake the waiters for any of these locks."""
        lock_ids = list(lock_ids)
        with self._lock:
            for lock_id in lock_ids:
                self.heard += 1
                self._released.pop(lock_id, None)
                self._released[lock_id] = self.heard
            while len(self._released) > _REMEMBERED:
                del self._released[next(iter(self._released))]
            woken = [
                waiter
                for lock_id in lock_ids
                for waiter in list(self._by_lock.get(lock_id, ()))
                if self._remove(waiter)
            ]
        self._wake_all(woken)

    def told(self, news: Iterable[str]) -> None:
        """Process PostgreSQL's notices to sessions of this process; lines that are not about locks are skipped."""
        self.released([int(words[-1]) for line in news if CHANNEL in line and (words := line.split())])

    def take(self, lock_ids: Iterable[int], most: int) -> list[Waiter]:
        """Remove and return at most ``most`` waiters for these locks. They are not woken: the caller answers them."""
        with self._lock:
            waiters = [waiter for lock_id in lock_ids for waiter in self._by_lock.get(lock_id, ())][:most]
            for waiter in waiters:
                self._remove(waiter)
        self._stats.wakes.inc(len(waiters))
        return waiters

    def _remove(self, waiter: Waiter) -> bool:
        place = self._waiters.pop(waiter, None)
        if place is None:
            return False
        others = self._by_lock[place[0]]
        others.discard(waiter)
        if not others:
            del self._by_lock[place[0]]
        return True

    def _wake_all(self, waiters: Iterable[Waiter]) -> None:
        for waiter in waiters:
            self._stats.wakes.inc()
            self._wake(waiter)

    def _run(self) -> None:
        """Run the thread."""
        while not self._stopping:
            try:
                self._end_patience()
                self._listen()
            except Exception:  # noqa: BLE001 - every parked call depends on this thread
                _log.exception("lock_waits_failed")
                self._deaf()

    def _listen(self) -> None:
        """Wait for notifications until the next deadline, and pass them on.

        poll() works with any number of descriptors.
        """
        ears = select.poll()
        for ear in (self._bell, self._listener) if self._hears else (self._bell,):
            ears.register(ear, select.POLLIN)
        ready = {fd for fd, _ in ears.poll(1000 * max(0.0, self._looks_at - time.perf_counter()))}
        if self._bell in ready:
            os.eventfd_read(self._bell)
        if not self._hears:
            self._connect()
        elif ready - {self._bell}:
            self._hear()

    def _end_patience(self) -> None:
        now = time.perf_counter()
        with self._lock:
            late = [waiter for waiter, (_, deadline) in self._waiters.items() if deadline <= now]
            for waiter in late:
                self._remove(waiter)
            self._looks_at = min(
                (deadline for _, deadline in self._waiters.values()),
                default=now + (_LOOK_SECONDS if self._hears else _RECONNECT_SECONDS),
            )
        for waiter in late:
            self._overdue(waiter)

    def _hear(self) -> None:
        try:
            self.released([int(payload) for payload in self._listener.heard() if payload.isdecimal()])
        except UnavailableError as error:
            _log.warning("lock_listener_lost", reason=str(error))
            self._deaf()

    def _deaf(self) -> None:
        """Accept no waiter, and wake all: notifications are lost from now on."""
        with self._lock:
            self._hears = False
            everybody = [waiter for waiter in list(self._waiters) if self._remove(waiter)]
        self._wake_all(everybody)

    def _connect(self) -> None:
        try:
            self._listener.connect()
        except UnavailableError as error:
            _log.warning("lock_listener_not_connected", reason=str(error))
        else:
            with self._lock:
                self.heard += _REMEMBERED + 1  # Releases may be missing: a waiter with an earlier check checks again.
                self._hears = True
