"""The one way in which all rare methods are run."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from metastore.catalog.rare import store
from metastore.catalog.rare.rules.objects import Json, Method, Work
from metastore.config import WorkloadSettings
from metastore.db.engine import Database


class ExecutionReport(NamedTuple):
    """The number of executions of scheduled queries that were ended, and of records that were removed."""

    timed_out: int
    removed: int


@dataclass(frozen=True)
class RareService:
    """The RPCs about rare objects."""

    db: Database
    workloads: WorkloadSettings

    def run(self, concept: str, method: Method, request: Json, user: str | None = None) -> Any:
        """Apply a method's rule to the objects in its scope, and store its changes; return its answer.

        ``user``: the caller, if known.

        Serialises on: the concept, for methods that change something.
        Raises: the errors of the rule, NoSuchObjectError without the database of an object.
        """
        places = method.scope(request)
        with self.db.begin(snapshot=not method.changes) as pg:
            number = store.lock_concept(pg, concept) if method.changes else 0
            work = Work(request, store.select_objects(pg, places), pg.now, number, self.workloads, user)
            answer, changes = method.rule(work)
            store.update_objects(pg, changes)
        return answer

    def keep_executions(self) -> ExecutionReport:
        """End executions of scheduled queries that tell no progress, and remove records that are too old."""
        settings = self.workloads
        with self.db.begin() as pg:
            if not store.has_objects(pg, "scheduled query", "scheduled execution"):
                return ExecutionReport(0, 0)
            age = settings.execution_age
            removed = store.delete_older(pg, "scheduled execution", pg.now - age) if age >= timedelta(0) else 0
        from metastore.catalog.rare.rules.scheduled_queries import TIME_OUT

        silent = settings.execution_timeout >= timedelta(0)
        return ExecutionReport(self.run("scheduled_queries", TIME_OUT, {}) if silent else 0, removed)
