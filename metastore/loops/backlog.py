"""How many compactions wait, counted for /metrics: what a cluster adds and removes Workers by."""

from dataclasses import dataclass, field
from datetime import timedelta

from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.requests import Backlog

LOOK = timedelta(seconds=10)


@dataclass(frozen=True)
class BacklogReport:
    """What is to be done now."""

    waiting: int = field(metadata={"gauge": True})
    working: int = field(metadata={"gauge": True})
    wanted: int = field(metadata={"gauge": True})


@dataclass
class BacklogCounter:
    """Keeps what this process tells of the backlog fresh, so that no reader of /metrics asks the database."""

    compactions: CompactionService
    seen: Backlog = field(default_factory=Backlog)
    wanted: int = 0
    """Workers that would be enough for the pools of this process."""

    def tick(self) -> BacklogReport:
        """Count."""
        self.seen = self.compactions.backlog()
        self.wanted = self.compactions.workers_wanted()
        return BacklogReport(*self.seen, self.wanted)
