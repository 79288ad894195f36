"""Measures of compactions, transactions and locks for /metrics, so that no reader of /metrics asks the database."""

from dataclasses import dataclass, field

from metastore.compaction.measuring.service import MeasuringService


@dataclass
class Measuring:
    """The last measures."""

    service: MeasuringService
    seen: list[tuple[str, str, float]] = field(default_factory=list)

    def tick(self) -> None:
        """Measure."""
        self.seen = self.service.measure()
