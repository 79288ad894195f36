"""RPCs about databases."""

from __future__ import annotations

from metastore.catalog.service.databases import DatabaseDraft, DatabaseService
from metastore.errors import NoSuchObjectError
from metastore.ids import DEFAULT_CATALOG, DatabaseName, database_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import (
    database_from_thrift,
    database_to_thrift,
    pattern_of,
    remote_of,
    required_name,
)
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.waiting.own_locks import STRANGERS, OwnLocks


def _name_of(db: str | None, catalog: str | None = None) -> DatabaseName:
    return database_name(required_name(db, "database"), catalog)


class DatabaseHandlers:
    """Databases, in the old and the new form of calls."""

    def __init__(self, databases: DatabaseService, changers: OwnLocks = STRANGERS) -> None:
        """Prepare the handlers. ``databases``: does the work; ``changers``: knows the caller's locks."""
        self._databases, self._changers = databases, changers

    def get_metastore_db_uuid(self, _call: Call) -> str:
        """Return the id of this metastore."""
        return self._databases.get_metastore_db_uuid()

    def create_database(self, call: Call, database: ttypes.Database) -> None:
        """Add a database."""
        self._databases.create_database(database_from_thrift(database), call.connection.user)

    def create_database_req(self, call: Call, request: ttypes.CreateDatabaseRequest) -> None:
        """Add a database."""
        self._databases.create_database(
            DatabaseDraft(
                _name_of(request.databaseName, request.catalogName),
                request.locationUri,
                request.description,
                request.managedLocationUri,
                request.parameters,
                request.ownerName,
                request.ownerType,
                *remote_of(request.type, request.dataConnectorName, request.remote_dbname),
            ),
            call.connection.user,
        )

    def get_database(self, _call: Call, name: str | None) -> ttypes.Database:
        """Return one database."""
        return database_to_thrift(self._databases.get_database(_name_of(name)))

    def get_database_req(self, _call: Call, request: ttypes.GetDatabaseRequest) -> ttypes.Database:
        """Return one database."""
        return database_to_thrift(self._databases.get_database(_name_of(request.name, request.catalogName)))

    def get_databases(self, _call: Call, pattern: str | None) -> list[str]:
        """Return names that match a pattern, which may carry a catalog."""
        return self._databases.get_databases(*pattern_of(pattern))

    def get_databases_req(
        self, _call: Call, request: ttypes.GetDatabaseObjectsRequest
    ) -> ttypes.GetDatabaseObjectsResponse:
        """Return databases whose names match a pattern."""
        catalog, pattern = pattern_of(request.pattern)
        catalog = (request.catalogName or catalog).lower()
        names = self._databases.get_databases(catalog, pattern)
        return ttypes.GetDatabaseObjectsResponse(
            [database_to_thrift(self._databases.get_database(DatabaseName(catalog, name))) for name in names]
        )

    def get_all_databases(self, _call: Call) -> list[str]:
        """Return names in the default catalog."""
        return self._databases.get_databases(DEFAULT_CATALOG, None)

    def alter_database(self, _call: Call, name: str | None, database: ttypes.Database) -> None:
        """Replace a database's description."""
        self._databases.alter_database(_name_of(name), database_from_thrift(database, name))

    def alter_database_req(self, _call: Call, request: ttypes.AlterDatabaseRequest) -> None:
        """Replace a database's description."""
        self._databases.alter_database(
            _name_of(request.oldDbName), database_from_thrift(request.newDb, request.oldDbName)
        )

    def drop_database(self, call: Call, name: str | None, delete_data: bool | None, cascade: bool | None) -> None:
        """Remove a database."""
        self._databases.drop_database(
            _name_of(name), delete_data=bool(delete_data), cascade=bool(cascade), changer=self._changers.of(call)
        )

    def drop_database_req(self, call: Call, request: ttypes.DropDatabaseRequest) -> None:
        """Remove a database; softDelete is served as an ordinary drop."""
        try:
            self._databases.drop_database(
                _name_of(request.name, request.catalogName),
                delete_data=bool(request.deleteData),
                cascade=bool(request.cascade),
                changer=self._changers.of(call, txn_id=request.txnId),
            )
        except NoSuchObjectError:
            if not request.ignoreUnknownDb:
                raise
