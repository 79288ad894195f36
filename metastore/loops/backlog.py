"""The number of waiting compactions for /metrics, by which a cluster adds and removes Workers."""

from dataclasses import dataclass, field
from datetime import timedelta

from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.requests import Backlog

LOOK = timedelta(seconds=10)


@dataclass(frozen=True)
class BacklogReport:
    """The compactions that are to be done now."""

    waiting: int = field(metadata={"gauge": True})
    working: int = field(metadata={"gauge": True})
    wanted: int = field(metadata={"gauge": True})


@dataclass
class BacklogCounter:
    """A counter that keeps this process's backlog figure fresh, so that no reader of /metrics asks the database."""

    compactions: CompactionService
    seen: Backlog = field(default_factory=Backlog)
    wanted: int = 0
    """Workers that would be enough for the pools of this process."""

    def tick(self) -> BacklogReport:
        """Count the backlog."""
        self.seen = self.compactions.backlog()
        self.wanted = self.compactions.workers_wanted()
        return BacklogReport(*self.seen, self.wanted)
