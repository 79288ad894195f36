"""Read transactions that live as long as frames that can read in them.

Rule: while a frame of a snapshot, or anything made from it, can still read the snapshot's files, the transaction stays
open, so that the Cleaner leaves the files. Only the JVM knows (``held_snapshots``), and only after its garbage
collector has run, which it seldom does by itself. So it is made to run soon after Python has dropped a frame, and at
growing intervals while frames are open, for at most a fiftieth of the time. A lease that ends late delays the Cleaner;
a lease that ends early takes a query's files away.
"""

from collections.abc import Callable, Collection, Iterable
from threading import Event, Lock, Thread
from time import monotonic
from typing import Protocol, TypeAlias

from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame

Locked: TypeAlias = tuple[str, str]
"""Database and table."""

_POLL, _SOON, _FIRST, _LONGEST = 0.5, 1.0, 5.0, 60.0
_SHARE = 50
_PATIENCE = (0.02, 0.05, 0.1, 0.3, 1.2, 1.2)
"""Pauses between looks before a frame counts as in use: the JVM's threads need a moment to report."""


class Held(Protocol):
    """Reports frames that nobody can read any more: ``held_snapshots.HeldFrames``."""

    is_worth_a_look: bool

    def hold(self, frame: DataFrame, number: int) -> DataFrame:
        """The same rows, watched."""

    def ended(self) -> list[int]:
        """The numbers of frames that nothing can read any more, each once."""

    def look(self) -> None:
        """Let the garbage collectors look."""


class Lease:
    """A read transaction. ``hold`` each frame that is read in it; ``ReadLeases.complete`` ends the list."""

    def __init__(self, held: Held, number: int, end: Callable[[], None]) -> None:
        self.number = number
        self.end = end
        self.locked: set[Locked] = set()
        self.left = 1
        """The number of frames that can still be read; one more while further frames may come."""
        self._held = held

    def hold(self, frame: DataFrame) -> DataFrame:
        """The same rows, which keep the transaction open."""
        self.left += 1
        return self._held.hold(frame, self.number)


class ReadLeases:
    """All read transactions of a session."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._open: dict[int, Lease] = {}
        self._given = 0
        self._lock = Lock()
        self._watcher: Thread | None = None
        self._closing = Event()
        self._pause = _FIRST
        self._due = self._not_before = 0.0

    def begin(self, end: Callable[[], None]) -> Lease:
        """A new lease; ``end`` runs, on the watcher's thread, when it is complete and nothing can read its frames."""
        with self._lock:
            self._given += 1
            lease = self._open[self._given] = Lease(self._held, self._given, end)
        return lease

    def lock(self, lease: Lease, tables: Collection[Locked]) -> None:
        """Note that the lease's transaction has locked tables."""
        with self._lock:
            lease.locked.update(tables)

    def complete(self, lease: Lease) -> None:
        """No more frames will come: the lease lives as long as its frames."""
        self._note([lease.number])
        with self._lock:
            if lease.number in self._open:
                self._pause = _FIRST
                self._due = monotonic() + _FIRST
                self._watch()

    def withdraw(self, lease: Lease) -> None:
        """Forget a lease whose transaction has ended otherwise."""
        with self._lock:
            self._open.pop(lease.number, None)

    def keep_locked(self, table: Locked) -> bool:
        """Whether a frame that can still be read has locked the table; waits some seconds for the answer no."""
        for pause in _PATIENCE:
            if not self._have_locked(table):
                return False
            self._held.look()
            self._closing.wait(pause)
            self._note(self._held.ended())
        return self._have_locked(table)

    def close(self) -> None:
        """End every transaction now."""
        self._closing.set()
        if self._watcher is not None:
            self._watcher.join()
        self._end_all()

    def _have_locked(self, table: Locked) -> bool:
        with self._lock:
            return any(table in lease.locked for lease in self._open.values())

    def _note(self, ended: Iterable[int]) -> None:
        """Frames have ended. The last frame ends its lease, which is forgotten after its transaction has ended."""
        for number in ended:
            with self._lock:
                lease = self._open.get(number)
                if lease is None:
                    continue
                lease.left -= 1
                if lease.left:
                    continue
            lease.end()
            self.withdraw(lease)

    def _end_all(self) -> None:
        with self._lock:
            leases, self._open = list(self._open.values()), {}
        for lease in leases:
            lease.end()

    def _watch(self) -> None:
        if self._watcher is None and not self._closing.is_set():
            self._watcher = Thread(target=self._watching, name="acid-read-leases", daemon=True)
            self._watcher.start()

    def _watching(self) -> None:
        while not self._closing.wait(_POLL):
            try:
                self._note(self._held.ended())
                self._look()
            except (Py4JNetworkError, OSError):  # the JVM is gone, and with it everything that could read
                self._end_all()
            with self._lock:
                if not self._open:
                    self._watcher = None
                    return

    def _look(self) -> None:
        now = monotonic()
        if self._held.is_worth_a_look:
            self._held.is_worth_a_look = False
            self._pause = _FIRST
            self._due = min(self._due, now + _SOON)
        if now < max(self._due, self._not_before):
            return
        self._held.look()
        ended = monotonic()
        self._not_before = ended + _SHARE * (ended - now)
        self._due = ended + self._pause
        self._pause = min(2 * self._pause, _LONGEST)
