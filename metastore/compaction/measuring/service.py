"""Measures for /metrics."""

from dataclasses import dataclass

from metastore.compaction.measuring import store
from metastore.config import CompactionSettings
from metastore.db.engine import Database


@dataclass(frozen=True)
class MeasuringService:
    """Reads; changes nothing."""

    db: Database
    settings: CompactionSettings

    def measure(self) -> list[tuple[str, str, float]]:
        """(what, of which, how much), as `telemetry.compactions` names them."""
        with self.db.begin(durable=False) as pg:
            return store.select_measures(pg, self.settings.many_aborts)
