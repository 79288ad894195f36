"""RPCs about constraints: keys, NOT NULL, DEFAULT, CHECK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thrift.Thrift import TApplicationException

from metastore.catalog.model import ConstraintKind
from metastore.catalog.service.constraints import ConstraintService
from metastore.errors import InvalidObjectError, MetaError
from metastore.ids import DEFAULT_CATALOG, database_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import table_name_of
from metastore.thrift_server.convert.constraints import constraints_from_thrift, constraints_to_thrift
from metastore.thrift_server.dispatch.call import Call

_Side = tuple[str | None, str | None]


class ConstraintHandlers:
    """The handlers of constraints: for each kind a call to add and a call to read."""

    def __init__(self, constraints: ConstraintService) -> None:
        """Prepare the handlers. ``constraints``: does the work."""
        self._constraints = constraints

    # Write

    def add_primary_key(self, _call: Call, request: ttypes.AddPrimaryKeyRequest) -> None:
        """Add a primary key."""
        self._add(ConstraintKind.PRIMARY_KEY, request.primaryKeyCols)

    def add_foreign_key(self, _call: Call, request: ttypes.AddForeignKeyRequest) -> None:
        """Add a foreign key."""
        self._add(ConstraintKind.FOREIGN_KEY, request.foreignKeyCols)

    def add_unique_constraint(self, _call: Call, request: ttypes.AddUniqueConstraintRequest) -> None:
        """Add a UNIQUE constraint."""
        self._add(ConstraintKind.UNIQUE, request.uniqueConstraintCols)

    def add_not_null_constraint(self, _call: Call, request: ttypes.AddNotNullConstraintRequest) -> None:
        """Add NOT NULL constraints."""
        self._add(ConstraintKind.NOT_NULL, request.notNullConstraintCols)

    def add_default_constraint(self, _call: Call, request: ttypes.AddDefaultConstraintRequest) -> None:
        """Add DEFAULT constraints."""
        self._add(ConstraintKind.DEFAULT, request.defaultConstraintCols)

    def add_check_constraint(self, _call: Call, request: ttypes.AddCheckConstraintRequest) -> None:
        """Add CHECK constraints."""
        self._add(ConstraintKind.CHECK, request.checkConstraintCols)

    def drop_constraint(self, _call: Call, request: ttypes.DropConstraintRequest) -> None:
        """Remove a constraint by its name."""
        name = table_name_of(request.dbname, request.tablename, request.catName)
        _as_hive(lambda: self._constraints.drop_constraint(name, request.constraintname))

    # Read

    def get_primary_keys(self, _call: Call, request: ttypes.PrimaryKeysRequest) -> ttypes.PrimaryKeysResponse:
        """Return a table's primary key."""
        return ttypes.PrimaryKeysResponse(self._get(ConstraintKind.PRIMARY_KEY, request))

    def get_unique_constraints(
        self, _call: Call, request: ttypes.UniqueConstraintsRequest
    ) -> ttypes.UniqueConstraintsResponse:
        """Return a table's UNIQUE constraints."""
        return ttypes.UniqueConstraintsResponse(self._get(ConstraintKind.UNIQUE, request))

    def get_not_null_constraints(
        self, _call: Call, request: ttypes.NotNullConstraintsRequest
    ) -> ttypes.NotNullConstraintsResponse:
        """Return a table's NOT NULL constraints."""
        return ttypes.NotNullConstraintsResponse(self._get(ConstraintKind.NOT_NULL, request))

    def get_default_constraints(
        self, _call: Call, request: ttypes.DefaultConstraintsRequest
    ) -> ttypes.DefaultConstraintsResponse:
        """Return a table's DEFAULT constraints."""
        return ttypes.DefaultConstraintsResponse(self._get(ConstraintKind.DEFAULT, request))

    def get_check_constraints(
        self, _call: Call, request: ttypes.CheckConstraintsRequest
    ) -> ttypes.CheckConstraintsResponse:
        """Return a table's CHECK constraints."""
        return ttypes.CheckConstraintsResponse(self._get(ConstraintKind.CHECK, request))

    def get_foreign_keys(self, _call: Call, request: ttypes.ForeignKeysRequest) -> ttypes.ForeignKeysResponse:
        """Return foreign keys of a child, to a parent, or between both."""
        catalog, child, parent = _child_and_parent(request)
        keys = self._constraints.get_foreign_keys(catalog, child, parent)
        return ttypes.ForeignKeysResponse(constraints_to_thrift(ConstraintKind.FOREIGN_KEY, keys))

    def get_all_table_constraints(
        self, _call: Call, request: ttypes.AllTableConstraintsRequest
    ) -> ttypes.AllTableConstraintsResponse:
        """Return a table's constraints of every kind."""
        constraints = self._constraints.get(
            table_name_of(request.dbName, request.tblName, request.catName), *ConstraintKind
        )
        return ttypes.AllTableConstraintsResponse(
            ttypes.SQLAllTableConstraints(
                primaryKeys=constraints_to_thrift(ConstraintKind.PRIMARY_KEY, constraints),
                foreignKeys=constraints_to_thrift(ConstraintKind.FOREIGN_KEY, constraints),
                uniqueConstraints=constraints_to_thrift(ConstraintKind.UNIQUE, constraints),
                notNullConstraints=constraints_to_thrift(ConstraintKind.NOT_NULL, constraints),
                defaultConstraints=constraints_to_thrift(ConstraintKind.DEFAULT, constraints),
                checkConstraints=constraints_to_thrift(ConstraintKind.CHECK, constraints),
            )
        )

    def _add(self, kind: ConstraintKind, rows: Any) -> None:
        _as_hive(lambda: self._constraints.add(constraints_from_thrift(kind, rows)))

    def _get(self, kind: ConstraintKind, request: Any) -> list[Any]:
        name = table_name_of(request.db_name, request.tbl_name, request.catName)
        return constraints_to_thrift(kind, self._constraints.get(name, kind))


def _child_and_parent(request: ttypes.ForeignKeysRequest) -> tuple[str, _Side, _Side]:
    """Return the catalog and, as far as they are named, database and table of either side."""
    if request.foreign_tbl_name is None and request.parent_tbl_name is None:
        raise MetaError("Both parent table name and foreign table name are null")
    child, parent = (
        None if db is None else database_name(db, request.catName)
        for db in (request.foreign_db_name, request.parent_db_name)
    )
    catalog = next((db.catalog for db in (child, parent) if db), request.catName or DEFAULT_CATALOG)
    return (
        catalog,
        (child.db if child else None, request.foreign_tbl_name),
        (parent.db if parent else None, request.parent_tbl_name),
    )


def _as_hive(work: Callable[[], None]) -> None:
    """Convert an error about an unacceptable object to the undeclared one that Hive raises here."""
    try:
        work()
    except InvalidObjectError as error:
        raise TApplicationException(TApplicationException.INTERNAL_ERROR, str(error)) from error
