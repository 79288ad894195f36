"""RPCs about constraints: keys, NOT NULL, DEFAULT, CHECK."""

from collections.abc import Callable
from typing import Any

from thrift.Thrift import TApplicationException

from metastore.catalog.model import ConstraintKind
from metastore.catalog.service.constraints import ConstraintService
from metastore.errors import InvalidObjectError, MetaError
from metastore.ids import DEFAULT_CATALOG, database_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.call import Call
from metastore.thrift_server.convert_catalog import table_name_of
from metastore.thrift_server.convert_constraints import constraints_from_thrift, constraints_to_thrift


class ConstraintHandlers:
    """One call to add and one to read for each kind."""

    def __init__(self, constraints: ConstraintService) -> None:
        """``constraints``: does the work."""
        self._constraints = constraints

    # Write

    def add_primary_key(self, _call: Call, request: Any) -> None:
        self._add(ConstraintKind.PRIMARY_KEY, request.primaryKeyCols)

    def add_foreign_key(self, _call: Call, request: Any) -> None:
        self._add(ConstraintKind.FOREIGN_KEY, request.foreignKeyCols)

    def add_unique_constraint(self, _call: Call, request: Any) -> None:
        self._add(ConstraintKind.UNIQUE, request.uniqueConstraintCols)

    def add_not_null_constraint(self, _call: Call, request: Any) -> None:
        self._add(ConstraintKind.NOT_NULL, request.notNullConstraintCols)

    def add_default_constraint(self, _call: Call, request: Any) -> None:
        self._add(ConstraintKind.DEFAULT, request.defaultConstraintCols)

    def add_check_constraint(self, _call: Call, request: Any) -> None:
        self._add(ConstraintKind.CHECK, request.checkConstraintCols)

    def drop_constraint(self, _call: Call, request: Any) -> None:
        name = table_name_of(request.dbname, request.tablename, request.catName)
        _as_hive(lambda: self._constraints.drop_constraint(name, request.constraintname))

    # Read

    def get_primary_keys(self, _call: Call, request: Any) -> Any:
        return ttypes.PrimaryKeysResponse(self._get(ConstraintKind.PRIMARY_KEY, request))

    def get_unique_constraints(self, _call: Call, request: Any) -> Any:
        return ttypes.UniqueConstraintsResponse(self._get(ConstraintKind.UNIQUE, request))

    def get_not_null_constraints(self, _call: Call, request: Any) -> Any:
        return ttypes.NotNullConstraintsResponse(self._get(ConstraintKind.NOT_NULL, request))

    def get_default_constraints(self, _call: Call, request: Any) -> Any:
        return ttypes.DefaultConstraintsResponse(self._get(ConstraintKind.DEFAULT, request))

    def get_check_constraints(self, _call: Call, request: Any) -> Any:
        return ttypes.CheckConstraintsResponse(self._get(ConstraintKind.CHECK, request))

    def get_foreign_keys(self, _call: Call, request: Any) -> Any:
        databases = [None if db is None else database_name(db, request.catName)
                     for db in (request.foreign_db_name, request.parent_db_name)]
        if request.foreign_tbl_name is None and request.parent_tbl_name is None:
            raise MetaError("Both parent table name and foreign table name are null")
        catalog = next((one.catalog for one in databases if one), request.catName or DEFAULT_CATALOG)
        child, parent = ((one.db if one else None, table) for one, table in zip(
            databases, (request.foreign_tbl_name, request.parent_tbl_name), strict=True))
        return ttypes.ForeignKeysResponse(constraints_to_thrift(
            ConstraintKind.FOREIGN_KEY, self._constraints.get_foreign_keys(catalog, child, parent)))

    def get_all_table_constraints(self, _call: Call, request: Any) -> Any:
        found = self._constraints.get_all(table_name_of(request.dbName, request.tblName, request.catName))
        return ttypes.AllTableConstraintsResponse(ttypes.SQLAllTableConstraints(
            primaryKeys=constraints_to_thrift(ConstraintKind.PRIMARY_KEY, found),
            foreignKeys=constraints_to_thrift(ConstraintKind.FOREIGN_KEY, found),
            uniqueConstraints=constraints_to_thrift(ConstraintKind.UNIQUE, found),
            notNullConstraints=constraints_to_thrift(ConstraintKind.NOT_NULL, found),
            defaultConstraints=constraints_to_thrift(ConstraintKind.DEFAULT, found),
            checkConstraints=constraints_to_thrift(ConstraintKind.CHECK, found)))

    def _add(self, kind: ConstraintKind, rows: Any) -> None:
        _as_hive(lambda: self._constraints.add(constraints_from_thrift(kind, rows)))

    def _get(self, kind: ConstraintKind, request: Any) -> list[Any]:
        name = table_name_of(request.db_name, request.tbl_name, request.catName)
        return constraints_to_thrift(kind, self._constraints.get(name, kind))


def _as_hive(work: Callable[[], None]) -> None:
    """Answer an object that is not acceptable as Hive does: it raises what these methods do not declare."""
    try:
        work()
    except InvalidObjectError as error:
        raise TApplicationException(TApplicationException.INTERNAL_ERROR, str(error)) from error
