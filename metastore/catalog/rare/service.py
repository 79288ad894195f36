"""The one way in which all rare methods are run."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.rare import store
from metastore.catalog.rare.rules.objects import (
    PARTITION_MARK,
    REPLICATION_METRICS,
    RUNTIME_STATISTIC,
    SCHEDULED_EXECUTION,
    SCHEDULED_QUERY,
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
    scheduled_executions: int = 0


@dataclass(frozen=True)
class RareService:
    """The RPCs about rare objects, and the end of those that are kept for a time."""

    db: Database
    settings: RareSettings
    events: CatalogEvents = SILENT

    def run(self, concept: str, method: Method, request: Json, user: str | None = None) -> Any:
        """Apply a method's rule to the objects in its scope, and store its changes; return its answer.

        ``user``: the caller, if known.

        Serialises on: the concept, for methods that change something.
        Raises: the errors of the rule, NoSuchObjectError without the database of an object.
        """
        places = method.scope(request)
        with self.db.begin(snapshot=not method.changes) as pg:
            number = store.lock_concept(pg, concept) if method.changes else 0
            work = Work(request, store.select_objects(pg, places), pg.now, number, self.settings, user)
            outcome = method.rule(work)
            store.update_objects(pg, outcome.changes)
            if outcome.events:
                self.events.record(pg, lambda _: list(outcome.events))
        return outcome.answer

    def purge(self) -> RareReport:
        """Remove objects that did not change for longer than their kind is kept."""
        return RareReport(
            self._purge(RUNTIME_STATISTIC, self.settings.runtime_statistics_age),
            self._purge(REPLICATION_METRICS, self.settings.replication_metrics_age),
            self._purge(PARTITION_MARK, self.settings.partition_marks_age),
            self._purge(SCHEDULED_EXECUTION, self.settings.execution_age),
        )

    def end_silent_executions(self) -> int:
        """End executions of scheduled queries that tell no progress; return their number."""
        with self.db.begin(durable=False) as pg:
            if self.settings.execution_timeout < timedelta(0) or not store.has_object(pg, SCHEDULED_QUERY):
                return 0
        from metastore.catalog.rare.rules.scheduled_queries import TIME_OUT

        return int(self.run("scheduled_queries", TIME_OUT, {}))

    def _purge(self, kind: Kind, age: timedelta) -> int:
        count, removed = 0, store.BATCH if age > timedelta(0) else 0
        while removed == store.BATCH:
            with self.db.begin(durable=False) as pg:
                removed = store.delete_older(pg, kind, pg.now - age)
            count += removed
        return count
