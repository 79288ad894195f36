"""Rows of listings, and later events of their tables and partitions."""

from collections.abc import Sequence
from datetime import datetime

from metastore.compaction.inventory.rules import Measured, MeasuredListing, StoredInventory
from metastore.compaction.queue.rules.requests import Entity
from metastore.compaction.queue.store.components import WANTED, all_named
from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.txns.core.rules import LARGEST_ID

_SQL = Statements(__file__)

_UPSERT = _SQL.text("upsert")
_SELECT_KEPT = _SQL.text("select_kept", wanted=WANTED, largest=LARGEST_ID)


def upsert(pg: PgTx, listings: Sequence[MeasuredListing]) -> None:
    """Store the results of listings, unless a later listing is stored."""
    if listings:
        rows = [
            (
                *each.entity.table,
                each.entity.partition,
                each.location,
                each.listed_at,
                each.high_watermark,
                *each.measured,
            )
            for each in listings
        ]
        pg.sql(_UPSERT, [list(column) for column in zip(*rows, strict=True)])


def select_kept(pg: PgTx, entities: Sequence[Entity]) -> dict[Entity, StoredInventory]:
    """Return the last listings of the entities that have one."""
    kept = {}
    for row in pg.sql(_SELECT_KEPT, all_named(entities)):
        catalog, db, table, partition, location, listed_at, mark, *measured, written, compacted_at = row
        entity = Entity(TableName(catalog, db, table), partition)
        kept[entity] = StoredInventory(
            MeasuredListing(entity, location, listed_at, mark, Measured(*measured)), written, compacted_at
        )
    return kept


def delete_before(pg: PgTx, instant: datetime) -> None:
    """Forget listings that are too old to be useful, of entities that may be gone."""
    pg.sql("DELETE FROM listings WHERE listed_at < %s", (instant,))
