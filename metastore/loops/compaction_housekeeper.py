"""The compaction housekeeper: the history is kept as long as the settings say."""

from dataclasses import dataclass

from metastore.compaction.initiating.service import InitiatorService


@dataclass(frozen=True)
class HistoryReport:
    """How many rows of the history went."""

    purged: int = 0


@dataclass(frozen=True)
class CompactionHousekeeper:
    """Purges the compaction history."""

    compactions: InitiatorService

    def tick(self) -> HistoryReport:
        """Forget what is beyond the retention."""
        return HistoryReport(self.compactions.purge_history())
