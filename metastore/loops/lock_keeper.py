"""House-keeping of locks: deadlocks that nobody found when they arose, and locks whose client is gone."""

from dataclasses import dataclass
from datetime import timedelta

from metastore.locks.holders import Holders
from metastore.locks.service import LockService

ORPHAN_LOOK = timedelta(seconds=2)
"""Pause between looks for connections that are gone."""


@dataclass(frozen=True)
class DeadlockReport:
    """The transactions that died."""

    victims: tuple[int, ...] = ()


@dataclass(frozen=True)
class DeadlockSearch:
    """Looks for what a server that died between queueing a request and looking left behind."""

    locks: LockService

    def tick(self) -> DeadlockReport:
        """End every deadlock."""
        return DeadlockReport(tuple(sorted(self.locks.end_deadlocks())))


@dataclass(frozen=True)
class OrphanReport:
    """Locks whose connection was found closed, and locks that were removed because nobody came back for them."""

    orphaned: int = 0
    removed: int = 0


@dataclass(frozen=True)
class Orphans:
    """Locks without a transaction that nobody keeps alive and whose connection to this process is gone."""

    locks: LockService
    holders: Holders

    def tick(self) -> OrphanReport:
        """Note whose connection is gone; remove what has been an orphan for too long."""
        gone, here = self.holders.left()
        self.holders.keep(self.locks.orphan(gone, here), here)
        return OrphanReport(len(gone), self.locks.expire_orphans())
