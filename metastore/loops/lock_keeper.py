"""House-keeping of locks: missed deadlocks, and locks whose client is gone."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from time import CLOCK_BOOTTIME, clock_gettime
from typing import Protocol

from metastore.locks.orphans.rules import Left
from metastore.locks.service import LockService

ORPHAN_LOOK = timedelta(seconds=2)
"""Pause between looks for connections that are gone."""
DEAF = 5 * ORPHAN_LOOK
"""A longer pause between two looks: this process, its machine or PostgreSQL stood still."""


@dataclass(frozen=True)
class DeadlockReport:
    """The transactions that were aborted."""

    victims: tuple[int, ...] = ()


@dataclass(frozen=True)
class DeadlockSearch:
    """A search for deadlocks that a server left when it died between queueing a request and looking."""

    locks: LockService

    def tick(self) -> DeadlockReport:
        """End every deadlock."""
        return DeadlockReport(tuple(sorted(self.locks.end_deadlocks())))


class Holders(Protocol):
    """The server of this process, which knows the connections of lock requests."""

    def left(self) -> Left:
        """Return the outcomes of the connections."""

    def keep(self, lock_ids: Collection[int], left: Left) -> None:
        """Forget the requests of closed connections, and open ones that are not among ``lock_ids``."""


@dataclass(frozen=True)
class OrphanReport:
    """The locks whose connection was found closed, and the locks that were removed because no client came back."""

    orphaned: int = 0
    removed: int = 0


def _clock() -> float:
    """Return seconds that also count while this machine sleeps."""
    return clock_gettime(CLOCK_BOOTTIME)


@dataclass
class Orphans:
    """Locks without a transaction or heartbeats whose client ended its connection to this process.

    Rule: a client that could not be heard is not ended. After a start, a tick that failed and a pause, every orphan
    gets a whole time-out again.
    """

    locks: LockService
    holders: Holders
    clock: Callable[[], float] = _clock
    _heard: float | None = None
    """When the last tick ended, if it did not fail."""

    def tick(self) -> OrphanReport:
        """Record the requests whose connection is gone; remove those that were orphans for too long."""
        heard, self._heard = self._heard, None
        if heard is None or self.clock() - heard > DEAF.total_seconds():
            self.locks.spare_orphans()
        left = self.holders.left()
        self.holders.keep(self.locks.orphan(left), left)
        report = OrphanReport(len(left.gone), self.locks.expire_orphans())
        self._heard = self.clock()
        return report
