"""The compaction housekeeper: the history is kept as long as the settings say."""

from dataclasses import dataclass

from metastore.compaction.initiator_service import InitiatorService


@dataclass(frozen=True)
class CompactionHousekeeper:
    """Purges the compaction history."""

    compactions: InitiatorService

    def tick(self) -> int:
        """Forget what is beyond the retention; how many history rows went."""
        return self.compactions.purge_history()
