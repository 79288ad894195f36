"""RPCs that change tables; all forms of a call end in one service method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metastore.catalog.rules import tables as rules
from metastore.catalog.service.tables import TableService
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import (
    context_of,
    required_name,
    table_from_thrift,
    table_name_of,
    table_to_thrift,
)
from metastore.thrift_server.convert.constraints import all_from_thrift
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.waiting.own_locks import STRANGERS, OwnLocks

_CHECK_TYPES = "metastore.disallow.incompatible.col.type.changes"


class TableHandlers:
    """The calls that create, alter, drop and truncate tables."""

    def __init__(self, tables: TableService, changers: OwnLocks = STRANGERS) -> None:
        """Prepare the handlers. ``tables``: does the work; ``changers``: knows the caller's locks."""
        self._tables, self._changers = tables, changers

    # Create

    def create_table(self, _call: Call, table: ttypes.Table) -> None:
        """Add a table or view."""
        self._tables.create_table(table_from_thrift(table), {})

    def create_table_with_environment_context(
        self, _call: Call, table: ttypes.Table, environment: ttypes.EnvironmentContext | None
    ) -> None:
        """Add a table or view."""
        self._tables.create_table(table_from_thrift(table), context_of(environment))

    def create_table_with_constraints(self, _call: Call, table: ttypes.Table, *constraints: Any) -> None:
        """Add a table with its constraints; clients before 3.1 send the first two kinds only."""
        self._tables.create_table(table_from_thrift(table), {}, all_from_thrift(*constraints))

    def create_table_req(self, _call: Call, request: ttypes.CreateTableRequest) -> None:
        """Add a table or view, with its constraints."""
        constraints = all_from_thrift(
            request.primaryKeys,
            request.foreignKeys,
            request.uniqueConstraints,
            request.notNullConstraints,
            request.defaultConstraints,
            request.checkConstraints,
        )
        self._tables.create_table(table_from_thrift(request.table), context_of(request.envContext), constraints)

    def translate_table_dryrun(self, _call: Call, request: ttypes.CreateTableRequest) -> ttypes.Table:
        """Return the table as ``create_table_req`` would store it."""
        return table_to_thrift(
            self._tables.translate_table_dryrun(table_from_thrift(request.table), context_of(request.envContext))
        )

    # Alter

    def alter_table(self, call: Call, db: str | None, name: str | None, table: ttypes.Table) -> None:
        """Replace a table's definition."""
        self._alter(call, db, name, table, None)

    def alter_table_with_environment_context(
        self,
        call: Call,
        db: str | None,
        name: str | None,
        table: ttypes.Table,
        environment: ttypes.EnvironmentContext | None,
    ) -> None:
        """Replace a table's definition."""
        self._alter(call, db, name, table, environment)

    def alter_table_with_cascade(
        self, call: Call, db: str | None, name: str | None, table: ttypes.Table, cascade: bool | None
    ) -> None:
        """Replace a table's definition, and with ``cascade`` the columns of its partitions."""
        self._alter(call, db, name, table, None, {"CASCADE": "true"} if cascade else {})

    def alter_table_req(self, call: Call, request: ttypes.AlterTableRequest) -> ttypes.AlterTableResponse:
        """Replace a table's definition."""
        if request.writeId is not None and request.writeId > 0 and request.table is not None:
            request.table.writeId = request.writeId
        self._alter(
            call,
            request.dbName,
            request.tableName,
            request.table,
            request.environmentContext,
            _expected(request),
            request.catName,
        )
        return ttypes.AlterTableResponse()

    def _alter(
        self,
        call: Call,
        db: str | None,
        name: str | None,
        table: Any,
        environment: Any,
        more: Mapping[str, str] | None = None,
        catalog: str | None = None,
    ) -> None:
        old_name = table_name_of(db, name, catalog)
        if table is not None and table.catName is None:
            table.catName = old_name.catalog  # Absent means unknown to the sender, not the default catalog.
        self._tables.alter_table(
            old_name,
            table_from_thrift(table),
            {**context_of(environment), **(more or {})},
            check_types=_checks_types(call),
            changer=self._changers.of(call, environment),
        )

    # Drop and truncate

    def drop_table(self, call: Call, db: str | None, name: str | None, delete_data: bool | None) -> None:
        """Remove a table."""
        self.drop_table_with_environment_context(call, db, name, delete_data, None)

    def drop_table_with_environment_context(
        self,
        call: Call,
        db: str | None,
        name: str | None,
        delete_data: bool | None,
        environment: ttypes.EnvironmentContext | None,
    ) -> None:
        """Remove a table; ``ifPurge``: its data does not go to a trash."""
        self._tables.drop_table(
            table_name_of(db, name), delete_data=bool(delete_data), changer=self._changers.of(call, environment)
        )

    def drop_table_req(self, call: Call, request: ttypes.DropTableRequest) -> None:
        """Remove a table."""
        self._tables.drop_table(
            table_name_of(request.dbName, request.tableName, request.catalogName),
            delete_data=bool(request.deleteData),
            changer=self._changers.of(call, request.envContext),
        )

    def truncate_table(self, call: Call, db: str | None, name: str | None, partitions: list[str] | None) -> None:
        """Empty a table or some of its partitions."""
        self._tables.truncate_table(table_name_of(db, name), partitions, {}, changer=self._changers.of(call))

    def truncate_table_req(self, call: Call, request: ttypes.TruncateTableRequest) -> ttypes.TruncateTableResponse:
        """Empty a table or some of its partitions."""
        write_id = -1 if request.writeId is None else request.writeId
        self._tables.truncate_table(
            table_name_of(request.dbName, request.tableName),
            request.partNames,
            context_of(request.environmentContext),
            write_id,
            self._changers.of(call, request.environmentContext),
        )
        return ttypes.TruncateTableResponse()

    def cm_recycle(self, _call: Call, request: ttypes.CmRecycleRequest) -> ttypes.CmRecycleResponse:
        """Keep files for replicas, before their table's writer replaces them; none goes to a trash."""
        self._tables.recycle(required_name(request.dataPath, "path"))
        return ttypes.CmRecycleResponse()


def _checks_types(call: Call) -> bool | None:
    """Return the setMetaConf value of this connection; None: it was not set."""
    own = (call.connection.metaconf or {}).get(_CHECK_TYPES)
    return None if own is None else own.lower() == "true"


def _expected(request: ttypes.AlterTableRequest) -> dict[str, str]:
    """Return the parameter that the table must have for the change to be made."""
    key, value = request.expectedParameterKey, request.expectedParameterValue
    return {} if key is None or value is None else {rules.EXPECTED_KEY: key, rules.EXPECTED_VALUE: value}
