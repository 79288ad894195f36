"""Events of what clients did to the files of tables, which only they know: fire_listener_event. Source: CAT-E5."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from metastore.catalog.events import rules as events
from metastore.catalog.events.rules import Written
from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.model import Table
from metastore.catalog.rules import partitions as rules
from metastore.catalog.rules.partitions import Partition
from metastore.catalog.store import partitions as store
from metastore.catalog.store import tables
from metastore.config import CatalogSettings
from metastore.db.engine import Database, PgTx
from metastore.errors import NoSuchObjectError
from metastore.ids import TableName

Values = Sequence[str] | None
"""The values of a partition; None: the table itself."""


class Insert(NamedTuple):
    """An insert as its client reports it; ``files``: encoded as events have them."""

    values: Values
    files: Sequence[str]
    replaces: bool


@dataclass(frozen=True)
class ListenerEvents:
    """The call fire_listener_event. Where no events are written it only looks at the names."""

    db: Database
    settings: CatalogSettings
    events: CatalogEvents = SILENT

    def inserted(self, name: TableName, inserts: Sequence[Insert]) -> list[int]:
        """Record inserts into a table or its partitions; return the ids of their events.

        Raises: NoSuchObjectError, InvalidRequestError for values that do not fit the keys.
        """
        with self.db.begin() as pg:
            table = self._table(pg, name)
            found = self._partitions(pg, table, [insert.values for insert in inserts])
            writes = [
                Written(partition, insert.files, insert.replaces)
                for partition, insert in zip(found, inserts, strict=True)
            ]
            return self.events.insert(pg, events.written, table, writes)

    def reloaded(
        self, name: TableName, places: Sequence[Values], parameters: Mapping[str, str], *, refresh: bool
    ) -> list[int]:
        """Record that a client reads a table or partitions anew; return the id of the event.

        ``parameters``: added to the table's parameters in the event, so that the client recognises the event.
        Raises: NoSuchObjectError, InvalidRequestError.
        """
        with self.db.begin() as pg:
            table = self._table(pg, name)
            found = [each for each in self._partitions(pg, table, places) if each is not None]
            told = replace(table, parameters={**table.parameters, **parameters})
            return self.events.insert(pg, events.reloaded, told, found, refresh=refresh)

    @staticmethod
    def _table(pg: PgTx, name: TableName) -> Table:
        table = tables.select_table(pg, name)
        if table is None:
            raise NoSuchObjectError(f"{name} table not found")
        return table

    def _partitions(self, pg: PgTx, table: Table, places: Sequence[Values]) -> list[Partition | None]:
        default, keys = self.settings.default_partition_name, table.partition_key_names
        names = [None if values is None else rules.partition_name(keys, values, default) for values in places]
        wanted = sorted({name for name in names if name is not None})
        found = store.select_partitions(pg.sql, table, "p.name = ANY(%s::text[])", (wanted,)) if wanted else []
        by_name = {partition.name: partition for partition in found}
        missing = [name for name in wanted if name not in by_name]
        if missing:
            raise NoSuchObjectError(f"Partition {missing[0]} of {table.name} not found")
        return [None if name is None else by_name[name] for name in names]
