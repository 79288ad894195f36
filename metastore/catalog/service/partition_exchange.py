"""Moving partitions from one table to another of the same shape, with their directory.

One directory moves, that of the fixed leading keys; it is announced first (``service.moves``), so that a crash on the
way is undone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from metastore.acid.table_kinds import is_transactional
from metastore.catalog.events import rules as events
from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.model import Table
from metastore.catalog.rules import locations
from metastore.catalog.rules import partitions as rules
from metastore.catalog.rules.partitions import Partition
from metastore.catalog.service import change_management
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.exclusive import partition_objects, require_unwritten
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.store import partitions as store
from metastore.catalog.store import tables as table_store
from metastore.db.engine import Database, PgTx
from metastore.errors import InvalidRequestError
from metastore.ids import TableName
from metastore.partition_names import make_name


class Exchange(NamedTuple):
    """The source and the target of an exchange."""

    source: Table
    target: Table
    partitions: list[Partition]
    directory: str
    new_directory: str


@dataclass(frozen=True)
class PartitionExchange:
    """The calls that exchange partitions."""

    db: Database
    moves: DirectoryMoves
    events: CatalogEvents = SILENT

    def exchange_partitions(self, spec: Mapping[str, str], source: TableName, target: TableName) -> list[Partition]:
        """Move the partitions whose leading keys have these values; return them as they are in the target.

        Serialises on: the partitions' rows, the announced move, and the tail of the databases' lock queues.
        Raises: InvalidRequestError, HeldUpError, and nothing moved.
        """
        with self.db.begin() as pg:
            planned = _plan(pg, spec, source, target)
        if not Directories(self.moves.files).exists(planned.directory):
            raise InvalidRequestError(f"{planned.directory} does not exist: there is nothing to exchange")
        with self.db.begin() as pg:
            kept = change_management.needed(pg, self.moves.files, planned.source)
            move = self.moves.announce(
                pg,
                planned.source.id,
                planned.directory,
                planned.new_directory,
                partitions=[partition.name for partition in planned.partitions],
                kept=kept,
            )
        with self.moves.moving(move) as pg:
            plan = _plan(pg, spec, source, target)
            if (plan.directory, plan.new_directory) != (planned.directory, planned.new_directory):
                raise InvalidRequestError(f"{source} or {target} was moved meanwhile, nothing was changed, try again")
            names = [
                partition.name
                for partition in store.lock_partitions(pg, plan.source, [p.name for p in plan.partitions])
            ]
            moved = [
                replace(partition, location=locations.child(plan.target.location or "", partition.name))
                for partition in plan.partitions
                if partition.name in names
            ]
            if len(store.insert_partitions(pg, plan.target, moved)) != len(moved):
                raise InvalidRequestError(f"A partition of {source} exists in {target} already")
            store.delete_partitions(pg, plan.source, names)
            self.events.record(pg, events.partitions_exchanged, plan.source, plan.target, moved)
        return moved


def _plan(pg: PgTx, spec: Mapping[str, str], source_name: TableName, target_name: TableName) -> Exchange:
    source, target = (table_store.lock_table(pg, name, share=True) for name in (source_name, target_name))
    if source is None or target is None:
        raise InvalidRequestError(f"{source_name if source is None else target_name} table not found")
    if source_name.catalog != target_name.catalog:
        raise InvalidRequestError("Partitions cannot be exchanged between catalogs")
    if source.location is None or target.location is None:
        raise InvalidRequestError("Partitions of views cannot be exchanged")
    if any(is_transactional(table.parameters) for table in (source, target)):
        raise InvalidRequestError("Partitions of transactional tables cannot be exchanged: write ids belong to a table")
    prefix = rules.exchanged_prefix(source, spec)
    rules.require_exchangeable(source, target)
    leading = make_name(source.partition_key_names[: len(prefix)], prefix)
    partitions = store.select_partitions(
        pg.sql, source, "(p.name = %s OR p.name >= %s AND p.name < %s)", (leading, f"{leading}/", f"{leading}0")
    )
    if not partitions:
        raise InvalidRequestError(f"No partition of {source_name} is {leading}")
    elsewhere = [p.name for p in partitions if p.location != locations.child(source.location, p.name)]
    if elsewhere:
        raise InvalidRequestError(f"{', '.join(elsewhere)} of {source_name} is not below the table's directory")
    taken = store.select_names(pg.sql, target, "p.name = ANY(%s)", ([p.name for p in partitions],))
    if taken:
        raise InvalidRequestError(f"{', '.join(taken)} exists in {target_name} already")
    require_unwritten(
        pg,
        f"ALTER TABLE {target_name} EXCHANGE PARTITION",
        [
            *partition_objects(source_name, [p.name for p in partitions]),
            *partition_objects(target_name, [p.name for p in partitions]),
        ],
    )
    return Exchange(
        source, target, partitions, locations.child(source.location, leading), locations.child(target.location, leading)
    )
