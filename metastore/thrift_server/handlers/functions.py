"""RPCs about functions."""

from __future__ import annotations

from metastore.catalog.service.functions import FunctionService
from metastore.errors import MetaError
from metastore.ids import DatabaseName, TableName, database_name, split_catalog, table_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import function_from_thrift, function_to_thrift, required_name
from metastore.thrift_server.dispatch.call import Call


class FunctionHandlers:
    """Functions, in the old and the new form of calls."""

    def __init__(self, functions: FunctionService) -> None:
        """Prepare the handlers. ``functions``: does the work."""
        self._functions = functions

    def create_function(self, _call: Call, function: ttypes.Function) -> None:
        """Add a function."""
        self._functions.create_function(function_from_thrift(function))

    def get_function(self, _call: Call, db: str | None, name: str | None) -> ttypes.Function:
        """Return a function."""
        return function_to_thrift(self._functions.get_function(_name(db, name)))

    def get_functions(self, _call: Call, db: str | None, pattern: str | None) -> list[str]:
        """Return names that match."""
        return self._functions.get_functions(_database(db), pattern)

    def get_functions_req(self, _call: Call, request: ttypes.GetFunctionsRequest) -> ttypes.GetFunctionsResponse:
        """Return names that match, or the functions themselves."""
        database = _database(request.dbName, request.catalogName)
        names = self._functions.get_functions(database, request.pattern)
        if request.returnNames in (None, True):
            return ttypes.GetFunctionsResponse(function_names=names)
        return ttypes.GetFunctionsResponse(
            functions=[function_to_thrift(self._functions.get_function(TableName(*database, name))) for name in names]
        )

    def get_all_functions(self, _call: Call) -> ttypes.GetAllFunctionsResponse:
        """Return every function of the default catalog."""
        return ttypes.GetAllFunctionsResponse(
            functions=[function_to_thrift(function) for function in self._functions.get_all_functions()]
        )

    def alter_function(self, _call: Call, db: str | None, name: str | None, function: ttypes.Function) -> None:
        """Replace a function."""
        self._functions.alter_function(_name(db, name), function_from_thrift(function))

    def drop_function(self, _call: Call, db: str | None, name: str | None) -> None:
        """Remove a function."""
        self._functions.drop_function(_name(db, name))


def _name(db: str | None, name: str | None) -> TableName:
    return table_name(required_name(db, "database"), required_name(name, "function"))


def _database(db: str | None, catalog: str | None = None) -> DatabaseName:
    if db is None or split_catalog(db)[1] is None:
        raise MetaError("Null database name is not allowed")
    return database_name(db.strip(), catalog)
