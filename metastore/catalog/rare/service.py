"""The one way in which all rare methods are run."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from metastore.catalog.rare import store
from metastore.catalog.rare.rules.objects import (
    PARTITION_MARK,
    REPLICATION_METRICS,
    RUNTIME_STATISTIC,
    Json,
    Kind,
    Method,
    Work,
)
from metastore.config import RareSettings
from metastore.db.engine import Database


@dataclass(frozen=True)
class RareReport:
    """The numbers of removed objects, by kind."""

    runtime_statistics: int = 0
    replication_metrics: int = 0
    partition_marks: int = 0


@dataclass(frozen=True)
class RareService:
    """The RPCs about rare objects, and the end of those that are kept for a time."""

    db: Database
    settings: RareSettings

    def run(self, concept: str, method: Method, request: Json) -> Any:
        """Apply a method's rule to the objects in its scope, and store its changes; return its answer.

        Serialises on: the concept, for methods that change something.
        Raises: the errors of the rule, NoSuchObjectError without the database of an object.
        """
        places = method.scope(request)
        with self.db.begin(snapshot=not method.changes) as pg:
            number = store.lock_concept(pg, concept) if method.changes else 0
            work = Work(request, store.select_objects(pg, places), pg.now, number)
            answer, changes = method.rule(work)
            store.update_objects(pg, changes)
        return answer

    def purge(self) -> RareReport:
        """Remove objects that did not change for longer than their kind is kept."""
        return RareReport(
            self._purge(RUNTIME_STATISTIC, self.settings.runtime_statistics_age),
            self._purge(REPLICATION_METRICS, self.settings.replication_metrics_age),
            self._purge(PARTITION_MARK, self.settings.partition_marks_age),
        )

    def _purge(self, kind: Kind, age: timedelta) -> int:
        count, removed = 0, store.BATCH if age else 0
        while removed == store.BATCH:
            with self.db.begin(durable=False) as pg:
                removed = store.delete_older(pg, kind, pg.now - age)
            count += removed
        return count
