"""Tables and views: create, alter, drop, truncate.

Old and new forms of a call all end here. Source: CAT-T1 to CAT-T6, CAT-A1 to CAT-A6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from metastore.acid.table_kinds import is_full_acid, is_insert_only, is_transactional
from metastore.catalog.events import rules as events
from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.model import ConstraintColumn, Database, Table
from metastore.catalog.rules import locations, tables, transactional
from metastore.catalog.rules.basic_statistics import has_files
from metastore.catalog.rules.statistics import marked_inaccurate
from metastore.catalog.rules.storage_classes import require_storage
from metastore.catalog.service import change_management, remote
from metastore.catalog.service import constraints as constraint_service
from metastore.catalog.service.basic_statistics import BasicStatistics
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.empty_bases import EmptyBases
from metastore.catalog.service.exclusive import ANYBODY, partition_objects, require_exclusive, table_object
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.store import acid_history, statistics
from metastore.catalog.store import databases as database_store
from metastore.catalog.store import partitions as partition_store
from metastore.catalog.store import tables as store
from metastore.config import CatalogSettings
from metastore.db.engine import Database as Postgres
from metastore.db.engine import PgTx
from metastore.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
    UnavailableError,
)
from metastore.ids import DatabaseName, TableName
from metastore.locks.rules import Changer
from metastore.places.rules import Taker

_ZEROED_BY_TRUNCATE = ("numFiles", "totalSize", "numRows", "rawDataSize", "numFilesErasureCoded")


@dataclass(frozen=True)
class TableService:
    """The RPCs that change tables."""

    db: Postgres
    settings: CatalogSettings
    directories: Directories
    moves: DirectoryMoves
    events: CatalogEvents = SILENT

    def create_table(
        self, draft: Table, context: Mapping[str, str], constraints: Sequence[ConstraintColumn] = ()
    ) -> None:
        """Add a table or view with its constraints, and make its directory.

        Serialises on: the name's unique key; dropping the database waits.
        Raises: InvalidObjectError, AlreadyExistsError, MetaError.
        """
        with self.db.begin() as pg:
            now = int(pg.now.timestamp())
            table = tables.new_table(
                draft,
                context,
                now,
                create_as_acid=self.settings.create_as_acid,
                storage_classes=self.settings.storage_classes,
            )
            database, is_taken = database_store.select_room_for_table(pg, table.name)
            if database is None:
                raise InvalidObjectError(f"Database {table.name.database} does not exist")
            remote.refuse(database, "Create table")
            if is_taken:
                raise AlreadyExistsError(f"Table {table.name} already exists")
            table = self._located(table, database)
            place = None if tables.is_view(table) else table.location
            self.moves.require_free(pg, [place])
            self.moves.require_available(pg, [place], _taker(table))
            told = self.events.on and change_management.needed(pg, self.directories.files, table)
        files = change_management.event_files(self.directories.files, place) if told and place else ()
        with self.directories.created(place) as made:
            table = self._basic_statistics.created(draft, table, context, made)
            with self.db.begin() as pg:
                table_id = store.insert_table(pg, table)
                if table_id is None:
                    raise AlreadyExistsError(f"Table {table.name} already exists")
                table = replace(table, id=table_id)
                self.events.record(pg, events.table_created, table, files)
                if constraints:
                    own = [replace(constraint, table=table.name) for constraint in constraints]
                    self.events.record(pg, events.constraints_added, constraint_service.add_to_table(pg, table, own))
                self.moves.require_free(pg, [place])  # This lock is last: callers may hold locks of tables.

    def translate_table_dryrun(self, draft: Table, context: Mapping[str, str]) -> Table:
        """Return the table as ``create_table`` would store it, its location included; nothing is made.

        Hive 4 writes the rows of CREATE TABLE AS there before it creates the table.
        Raises: InvalidObjectError, NoSuchObjectError, MetaError.
        """
        with self.db.begin() as pg:
            table = tables.new_table(
                draft,
                context,
                int(pg.now.timestamp()),
                create_as_acid=self.settings.create_as_acid,
                storage_classes=self.settings.storage_classes,
            )
            database = database_store.select_database(pg, table.name.database)
        if database is None:
            raise NoSuchObjectError(f"Database {table.name.database} does not exist")
        return self._located(table, database)

    def alter_table(
        self,
        name: TableName,
        draft: Table,
        context: Mapping[str, str],
        *,
        check_types: bool | None = None,
        changer: Changer = ANYBODY,
    ) -> None:
        """Replace a table's definition, its name included; its own directory and partitions follow the name.

        Serialises on: the table's row, so that of two callers who expect the same value the second is refused.
        Raises: InvalidOperationError, HeldUpError, MetaError.
        """
        strict = self.settings.disallow_incompatible_column_changes if check_types is None else check_types
        self._require_convertible(name, draft)
        draft = self._counted(name, draft, context)
        with self.db.begin() as pg:
            old, altered = self._altered(pg, name, draft, context, changer, check_types=strict)
            target = self._new_location(pg, old, altered)
            self._require_places(pg, old, altered)
            if target is None or old.location is None:
                self._store_altered(pg, old, altered, context)
                return
            self.moves.require_available(pg, [target], _taker(altered))
            kept = change_management.needed(pg, self.directories.files, old)
            move = self.moves.announce(pg, old.id, old.location, target, kept=kept)
        with self.moves.moving(move) as pg:
            old, altered = self._altered(pg, name, draft, context, changer, check_types=strict)
            if (old.location, self._new_location(pg, old, altered)) != (move.source, move.target):
                raise UnavailableError(f"{name} was changed by somebody else meanwhile, nothing was changed, try again")
            self._store_altered(pg, old, tables.with_location(altered, target), context)
            store.update_partition_locations(pg, old, move.source, target)

    def drop_table(self, name: TableName, *, delete_data: bool, changer: Changer = ANYBODY) -> None:
        """Remove a table with its partitions, statistics and transaction history; its own data goes after COMMIT.

        Serialises on: the table's row, and the tail of the database's lock queue.
        Raises: NoSuchObjectError, HeldUpError, MetaError.
        """
        with self.db.begin() as pg:
            table = store.lock_table(pg, name)
            if table is None:
                remote.refuse_missing(pg.sql, name.database, "Drop table")
                raise NoSuchObjectError(f"{name} table not found")
            require_exclusive(pg, f"DROP TABLE {name}", table_object(name), changer)
            for view, _ in store.select_materialized_views_on(pg, [name]):
                raise MetaError(f"Cannot drop table {name}: it is used in the following materialized views: {view}")
            self.moves.require_still(pg, [table.location])
            doomed: list[str | None] = []
            if delete_data and tables.data_is_deletable(table):
                doomed = [table.location, *store.select_partition_locations(pg, table, outside=True)]
                self.directories.require_own(doomed, f"{name} cannot be dropped with its data")
            store.delete_table(pg, table)
            acid_history.delete_table_history(pg, name)
            self.events.record(pg, events.table_dropped, table)
            kept = bool(doomed) and change_management.needed(pg, self.directories.files, table)
            trash_of = tables.trash_of(table, changer.trash_of)
            removals = self.moves.announce_removals(pg, table.id, doomed, kept=kept, trash_of=trash_of)
        self.moves.remove(removals)

    def truncate_table(
        self,
        name: TableName,
        partitions: Sequence[str] | None,
        context: Mapping[str, str],
        write_id: int = -1,
        changer: Changer = ANYBODY,
    ) -> None:
        """Empty a table, or (``partitions``) some of its partitions, and reset the statistics of their size.

        The files of a transactional table stay for its readers: an empty base of the caller's write id hides them once
        its transaction commits. That is what Hive 4's ``truncateSkipDataDeletion`` asks for there.
        Serialises on: the table's row, for the statistics.  Raises: NoSuchObjectError, HeldUpError, MetaError.
        """
        bases = EmptyBases(self.db, self.directories)
        txn_id = 0
        with self.db.begin() as pg:
            table = store.lock_table(pg, name)
            if table is None:
                raise NoSuchObjectError(f"{name} table not found")
            acid = is_transactional(table.parameters)
            if acid and write_id <= 0:
                raise MetaError(f"{name} is transactional: truncating it needs a write id (truncate_table_req)")
            if not acid:
                places = table_object(name) if partitions is None else partition_objects(name, partitions)
                require_exclusive(pg, f"TRUNCATE TABLE {name}", places, changer)
            emptied = store.truncate_statistics(pg, table, partitions, _ZEROED_BY_TRUNCATE)
            self._record_truncated(pg, table, partitions)
            touches = acid or not tables.is_true(context.get("truncateSkipDataDeletion"))
            touched = list(emptied.values()) if touches else []
            self.directories.require_own(touched, f"{name} cannot be truncated")
            self.moves.require_still(pg, touched)
            mine = None if partitions is None else list(emptied)
            self.moves.require_sole(pg, touched, f"{name} cannot be truncated", table.id, mine)
            emptying = self.moves.announce_removals(pg, table.id, touched)
            kept = not acid and change_management.needed(pg, self.directories.files, table)
            if acid:
                txn_id = bases.announce(pg, name, write_id, list(emptied))
        with self.moves.emptying(emptying):
            if acid:
                bases.write(name, txn_id, write_id, touched)
            else:
                for location in touched:
                    self.directories.empty(location, kept=kept)

    def recycle(self, path: str) -> None:
        """Keep the files at a place in a plain table's directory, which its writer is about to replace (CAT-T9).

        They move to ``cmroot`` if replicas may need them. Nothing is done where change management is off, as in Hive.
        Raises: MetaError, UnavailableError.
        """
        if not self.directories.files.cmroot:
            return
        location = locations.qualified(path, self.settings.warehouse)
        with self.db.begin(durable=False) as pg:
            table = store.select_table_around(pg, locations.around(location))
            if table is None:
                raise MetaError(f"{location} is not recycled: it is in the directory of no table")
            if is_transactional(table.parameters):
                raise MetaError(
                    f"{location} is not recycled: {table.name} is transactional, the Cleaner removes its files"
                )
            self.moves.require_still(pg, [location])
            self.moves.require_sole(pg, [location], f"{location} is not recycled", table.id, None)
            kept = change_management.needed(pg, self.directories.files, table)
        self.directories.recycle(location, kept=kept)

    def _counted(self, name: TableName, draft: Table, context: Mapping[str, str]) -> Table:
        """Return a table to alter with the statistics of its files, before any lock is taken."""
        if not self._basic_statistics.are_due(draft, context):
            return draft
        rows = self.db.once(store.SELECT_TABLE, name)
        kept = not rows or not has_files(store.table_of(rows[0]))  # The client may omit the kind.
        return draft if kept else self._basic_statistics.altered(draft, context)

    @property
    def _basic_statistics(self) -> BasicStatistics:
        return BasicStatistics(self.directories, self.settings.gather_statistics)

    def _located(self, table: Table, database: Database) -> Table:
        if tables.is_view(table):
            return table
        location = locations.qualified(
            table.location or tables.default_location(table, database) or "", database.location
        )
        if locations.is_root(location):
            raise InvalidObjectError(f"{table.name} location must not be root path: {location}")
        return tables.with_location(table, location)

    def _altered(
        self,
        pg: PgTx,
        name: TableName,
        draft: Table,
        context: Mapping[str, str],
        changer: Changer,
        *,
        check_types: bool,
    ) -> tuple[Table, Table]:
        """Return the table as it is, locked, and the altered table."""
        old = store.lock_table(pg, name)
        if old is None:
            remote.refuse_missing(pg.sql, name.database, "Alter table")
            raise InvalidOperationError(f"table {name} doesn't exist")
        altered = tables.altered_table(
            old,
            draft,
            context,
            int(pg.now.timestamp()),
            check_types=check_types,
            storage_classes=self.settings.storage_classes,
        )
        if altered.name != name and store.is_taken(pg, altered.name):
            raise InvalidOperationError(f"new table {altered.name} already exists")
        if altered.name != name:
            require_exclusive(pg, f"ALTER TABLE {name} RENAME", table_object(name), changer)
        if is_insert_only(altered.parameters) and not is_insert_only(old.parameters):
            for _, sd in store.select_partition_descriptors(pg, old):
                require_storage(f"A partition of {name}", sd, altered.parameters, self.settings.storage_classes)
        if not tables.is_view(altered):
            location = altered.location or (old.location if altered.name != name else None)
            if location is None:
                raise MetaError(f"{name}: a table cannot be altered to have no location")
            root = old.location or self.settings.warehouse
            altered = tables.with_location(altered, locations.qualified(location, root))
        if altered.location != old.location and is_transactional(old.parameters):
            require_exclusive(pg, f"ALTER TABLE {name} SET LOCATION", table_object(name), changer)
        return old, altered

    def _require_places(self, pg: PgTx, old: Table, altered: Table) -> None:
        """Require that no other object has a directory of a table that moves or becomes transactional."""
        wanted: list[str | None] = []
        if altered.location != old.location:
            self.moves.require_free(pg, [altered.location])
            wanted.append(altered.location)
        if transactional.is_conversion(old, altered):
            wanted += [altered.location, *store.select_partition_locations(pg, old, outside=True)]
        self.moves.require_available(pg, wanted, _taker(altered))

    def _new_location(self, pg: PgTx, old: Table, altered: Table) -> str | None:
        if altered.name == old.name:
            return None
        return tables.new_location(
            old,
            altered,
            self._database(pg, old.name.database, altered),
            self._database(pg, altered.name.database, altered),
        )

    @staticmethod
    def _database(pg: PgTx, name: DatabaseName, altered: Table) -> Database:
        database = database_store.select_database(pg, name)
        if database is None:
            raise InvalidOperationError(f"Unable to change {altered.name}: Database {name} doesn't exist.")
        return database

    def _record_truncated(self, pg: PgTx, table: Table, partitions: Sequence[str] | None) -> None:
        """Record the table or partitions after a truncation. As in Hive, the event's old and new object are equal."""
        if not self.events.on:
            return
        if table.partition_keys:
            named = ("true", ()) if partitions is None else ("p.name = ANY(%s::text[])", (list(partitions),))
            pairs = [(each, each) for each in partition_store.select_partitions(pg.sql, table, *named)]
            self.events.record(pg, events.partitions_altered, table, pairs, emptied=True)
        elif partitions is None:
            emptied = store.select_table(pg, table.name) or table
            self.events.record(pg, events.table_altered, emptied, emptied, emptied=True)

    def _store_altered(self, pg: PgTx, old: Table, altered: Table, context: Mapping[str, str]) -> None:
        cascade = tables.is_true(context.get("CASCADE"))
        changed = tables.changed_columns(old, altered)
        if changed:
            statistics.delete_column_statistics(pg, old, changed, partitions=cascade)
            altered = replace(altered, parameters=marked_inaccurate(altered.parameters, changed))
            constraint_service.follow_columns(pg, old, altered)
        store.update_table(pg, altered)
        if altered.location != old.location and altered.name == old.name:
            statistics.update_not_whole(pg, old, [""])
        if cascade and old.partition_keys:
            store.update_partition_columns(pg, old, altered.sd["cols"])
        if altered.name != old.name:
            acid_history.rename_table_history(pg, old.name, altered.name)
        if transactional.is_conversion(old, altered):
            acid_history.insert_write_id_seed(pg, altered.name, transactional.CONVERSION_SEED)
        self.events.record(pg, events.table_altered, old, altered)

    def _require_convertible(self, name: TableName, draft: Table) -> None:
        """Check before a plain table becomes full ACID that Hive's readers accept the names of its files as originals.

        The check runs outside the transaction that converts: a listing may take long, and Hive does not protect a
        writer of plain files during a conversion either.
        """
        if not is_full_acid(draft.parameters):
            return
        with self.db.begin() as pg:
            old = store.select_table(pg, name)
            if old is None or not transactional.is_conversion(old, draft) or old.location is None:
                return
            directories = [old.location, *store.select_partition_locations(pg, old, outside=True)]
        for directory in directories:
            files = (entry.path for entry in self.directories.listing(directory) if not entry.is_dir)
            foreign = transactional.foreign_file(files)
            if foreign is not None:
                raise MetaError(
                    f"{name} cannot become transactional: the file {directory}/{foreign} is not named like "
                    "a bucket (000000_0)"
                )


def _taker(table: Table) -> Taker:
    return Taker(has_files=True, is_transactional=is_transactional(table.parameters), table_id=table.id)
