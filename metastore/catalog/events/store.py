"""The recorder of the catalog's events: they are written in the PostgreSQL transaction of the change, as its end.

Rule: no event without its change and no change without its event. The statement that numbers events travels with
COMMIT: it costs no round trip, and the row that all events are numbered by is locked only while a transaction commits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from metastore.catalog.events.rules import Texts
from metastore.db.engine import PgTx
from metastore.txns.events import store
from metastore.txns.events.rules import Event

P = ParamSpec("P")


@dataclass(frozen=True)
class CatalogEvents:
    """A recorder; without ``texts`` it records nothing, and builds no message.

    ``together``: altered partitions share events of Hive 4.1's type.
    """

    texts: Texts | None = None
    together: bool = False

    @property
    def on(self) -> bool:
        """True if events are recorded; callers then also read the data that only events need."""
        return self.texts is not None

    def record(
        self, pg: PgTx, build: Callable[Concatenate[Texts, P], list[Event]], *args: P.args, **more: P.kwargs
    ) -> None:
        """Record the events that a function of the rules builds of these objects."""
        if self.texts is not None:
            store.append(pg, build(self.texts, *args, **more))

    def insert(
        self, pg: PgTx, build: Callable[Concatenate[Texts, P], list[Event]], *args: P.args, **more: P.kwargs
    ) -> list[int]:
        """Record events in a transaction that does nothing else; return their ids."""
        return [] if self.texts is None else store.insert_events(pg, build(self.texts, *args, **more))


SILENT = CatalogEvents()
