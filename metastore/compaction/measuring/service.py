"""Measures for /metrics, and the read costs of tables' deltas."""

from dataclasses import dataclass
from datetime import timedelta

from metastore.compaction.measuring import store
from metastore.compaction.measuring.rules import Counted, DeltasOf
from metastore.compaction.queue.rules.requests import NO_AUTO_COMPACTION, Entity, is_opted_out
from metastore.config import CompactionSettings
from metastore.db.engine import Database, PgTx

_LATELY = timedelta(days=1)


@dataclass(frozen=True)
class MeasuringService:
    """Figures that the Initiator measured, and those that Hive's compactors report through `update` and `remove`."""

    db: Database
    settings: CompactionSettings

    def measure(self) -> list[tuple[str, str, float]]:
        """Return (figure, object, value), as `telemetry.compactions` names them; of tables only the highest."""
        settings = self.settings
        least = dict.fromkeys(Counted, settings.metrics_deltas) | {
            Counted.OBSOLETE_DELTAS: settings.metrics_obsolete_deltas
        }
        with self.db.begin(durable=False) as pg:
            return [
                *store.select_measures(pg, settings.many_aborts, settings.metrics_workers),
                *self._unattended(pg),
                *(
                    (what.value, str(entity), float(getattr(deltas, what.value)))
                    for what in Counted
                    for entity, deltas, _ in store.select_most(pg, what, max(1, least[what]), settings.metrics_tables)
                ),
            ]

    def _unattended(self, pg: PgTx) -> list[tuple[str, str, float]]:
        writes = store.select_writes(pg, pg.now - _LATELY, NO_AUTO_COMPACTION)
        off = [each for each in writes if is_opted_out(each.of_database, each.of_table)]
        most = off[: self.settings.metrics_tables]
        return [("unattended_writes", str(each.table), float(each.number)) for each in most]

    def costliest(self, limit: int) -> list[DeltasOf]:
        """Return the tables and partitions whose deltas cost readers most."""
        with self.db.begin(durable=False) as pg:
            return store.select_costliest(pg, limit)

    def update(self, entity: Entity, what: Counted, number: int, least: int) -> None:
        """Record a number, or forget it if it is below ``least``. Serialises on: the entity's row."""
        with self.db.begin(durable=False) as pg:
            store.update_counted(pg, entity, what, number if number >= least else 0)

    def remove(self, entity: Entity, what: Counted) -> None:
        """Forget a number. Serialises on: the entity's row."""
        with self.db.begin(durable=False) as pg:
            store.update_counted(pg, entity, what, 0)
