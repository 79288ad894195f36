"""The one way in which all rare methods are run."""

from dataclasses import dataclass
from typing import Any

from metastore.catalog.rare import store
from metastore.catalog.rare.rules.objects import Json, Method, Work
from metastore.db.engine import Database


@dataclass(frozen=True)
class RareService:
    """The RPCs about rare objects."""

    db: Database

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
