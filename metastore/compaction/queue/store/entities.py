"""Facts of the catalog about a table or partition that is to be compacted or cleaned, in one statement."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from metastore.acid.table_kinds import is_insert_only, is_transactional
from metastore.compaction.queue.rules.requests import Entity
from metastore.compaction.queue.store.components import WANTED, all_named
from metastore.db.engine import Database, PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.places import store as places
from metastore.places.rules import Relation

_SQL = Statements(__file__)

_SELECT_DESCRIBED = _SQL.text("select_described", wanted=WANTED)
_SELECT_HOMES = _SQL.text("select_homes")
_PLACE = "(SELECT %(at)s::text AS place) AS s"
_SELECT_INSIDE = _SQL.text(
    "select_inside",
    place=_PLACE,
    below=places.below("location", "s.place"),
    managed_below=places.below("managed_location", "s.place"),
)


@dataclass(frozen=True)
class Described:
    """A table, and the partition if it is named. ``partition_exists`` is true for an unpartitioned table."""

    entity: Entity
    table_id: int
    location: str
    parameters: dict[str, str]
    database_parameters: dict[str, str]
    partition_keys: tuple[str, ...] = ()
    partition_exists: bool = True
    partition_parameters: dict[str, str] = field(default_factory=dict)
    bucket_columns: tuple[str, ...] = ()
    is_sorted: bool = False
    owner: str | None = None
    root: str = ""
    """The table's directory, whichever partition is named; "" where it is not known."""
    descriptors: tuple[dict[str, Any], ...] = ()
    """The storage descriptors of the table and of the named partition; none if they are unknown."""

    @property
    def is_transactional(self) -> bool:
        """True if Hive's transactions govern the table."""
        return is_transactional(self.parameters)

    @property
    def is_insert_only(self) -> bool:
        """True if it is a transactional table without row ids."""
        return is_insert_only(self.parameters)

    @property
    def is_orc(self) -> bool:
        """True if ORC's settings may have a meaning for the table."""
        input_format = self.descriptors[0].get("inputFormat") if self.descriptors else ""
        return not input_format or "orc" in input_format.lower()

    @property
    def lacks_partition(self) -> bool:
        """True if the table is partitioned and no partition is named: the trace of an aborted dynamic insert."""
        return bool(self.partition_keys) and not self.entity.partition


class EntityCatalog(Protocol):
    """The catalog as compaction needs it: tables, partitions and their directories."""

    def described(self, pg: PgTx, entity: Entity) -> Described | None:
        """Look up a table and its partition; None if the table does not exist."""

    def described_all(self, pg: PgTx, entities: Sequence[Entity]) -> dict[Entity, Described]:
        """Look up several; those whose table does not exist are left out."""

    def all_partitions(self, pg: PgTx, table: TableName) -> list[tuple[str, str]]:
        """Return (name, location) of every partition of a table."""

    def user_of(self, pg: PgTx, location: str, left_by: Entity | None = None) -> str | None:
        """Return the object that has a location, or a place below it; for a table or partition also a place above it.

        ``left_by``: the partition that was there; its table may be above it.
        """

    def homes(self, pg: PgTx, entity: Entity) -> list[str] | None:
        """Return the directories in which a table, or a partition, would be without a location; None: unknown."""

    def sharer(self, pg: PgTx, table: Described) -> str | None:
        """Return another transactional table with the same directory as a table or partition, or with one around it."""

    def places_inside(self, pg: PgTx, table: Described, location: str) -> list[str]:
        """Return places of other objects inside a directory of a table: databases, tables, other partitions."""

    def database_parameters(self, pg: PgTx, table: TableName) -> dict[str, str] | None:
        """Return the parameters of a table's database; None if it does not exist."""

    def columns_with_statistics(self, pg: PgTx, entity: Entity) -> list[str]:
        """Return names of the columns that have statistics, in the table or in the partition."""

    def require_available(self) -> None:
        """Raise UnavailableError if no table at all can be looked up."""


class OwnCatalog:
    """The catalog in this database."""

    def described(self, pg: PgTx, entity: Entity) -> Described | None:
        """See `EntityCatalog`."""
        return select_described(pg, [entity]).get(entity)

    def described_all(self, pg: PgTx, entities: Sequence[Entity]) -> dict[Entity, Described]:
        """See `EntityCatalog`."""
        return select_described(pg, entities)

    def all_partitions(self, pg: PgTx, table: TableName) -> list[tuple[str, str]]:
        """See `EntityCatalog`."""
        return select_all_partitions(pg, table)

    def user_of(self, pg: PgTx, location: str, left_by: Entity | None = None) -> str | None:
        """See `EntityCatalog`."""
        table = select_described(pg, [left_by]).get(left_by) if left_by is not None and left_by.partition else None
        own = table.table_id if table is not None and table.partition_keys else 0
        users = places.select_users(pg, [location], own, (), own_counts=True)
        return next((user.name for user in users), None)

    def homes(self, pg: PgTx, entity: Entity) -> list[str] | None:
        """See `EntityCatalog`."""
        rows = pg.sql(_SELECT_HOMES, entity.table._asdict())
        named = [f"{database}/{entity.table.table}" for database, _ in rows if database]
        if not entity.partition:
            return named
        roots = {root for _, root in rows if root} or named
        return [f"{root}/{entity.partition}" for root in roots]

    def sharer(self, pg: PgTx, table: Described) -> str | None:
        """See `EntityCatalog`."""
        return next(
            (
                user.name
                for user in places.select_users(pg, [table.location], table.table_id)
                if user.is_transactional and user.relation is not Relation.BELOW
            ),
            None,
        )

    def places_inside(self, pg: PgTx, table: Described, location: str) -> list[str]:
        """See `EntityCatalog`."""
        but = table.table_id if table.lacks_partition else 0  # A table's own partitions are not foreign places.
        rows = pg.sql(_SELECT_INSIDE, {"at": location.rstrip("/"), "table_id": table.table_id, "but": but})
        return [place for (place,) in rows]

    def database_parameters(self, pg: PgTx, table: TableName) -> dict[str, str] | None:
        """See `EntityCatalog`."""
        rows = pg.sql("SELECT parameters FROM databases WHERE catalog = %s AND name = %s", (table.catalog, table.db))
        return (rows[0][0] or {}) if rows else None

    def columns_with_statistics(self, pg: PgTx, entity: Entity) -> list[str]:
        """See `EntityCatalog`."""
        return select_columns_with_statistics(pg, entity)

    def require_available(self) -> None:
        """Do nothing: the catalog is available whenever the database is."""


OWN_CATALOG = OwnCatalog()


def require_available(db: Database, catalog: EntityCatalog) -> None:
    """Raise UnavailableError if the database or the catalog is down, not just the object that was looked up."""
    db.once("SELECT 1", durable=False)
    catalog.require_available()


def select_described(pg: PgTx, entities: Sequence[Entity]) -> dict[Entity, Described]:
    """Look up tables and their partitions; those whose table does not exist are left out."""
    found = {}
    for row in pg.sql(_SELECT_DESCRIBED, all_named(entities)):
        catalog, db, name, wanted, table_id, location, parameters, database, keys, sd, owner, *of_partition = row
        partition, partition_location, own, partition_sd = of_partition
        entity = Entity(TableName(catalog, db, name), wanted)
        found[entity] = Described(
            entity,
            table_id,
            _location(location or "", wanted, partition_location),
            parameters or {},
            database or {},
            tuple(key["name"] for key in keys or ()),
            not wanted or partition is not None,
            own or {},
            tuple(sd.get("bucketCols") or ()),
            bool(_sort_columns(sd)),
            owner,
            location or "",
            (sd, partition_sd) if partition_sd else (sd,),
        )
    return found


def is_still(table: Described, now: Described | None) -> bool:
    """Return True if the name and the partition still belong to the same table in the same place."""
    return now is not None and (now.table_id, now.location, now.partition_exists) == (
        table.table_id,
        table.location,
        table.partition_exists,
    )


def select_all_partitions(pg: PgTx, table: TableName) -> list[tuple[str, str]]:
    """Return (name, location) of every partition of a table."""
    rows = pg.sql(
        "SELECT p.name, p.location, t.location FROM partitions AS p JOIN tables AS t ON t.id = p.table_id"
        " WHERE t.catalog = %s AND t.db = %s AND t.name = %s ORDER BY p.name",
        tuple(table),
    )
    return [(name, _location(base or "", name, location)) for name, location, base in rows]


def select_columns_with_statistics(pg: PgTx, entity: Entity) -> list[str]:
    """Return names of the columns that have statistics, in the table or in the partition."""
    rows = pg.sql(
        'SELECT DISTINCT s."column" FROM column_statistics AS s JOIN tables AS t ON t.id = s.table_id'
        ' WHERE t.catalog = %s AND t.db = %s AND t.name = %s AND s.partition = %s ORDER BY s."column"',
        (*entity.table, entity.partition),
    )
    return [column for (column,) in rows]


def _location(table_location: str, partition: str, partition_location: str | None) -> str:
    if not partition:
        return table_location
    return partition_location or f"{table_location.rstrip('/')}/{partition}"


def _sort_columns(sd: dict[str, Any]) -> list[Any]:
    return list(sd.get("sortCols") or ())
