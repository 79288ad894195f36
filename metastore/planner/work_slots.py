"""Turns of calls that compute: a few at a time; waiting calls get theirs by address, one after the other.

Rule: a call that waits for a file, or whose caller has left, holds no turn.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from metastore.errors import LimitReachedError, UnavailableError

_LOOK_S = 0.25
LONGEST_WAIT_S = 60.0


class Turns:
    """A set of ``count`` turns. An address with many calls waits for itself, and does not delay others."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: dict[str, deque[threading.Event]] = {}
        """The waiting calls by address; the first address is the next."""
        self._lock = threading.Lock()
        self._local = threading.local()
        self.longest_wait_s = LONGEST_WAIT_S

    @contextmanager
    def turn(self, address: str, gone: threading.Event) -> Iterator[None]:
        """Hold a turn inside the block. Raises: LimitReachedError; UnavailableError: the caller has left."""
        self._take(address, gone, self.longest_wait_s)
        self._local.holder = address, gone
        try:
            yield
        finally:
            if self._local.holder is not None:
                self._give()
            self._local.holder = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Release this thread's turn, if it holds one, while the block runs; then wait for a turn again."""
        holder = getattr(self._local, "holder", None)
        if holder is None:
            yield
            return
        self._local.holder = None
        self._give()
        try:
            yield
        finally:
            self._take(*holder)
            self._local.holder = holder

    def _take(self, address: str, gone: threading.Event, longest_s: float | None = None) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            mine = threading.Event()
            self._waiting.setdefault(address, deque()).append(mine)
        until = None if longest_s is None else monotonic() + longest_s
        while not mine.wait(_LOOK_S):
            is_late = until is not None and monotonic() >= until
            if (is_late or gone.is_set()) and self._left(address, mine):
                require_caller(gone)
                raise LimitReachedError("The planner has been busy for a minute: try again, or start another.")

    def _give(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            address = next(iter(self._waiting))
            queue = self._waiting.pop(address)
            queue.popleft().set()
            if queue:
                self._waiting[address] = queue  # This caller goes behind all others.

    def _left(self, address: str, mine: threading.Event) -> bool:
        """Leave the queue; return False if the turn has just come."""
        with self._lock:
            if mine.is_set():
                return False
            self._waiting[address].remove(mine)
            if not self._waiting[address]:
                del self._waiting[address]
            return True


def require_caller(gone: threading.Event) -> None:
    """Raise UnavailableError if the caller has left."""
    if gone.is_set():
        raise UnavailableError("The caller has left, so its call was not worked on any further.")
