"""Catalogs and databases: create, read, alter, drop, and those that are always there.

Source: CAT-D1 to CAT-D4.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID, uuid5

from metastore.catalog.events import rules as events
from metastore.catalog.events.store import SILENT, CatalogEvents
from metastore.catalog.model import ROLE, USER, Catalog, Database, Table
from metastore.catalog.rare import store as rare_store
from metastore.catalog.rules import locations, tables
from metastore.catalog.rules.change_management import SOURCE_OF_REPLICATION, is_source
from metastore.catalog.rules.names import is_database_name, is_object_name, pattern_regex
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.exclusive import ANYBODY, database_object, require_exclusive
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.store import acid_history, functions
from metastore.catalog.store import databases as store
from metastore.catalog.store import tables as table_store
from metastore.compaction.queue.rules.properties import refused_property
from metastore.config import CatalogSettings
from metastore.db.engine import Database as Postgres
from metastore.db.engine import PgTx
from metastore.errors import AlreadyExistsError, InvalidObjectError, InvalidOperationError, MetaError, NoSuchObjectError
from metastore.ids import DEFAULT_CATALOG, DEFAULT_DATABASE, DatabaseName
from metastore.locks.rules import Changer
from metastore.places.rules import Taker
from metastore.places.store import select_users

_METASTORES = UUID("6f3d1b1e-52a5-5a0e-9c57-1d0f7a4c2b90")
"""The namespace in which a PostgreSQL database has its id."""


class DatabaseDraft(NamedTuple):
    """A database as a client asks for it; the service fills in fields that are None, or leaves them as they are."""

    name: DatabaseName
    location: str | None = None
    description: str | None = None
    managed_location: str | None = None
    parameters: dict[str, str] | None = None
    owner: str | None = None
    owner_type: int | None = None
    connector: str | None = None
    """The data connector of a database of type REMOTE."""
    remote_name: str | None = None


@dataclass(frozen=True)
class DatabaseService:
    """The RPCs about catalogs and databases."""

    db: Postgres
    settings: CatalogSettings
    directories: Directories
    moves: DirectoryMoves
    events: CatalogEvents = SILENT

    @property
    def warehouse(self) -> str:
        """The warehouse directory in its stored spelling."""
        return locations.qualified(self.settings.warehouse, "file:")

    @property
    def external_warehouse(self) -> str:
        """The directory of new databases; the warehouse itself unless a place for external tables is configured."""
        return locations.qualified(self.settings.external_warehouse or self.settings.warehouse, self.warehouse)

    def _default_managed_location(self, name: DatabaseName) -> str | None:
        """Return the directory for managed tables of a database without given locations; None: its own directory.

        This is in the warehouse, if there is another one for external tables.
        """
        if self.external_warehouse == self.warehouse or name.catalog != DEFAULT_CATALOG:
            return None
        return self.warehouse if name.db == DEFAULT_DATABASE else locations.child(self.warehouse, f"{name.db}.db")

    def _told(self, database: Database) -> Database:
        """Return a database as clients and events have it: without a managed location that was not given."""
        is_given = database.managed_location != self._default_managed_location(database.name)
        return database if is_given else replace(database, managed_location=None)

    def ensure_default_objects(self) -> None:
        """Create catalog ``hive`` and database ``default`` unless they are there. Any number of servers may start."""
        name = DatabaseName(DEFAULT_CATALOG, DEFAULT_DATABASE)
        if self.db.once(store.SELECT_DATABASE, name):
            return
        with self.directories.created(self.external_warehouse), self.db.begin() as pg:
            now = int(pg.now.timestamp())
            store.insert_catalog(pg, Catalog(DEFAULT_CATALOG, self.warehouse, "Default catalog, for Hive", now))
            store.insert_database(
                pg,
                Database(
                    name,
                    self.external_warehouse,
                    "Default Hive database",
                    self._default_managed_location(name),
                    owner="public",
                    owner_type=ROLE,
                    create_time=now,
                ),
            )

    def get_metastore_db_uuid(self) -> str:
        """Return the id of this metastore: the same from every server on a PostgreSQL database."""
        return str(uuid5(_METASTORES, "/".join(*self.db.once(store.SELECT_CLUSTER))))

    # Catalogs

    def create_catalog(self, catalog: Catalog) -> None:
        """Add a catalog with an empty database ``default``.

        Raises: AlreadyExistsError, InvalidObjectError, MetaError.
        """
        if not is_object_name(catalog.name):
            raise InvalidObjectError(f"{catalog.name} is not a valid catalog name")
        if self.db.once(store.SELECT_CATALOG, (catalog.name,)):
            raise AlreadyExistsError(f"Catalog {catalog.name} already exists")
        catalog = self._at(catalog, catalog.location)
        with self.db.begin() as pg:
            self._require_places(pg, catalog.location)
        with self.directories.created(catalog.location), self.db.begin() as pg:
            now = int(pg.now.timestamp())
            if not store.insert_catalog(pg, replace(catalog, create_time=now)):
                raise AlreadyExistsError(f"Catalog {catalog.name} already exists")
            default = Database(
                DatabaseName(catalog.name, DEFAULT_DATABASE),
                catalog.location,
                f"Default database for catalog {catalog.name}",
                owner="public",
                owner_type=ROLE,
                create_time=now,
            )
            store.insert_database(pg, default)
            self.events.record(pg, events.database_created, default)
            self.events.record(pg, events.catalog_created, _as_given(catalog, self.warehouse))

    def get_catalog(self, name: str) -> Catalog:
        """Return a catalog. Raises: NoSuchObjectError."""
        rows = self.db.once(store.SELECT_CATALOG, (name,))
        if not rows:
            raise NoSuchObjectError(f"No catalog {name}")
        return _as_given(Catalog(*rows[0]), self.warehouse)

    def get_catalogs(self) -> list[str]:
        """Return the names of all catalogs, sorted."""
        return [name for (name,) in self.db.once(store.SELECT_CATALOG_NAMES)]

    def alter_catalog(self, name: str, catalog: Catalog) -> None:
        """Change location or description; blank values are ignored. Raises: NoSuchObjectError, InvalidOperationError.

        Serialises on: the catalog's row.
        """
        with self.db.begin() as pg:
            old = store.lock_catalog(pg, name)
            if catalog.name != name:
                raise InvalidOperationError("You cannot change a catalog's name")
            altered = replace(old, description=catalog.description or old.description)
            if catalog.location:
                altered = self._at(altered, catalog.location)
            if altered.location != old.location:
                self._require_places(pg, altered.location)
            store.update_catalog(pg, altered)
            told = _as_given(old, self.warehouse), _as_given(altered, self.warehouse)
            self.events.record(pg, events.catalog_altered, *told)

    def drop_catalog(self, name: str, *, if_exists: bool) -> None:
        """Remove an empty catalog with its ``default`` database.

        Serialises on: the catalog's row and its default database's.
        Raises: MetaError, NoSuchObjectError, InvalidOperationError.
        """
        if name == DEFAULT_CATALOG:
            raise MetaError("Can not drop hive catalog")
        with self.db.begin() as pg:
            try:
                catalog = store.lock_catalog(pg, name)
            except NoSuchObjectError:
                if if_exists:
                    return
                raise
            others = [db for db in store.select_database_names(pg, name) if db != DEFAULT_DATABASE]
            if others:
                raise InvalidOperationError(f"Catalog {name} is not empty. One or more databases exist: {others[0]}")
            default = store.lock_database(pg, DatabaseName(name, DEFAULT_DATABASE))
            if default is not None:
                self._require_empty(pg, default.name)
                store.delete_database(pg, default.name)
                self.events.record(pg, events.database_dropped, default)
            store.delete_catalog(pg, name)
            self.events.record(pg, events.catalog_dropped, name)
        self.directories.remove_if_empty(catalog.location)

    # Databases

    def create_database(self, draft: DatabaseDraft, caller: str | None) -> None:
        """Add a database and its directory. Raises: InvalidObjectError, AlreadyExistsError, MetaError."""
        name = draft.name
        if not is_database_name(name.db):
            raise InvalidObjectError(f"{name.db} is not a valid database name")
        catalog = self.db.once(store.SELECT_ROOM_FOR_DATABASE, (*name, name.catalog))
        if not catalog:
            raise InvalidObjectError(f"No such catalog {name.catalog}")
        [(catalog_location, exists)] = catalog
        if exists:
            raise AlreadyExistsError(f"Database {name} already exists")
        refused = refused_property(draft.parameters or {})
        if refused is not None:
            raise InvalidObjectError(refused)
        if draft.connector == "":
            raise InvalidObjectError(f"Database {name} of type REMOTE needs connector_name")
        root = self.external_warehouse if name.catalog == DEFAULT_CATALOG else catalog_location
        location = locations.qualified(draft.location or locations.child(root, f"{name.db}.db"), root)
        managed = locations.qualified(draft.managed_location, self.warehouse) if draft.managed_location else None
        if managed is None and draft.location is None:
            managed = self._default_managed_location(name)
        with self.db.begin() as pg:
            self._require_places(pg, location, managed)
        with (
            self.directories.created_all([directory for directory in (location, managed) if directory]),
            self.db.begin() as pg,
        ):
            if draft.connector:
                rare_store.lock_concept(pg, "data_connectors")  # No other call drops the unused connector meanwhile.
            database = Database(
                name,
                location,
                draft.description,
                managed,
                draft.parameters or {},
                draft.owner or caller,
                draft.owner_type or USER,
                int(pg.now.timestamp()),
                draft.connector,
                draft.remote_name,
            )
            if not store.insert_database(pg, database):
                raise AlreadyExistsError(f"Database {name} already exists")
            self.moves.require_free(pg, [location, managed])
            self.events.record(pg, events.database_created, self._told(database))

    def get_database(self, name: DatabaseName) -> Database:
        """Return a database. Raises: NoSuchObjectError."""
        rows = self.db.once(store.SELECT_DATABASE, name)
        if not rows:
            raise NoSuchObjectError(f"There is no database named {name}")
        return self._told(store.database_of(rows[0]))

    def get_databases(self, catalog: str, pattern: str | None) -> list[str]:
        """Return names that match, sorted; none if there is no such catalog."""
        regex = pattern_regex(pattern)
        return [name for (name,) in self.db.once(store.SELECT_DATABASE_NAMES, (catalog, regex, regex))]

    def alter_database(self, name: DatabaseName, draft: DatabaseDraft) -> None:
        """Replace parameters and owner, and every other field that the request has; nothing changes on disk.

        Raises: NoSuchObjectError, MetaError for a property that must not reach a compaction's job.

        Serialises on: the database's row.
        """
        with self.db.begin() as pg:
            old = store.lock_database(pg, name)
            if old is None:
                raise NoSuchObjectError(f"There is no database named {name}")
            refused = refused_property(draft.parameters or {}, old.parameters)
            if refused is not None:
                raise MetaError(refused)
            altered = replace(
                old,
                parameters=draft.parameters or {},
                owner=draft.owner,
                owner_type=draft.owner_type or old.owner_type,
                description=draft.description or old.description,
                location=_given(draft.location, old) or old.location,
                managed_location=_given(draft.managed_location, old) or old.managed_location,
            )
            if (altered.location, altered.managed_location) != (old.location, old.managed_location):
                self._require_places(pg, altered.location, altered.managed_location)
            store.update_database(pg, altered)
            self.events.record(pg, events.database_altered, self._told(old), self._told(altered))

    def drop_database(
        self, name: DatabaseName, *, delete_data: bool, cascade: bool, changer: Changer = ANYBODY
    ) -> None:
        """Remove a database; ``cascade``: with everything in it.

        Serialises on: the database's row (no object can be created in it meanwhile), each table's, the tail of its lock
        queue.
        Raises: NoSuchObjectError, InvalidOperationError, HeldUpError, MetaError.
        """
        if name == DatabaseName(DEFAULT_CATALOG, DEFAULT_DATABASE):
            raise MetaError("Can not drop default database")
        with self.db.begin() as pg:
            database = store.lock_database(pg, name)
            if database is None:
                raise NoSuchObjectError(f"There is no database named {name}")
            if is_source(database.parameters):
                raise InvalidOperationError(
                    f"Database {name} is replicated from here: unset {SOURCE_OF_REPLICATION} first"
                )
            if not cascade:
                self._require_empty(pg, name)
            doomed = table_store.lock_tables_of(pg, name)
            self._require_no_foreign_views(pg, name, doomed)
            require_exclusive(pg, f"DROP DATABASE {name}", database_object(name), changer)
            self.moves.require_still(pg, [table.location for table in doomed])
            partitions = [
                location
                for table in doomed
                if tables.data_is_deletable(table)
                for location in table_store.select_partition_locations(pg, table, outside=True)
            ]
            data = [*(table.location for table in doomed if tables.data_is_deletable(table)), *partitions]
            if delete_data:
                self.directories.require_own(data, f"{name} cannot be dropped with the data of its tables")
            for table in doomed:
                table_store.delete_table(pg, table)
            gone = functions.delete_functions_of(pg, name)
            acid_history.delete_database_history(pg, name)
            store.delete_database(pg, name)
            self.events.record(pg, events.database_dropped, self._told(database), gone, doomed)
            own = [
                directory
                for directory in (database.location, database.managed_location)
                if directory and not self._is_needed(pg, directory, doomed)
            ]
            places = self._ours([*own, *data]) if delete_data else []
            removals = self.moves.announce_removals(pg, 0, places, trash_of=changer.trash_of)
        self.moves.remove(removals)

    def _at(self, catalog: Catalog, given: str) -> Catalog:
        return replace(catalog, location=locations.qualified(given, self.warehouse), given_location=given)

    def _require_places(self, pg: PgTx, *places: str | None) -> None:
        self.moves.require_free(pg, places)
        self.moves.require_available(pg, places, Taker())

    def _ours(self, places: list[str | None]) -> list[str | None]:
        """Return the directories that lie below the roots; others stay."""
        roots = self.directories.files.roots
        return [place for place in places if place and (roots is None or roots.covers(place, inside=True))]

    @staticmethod
    def _require_empty(pg: PgTx, name: DatabaseName) -> None:
        if table_store.count_tables_of(pg, name):
            raise InvalidOperationError(f"Database {name} is not empty. One or more tables exist.")
        if functions.count_functions_of(pg, name):
            raise InvalidOperationError(f"Database {name} is not empty. One or more functions exist.")
        for kind in rare_store.select_kinds_of(pg, name):
            raise InvalidOperationError(f"Database {name} is not empty. One or more {kind}s exist.")

    @staticmethod
    def _require_no_foreign_views(pg: PgTx, name: DatabaseName, doomed: list[Table]) -> None:
        for view, source in table_store.select_materialized_views_on(pg, [table.name for table in doomed]):
            if view.database != name:
                raise MetaError(f"Cannot drop table {source}: it is used in the following materialized views: {view}")

    @staticmethod
    def _is_needed(pg: PgTx, directory: str, dropped: list[Table]) -> bool:
        """Return True if a dropped database's directory holds files that must stay.

        These are files of other objects, or data of external tables.
        """
        kept = [table.location for table in dropped if table.location and not tables.data_is_deletable(table)]
        return any(locations.is_below(location, directory) for location in kept) or bool(select_users(pg, [directory]))


def _as_given(catalog: Catalog, warehouse: str) -> Catalog:
    """Return a catalog with the location that a client gave, unless an older server changed it since."""
    given = catalog.given_location
    if given is None or locations.qualified(given, warehouse) != catalog.location:
        return catalog
    return replace(catalog, location=given)


def _given(location: str | None, old: Database) -> str | None:
    return locations.qualified(location, old.location) if location else None
