"""The compaction housekeeper: it keeps the history for as long as the settings say."""

from dataclasses import dataclass

from metastore.compaction.initiating.service import InitiatorService


@dataclass(frozen=True)
class HistoryReport:
    """The number of removed rows of the history."""

    purged: int = 0


@dataclass(frozen=True)
class CompactionHousekeeper:
    """The purge of the compaction history."""

    compactions: InitiatorService

    def tick(self) -> HistoryReport:
        """Forget rows beyond the retention."""
        return HistoryReport(self.compactions.purge_history())
