"""Adding, altering, renaming and dropping partitions.

Directories are made before a partition exists and removed after it is gone, outside of PostgreSQL transactions; a
rename announces its move first (``service.moves``). A list is processed as a whole or not at all.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from metastore.acid.table_kinds import is_transactional
from metastore.catalog.events import rules as events
from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.model import Table
from metastore.catalog.rules import basic_statistics
from metastore.catalog.rules import partitions as rules
from metastore.catalog.rules.locations import is_below
from metastore.catalog.rules.partition_expression import parse_expression
from metastore.catalog.rules.partition_predicate import keeps
from metastore.catalog.rules.partitions import Doomed, Partition, PartitionDraft
from metastore.catalog.rules.tables import data_is_deletable, is_view, trash_of
from metastore.catalog.service import change_management
from metastore.catalog.service.basic_statistics import BasicStatistics
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.exclusive import ANYBODY, partition_objects, require_exclusive
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.store import acid_history, partition_wires, statistics
from metastore.catalog.store import partitions as store
from metastore.catalog.store import tables as table_store
from metastore.catalog.store.directory_changes import Change
from metastore.catalog.store.partition_prefilter import prefilter
from metastore.catalog.store.partition_wires import Piece
from metastore.config import CatalogSettings
from metastore.db import arrays
from metastore.db.engine import Database, PgTx
from metastore.errors import (
    AlreadyExistsError,
    ConflictRetryError,
    InvalidObjectError,
    InvalidOperationError,
    InvalidRequestError,
    MetastoreError,
    NoSuchObjectError,
)
from metastore.ids import TableName
from metastore.locks.rules import Changer
from metastore.partition_names import make_name, values_for
from metastore.places.rules import Taker

NO_CONTEXT: Mapping[str, str] = MappingProxyType({})


class Dropped(NamedTuple):
    """The partitions that a call has dropped."""

    table: Table
    size: int
    pieces: Sequence[Piece]
    """The dropped partitions, by name; none unless they were wanted."""


@dataclass(frozen=True)
class PartitionService:
    """The calls that change partitions."""

    db: Database
    settings: CatalogSettings
    directories: Directories
    moves: DirectoryMoves
    events: CatalogEvents = SILENT

    def add_partitions(
        self,
        name: TableName,
        drafts: Sequence[PartitionDraft],
        context: Mapping[str, str] = NO_CONTEXT,
        *,
        if_not_exists: bool = False,
    ) -> list[Partition]:
        """Add partitions, all or none; return those that were added. With ``if_not_exists`` the others are left alone.

        Serialises on: nothing but the names; an alteration of the table is waited for.
        Raises: InvalidObjectError (no table), AlreadyExistsError, MetaError.
        """
        table = self._table(name, InvalidObjectError)
        rules.require_of_table(name, drafts)
        default = self.settings.default_partition_name
        inherited = rules.inherited_parameters(table, self.settings.partition_inherit_table_properties)
        complete = rules.with_descriptors(table, drafts)
        wanted = [rules.new_partition(table, draft, default, inherited) for draft in complete]
        rules.require_distinct(wanted)
        for partition in wanted:
            rules.require_allowed_characters(partition.values, self.settings.partition_name_whitelist)
        taken = set(
            store.select_names(
                self.db.once, table, "p.name = ANY(%s::text[])", (arrays.literal([p.name for p in wanted]),)
            )
        )
        if taken and not if_not_exists:
            raise AlreadyExistsError(f"Partition already exists: {', '.join(sorted(taken))} of {name}")
        new = [partition for partition in wanted if partition.name not in taken]
        if not new:
            return []
        self._require_available(table, new)
        files = self._files_for_replicas(table, new)
        with self.directories.created_all([p.location for p in new if p.location]) as made:
            new = self._basic_statistics.added(table, new, context, made)
            with self.db.begin() as pg:
                rules.require_storable(self._unchanged(pg, table), new, self.settings.storage_classes)
                now = int(pg.now.timestamp())
                new = [replace(p, create_time=now, parameters=rules.stamped(p.parameters, now)) for p in new]
                added = store.insert_partitions(pg, table, new)
                self.moves.require_free(pg, [p.location for p in new])
                late = [p.name for p in new if p.name not in added]
                if late and not if_not_exists:
                    raise AlreadyExistsError(f"Partition already exists: {', '.join(late)} of {name}")
                new = [partition for partition in new if partition.name in added]
                self.events.record(pg, events.partitions_added, table, new, files)
        return new

    def append_partition(
        self, name: TableName, values: Sequence[str | None] | None, context: Mapping[str, str] = NO_CONTEXT
    ) -> Partition:
        """Add a partition that looks like its table.  Raises: as ``add_partitions``."""
        table = self._table(name, InvalidObjectError)
        if is_view(table):
            raise InvalidRequestError("Cannot append a partition to a view")
        sd = {field: value for field, value in table.sd.items() if field != "location"}
        [partition] = self.add_partitions(name, [PartitionDraft(name, values, sd, {})], context)
        return partition

    def append_partition_by_name(
        self, name: TableName, partition: str | None, context: Mapping[str, str] = NO_CONTEXT
    ) -> Partition:
        """Add a partition likewise, with values from its name. Raises: as ``add_partitions``."""
        if not partition:
            raise InvalidRequestError("The partition's name is empty")
        keys = self._table(name, InvalidObjectError).partition_key_names
        values = values_for(keys, partition)
        if values is None:
            raise InvalidObjectError(f"incomplete partition name - missing a key of {', '.join(keys)} in {partition}")
        return self.append_partition(name, values, context)

    def alter_partitions(
        self,
        name: TableName,
        drafts: Sequence[PartitionDraft],
        context: Mapping[str, str] = NO_CONTEXT,
        *,
        changer: Changer = ANYBODY,
    ) -> None:
        """Replace partitions, found by their values, all or none. No data is moved.

        Serialises on: the partitions' rows.  Raises: InvalidOperationError (nothing to alter), HeldUpError, MetaError.
        """
        drafts = self._with_statistics(name, drafts, context)
        with self.db.begin() as pg:
            table = self._locked(pg, name, InvalidOperationError)
            rules.require_of_table(name, drafts)
            now, default = int(pg.now.timestamp()), self.settings.default_partition_name
            wanted = {rules.partition_name(table.partition_key_names, draft.values, default): draft for draft in drafts}
            stored = {partition.name: partition for partition in store.lock_partitions(pg, table, list(wanted))}
            missing = [partition for partition in wanted if partition not in stored]
            if missing or not wanted:
                raise InvalidOperationError(
                    f"Partition {', '.join(missing) or 'list is empty'}: alter is not possible because it "
                    f"doesn't exist in {name}"
                )
            wanted = dict(zip(wanted, rules.with_descriptors(table, wanted.values()), strict=True))
            altered = {key: rules.altered_partition(table, stored[key], draft, now) for key, draft in wanted.items()}
            renew = partial(self._basic_statistics.renewed, table, context)
            altered = {key: renew(stored[key], new) for key, new in altered.items()}
            elsewhere = [key for key, new in altered.items() if new.location != stored[key].location]
            self.moves.require_free(pg, [altered[key].location for key in elsewhere])
            if is_transactional(table.parameters):
                require_exclusive(
                    pg, f"ALTER TABLE {name} PARTITION SET LOCATION", partition_objects(name, elsewhere), changer
                )
            rules.require_storable(table, altered.values(), self.settings.storage_classes, stored)
            self._require_available(table, [altered[key] for key in elsewhere], pg)
            store.update_partitions(pg, table, list(altered.values()))
            statistics.update_not_whole(pg, table, elsewhere)
            store.delete_column_statistics(
                pg,
                table,
                [(key, column) for key, new in altered.items() for column in rules.changed_columns(stored[key], new)],
            )
            pairs = [(stored[key], new) for key, new in altered.items()]
            self.events.record(pg, events.partitions_altered, table, pairs, together=self.events.together)

    def rename_partition(
        self,
        name: TableName,
        old_values: Sequence[str | None] | None,
        draft: PartitionDraft,
        *,
        changer: Changer = ANYBODY,
    ) -> None:
        """Give a partition other values and move its directory, if the table owns it.

        Serialises on: the partition's row, and its announced move. The directory moves while both are held, so that no
        call alters a partition while its data is being moved.
        Raises: InvalidOperationError (no such partition, new name taken), HeldUpError, MetaError.
        """
        if not old_values:
            self.alter_partitions(name, [draft], changer=changer)
            return
        default, action = self.settings.default_partition_name, f"ALTER TABLE {name} PARTITION RENAME"
        with self.db.begin() as pg:
            table = self._locked(pg, name, InvalidOperationError)
            rules.require_of_table(name, [draft])
            new_name = rules.partition_name(table.partition_key_names, draft.values, default)
            rules.require_allowed_characters(draft.values or (), self.settings.partition_name_whitelist)
            old = self._locked_one(
                pg, table, make_name(table.partition_key_names, self._values(table, old_values), default)
            )
            target = rules.renamed_location(table, old, new_name)
            self._require_free(pg, table, new_name)
            require_exclusive(pg, action, partition_objects(name, [old.name]), changer)
            kept = target is not None and change_management.needed(pg, self.directories.files, table)
            move = None
            if target is not None:
                move = self.moves.announce(pg, table.id, old.location or "", target, partitions=[old.name], kept=kept)
            if move is None:
                self._rename(pg, table, old, draft, new_name, None)
        if move is not None:
            with self.moves.moving(move) as pg:
                self._unchanged(pg, table)
                old = self._locked_one(pg, table, old.name)
                if old.location != move.source:
                    raise ConflictRetryError(f"Partition {old.name} of {name} was moved meanwhile, try again")
                self._require_free(pg, table, new_name)
                require_exclusive(pg, action, partition_objects(name, [old.name]), changer)
                self._rename(pg, table, old, draft, new_name, target)

    def drop_partitions(
        self,
        name: TableName,
        names: Sequence[str],
        *,
        delete_data: bool,
        if_exists: bool = False,
        is_wanted: bool = False,
        changer: Changer = ANYBODY,
    ) -> Dropped:
        """Remove partitions by their names, all or none, then their data if asked to and if the table owns it.

        ``is_wanted``: the caller wants the dropped partitions.

        Serialises on: the partitions' rows, and the tail of the database's lock queue.
        Raises: NoSuchObjectError, unless ``if_exists``; HeldUpError.
        """
        with self.db.begin() as pg:
            table = self._locked(pg, name, NoSuchObjectError)
            dropped, pieces = self._drop(pg, table, names, changer, if_exists=if_exists, is_wanted=is_wanted)
            removals = self._doomed(pg, table, dropped, changer) if delete_data else []
        self._remove(table, removals)
        return Dropped(table, len(dropped), pieces)

    def drop_partition(
        self, name: TableName, values: Sequence[str | None] | None, *, delete_data: bool, changer: Changer = ANYBODY
    ) -> None:
        """Remove the partition with these values.  Raises: NoSuchObjectError, InvalidRequestError."""
        table = self._table(name, NoSuchObjectError)
        partition = rules.partition_name(table.partition_key_names, values, self.settings.default_partition_name)
        self.drop_partitions(name, [partition], delete_data=delete_data, changer=changer)

    def drop_partition_by_name(
        self, name: TableName, partition: str | None, *, delete_data: bool, changer: Changer = ANYBODY
    ) -> None:
        """Remove the partition with this name; segments that name no key are ignored.  Raises: NoSuchObjectError."""
        if not partition:
            raise InvalidRequestError("The partition's name is empty")
        table = self._table(name, NoSuchObjectError)
        values = values_for(table.partition_key_names, partition)
        if values is None:
            raise NoSuchObjectError(f"{partition} is not the name of a partition of {name}: a key is missing")
        self.drop_partitions(
            name, [make_name(table.partition_key_names, values)], delete_data=delete_data, changer=changer
        )

    def drop_partitions_by_expr(
        self,
        name: TableName,
        exprs: Sequence[bytes],
        *,
        delete_data: bool,
        if_exists: bool,
        is_wanted: bool = False,
        changer: Changer = ANYBODY,
    ) -> Dropped:
        """Remove every partition that any of the expressions keeps; ``is_wanted`` as in ``drop_partitions``.

        Serialises on: as ``drop_partitions``.
        Raises: NoSuchObjectError if any matches nothing, unless ``if_exists``; InvalidRequestError if undecidable.
        """
        default = self.settings.default_partition_name
        with self.db.begin() as pg:
            table = self._locked(pg, name, NoSuchObjectError)
            names: dict[str, None] = {}
            for expr in exprs:
                predicate = parse_expression(expr, rules.partition_keys(table), default)
                rows = store.select_values(pg.sql, table, *prefilter(predicate, default))
                answers = {partition: keeps(predicate, values, default) for partition, values in rows}
                if undecided := [partition for partition, answer in answers.items() if answer is None]:
                    raise InvalidRequestError(
                        f"The expression for partitions of {name} to drop cannot be evaluated here for "
                        f"{len(undecided)} of them ({undecided[0]}): drop partitions by their names"
                    )
                kept = [partition for partition, answer in answers.items() if answer]
                if not kept and not if_exists:
                    raise NoSuchObjectError(f"Some partitions to drop are missing: no partition of {name} matches")
                names.update(dict.fromkeys(kept))
            dropped, pieces = self._drop(pg, table, list(names), changer, if_exists=True, is_wanted=is_wanted)
            removals = self._doomed(pg, table, dropped, changer) if delete_data else []
        self._remove(table, removals)
        return Dropped(table, len(dropped), pieces)

    @property
    def _basic_statistics(self) -> BasicStatistics:
        return BasicStatistics(self.directories, self.settings.gather_statistics)

    def _with_statistics(
        self, name: TableName, drafts: Sequence[PartitionDraft], context: Mapping[str, str]
    ) -> Sequence[PartitionDraft]:
        if not any(basic_statistics.are_missing(draft.parameters, context) for draft in drafts):
            return drafts
        return self._basic_statistics.missing(self._table(name, InvalidOperationError), drafts, context)

    def _files_for_replicas(self, table: Table, new: Sequence[Partition]) -> dict[str, list[str]] | None:
        """Return the files of new partitions, by partition name, for the event that replicas read; None if not needed.

        Files of a transactional table are in the event of the commit instead.
        """
        files = self.directories.files
        if not (self.events.on and files.cmroot) or is_transactional(table.parameters):
            return None
        with self.db.begin() as pg:
            if not change_management.needed(pg, files, table):
                return None
        return {partition.name: change_management.event_files(files, partition.location or "") for partition in new}

    def _table(self, name: TableName, missing: type[MetastoreError]) -> Table:
        rows = self.db.once(table_store.SELECT_TABLE, name)
        if not rows:
            raise missing(f"{name} table not found")
        return table_store.table_of(rows[0])

    @staticmethod
    def _locked(pg: PgTx, name: TableName, missing: type[MetastoreError]) -> Table:
        table = table_store.lock_table(pg, name, share=True)
        if table is None:
            raise missing(f"{name} table not found")
        return table

    @staticmethod
    def _unchanged(pg: PgTx, table: Table) -> Table:
        """Lock the table and return it; refuse if its id, location or keys changed since it was read without a lock."""
        now = table_store.lock_table(pg, table.name, share=True)
        if now is None:
            raise InvalidObjectError(f"{table.name} was dropped meanwhile")
        if (now.id, now.location, now.partition_key_names) != (table.id, table.location, table.partition_key_names):
            raise ConflictRetryError(f"{table.name} was altered meanwhile, nothing was changed, try again")
        return now

    def _require_available(self, table: Table, partitions: Sequence[Partition], pg: PgTx | None = None) -> None:
        """Require that places of partitions outside of their table's directory belong to no other object."""
        inside = table.location or ""
        outside = [p.location for p in partitions if p.location and not (inside and is_below(p.location, inside))]
        if outside:
            with self.db.begin() if pg is None else nullcontext(pg) as asked:
                is_acid = is_transactional(table.parameters)
                taker = Taker(has_files=True, is_transactional=is_acid, table_id=table.id)
                self.moves.require_available(asked, outside, taker)

    @staticmethod
    def _values(table: Table, values: Sequence[str | None]) -> list[str]:
        if len(values) != len(table.partition_keys):
            raise InvalidOperationError(f"{table.name} has no partition with values {list(values)}")
        return [value or "" for value in values]

    @staticmethod
    def _locked_one(pg: PgTx, table: Table, partition: str) -> Partition:
        partitions = store.lock_partitions(pg, table, [partition])
        if not partitions:
            raise InvalidOperationError(f"Unable to rename partition {partition} of {table.name}: it does not exist")
        return partitions[0]

    @staticmethod
    def _require_free(pg: PgTx, table: Table, partition: str) -> None:
        if store.select_names(pg.sql, table, "p.name = %s", (partition,)):
            raise InvalidOperationError(f"Partition already exists: {partition} of {table.name}")

    def _rename(
        self, pg: PgTx, table: Table, old: Partition, draft: PartitionDraft, new_name: str, target: str | None
    ) -> None:
        now = int(pg.now.timestamp())
        [complete] = rules.with_descriptors(table, [draft])
        altered = rules.altered_partition(table, old, complete, now)
        rules.require_storable(table, [altered], self.settings.storage_classes, {old.name: old})
        altered = replace(altered, location=target or old.location)
        store.update_partitions(pg, table, [altered])
        renamed = replace(altered, name=new_name, values=[value or "" for value in draft.values or ()])
        store.update_name(pg, table, old.name, renamed)
        acid_history.rename_partition_history(pg, table.name, old.name, new_name)
        self.events.record(pg, events.partitions_altered, table, [(old, renamed)])

    def _drop(
        self, pg: PgTx, table: Table, names: Sequence[str], changer: Changer, *, if_exists: bool, is_wanted: bool
    ) -> tuple[list[Doomed], list[Piece]]:
        dropped = store.lock_doomed(pg, table, names)
        self.moves.require_still(pg, [partition.location for partition in dropped])
        missing = set(names).difference(partition.name for partition in dropped)
        if missing and not if_exists:
            raise NoSuchObjectError(
                f"Some partitions to drop are missing: {', '.join(sorted(missing))} of {table.name}"
            )
        present = [partition.name for partition in dropped]
        pieces = partition_wires.select_named(pg, table, present) if is_wanted else []
        if present:
            require_exclusive(pg, f"DROP PARTITION of {table.name}", partition_objects(table.name, present), changer)
            store.delete_partitions(pg, table, present)
            acid_history.delete_partition_history(pg, table.name, present)
            self.events.record(pg, events.partitions_dropped, table, present)
        return dropped, pieces

    def _doomed(self, pg: PgTx, table: Table, dropped: Sequence[Doomed], changer: Changer) -> list[Change]:
        """Announce the removal of directories that the table owns and no remaining partition shares.

        Raises: MetaError.
        """
        locations = rules.data_locations(table, dropped) if data_is_deletable(table) else []
        shared = store.select_shared_locations(pg, table, locations) if locations else set()
        doomed = [location for location in locations if location not in shared]
        self.directories.require_own(doomed, f"Partitions of {table.name} cannot be dropped with their data")
        kept = bool(doomed) and change_management.needed(pg, self.directories.files, table)
        trash = trash_of(table, changer.trash_of)
        return self.moves.announce_removals(pg, table.id, doomed, kept=kept, trash_of=trash)

    def _remove(self, table: Table, removals: Sequence[Change]) -> None:
        self.moves.remove(removals)
        parents = {parent for removal in removals for parent in rules.parents_to_tidy(table, removal.source)}
        for parent in sorted(parents, key=len, reverse=True):
            self.directories.remove_if_empty(parent)
