"""RPCs that read tables; all forms of a call end in one service method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thrift.protocol import fastbinary

from metastore.catalog.model import Table
from metastore.catalog.rules import table_access
from metastore.catalog.rules.abilities import Said
from metastore.catalog.rules.table_filter import TableFilter
from metastore.catalog.service.statistics import HIVE, StatisticsService
from metastore.catalog.service.table_reads import TableReads
from metastore.catalog.store.table_lists import TablePiece
from metastore.db.pieces import Pieces
from metastore.db.wires import Wires
from metastore.errors import InvalidOperationError, MetaError, UnknownDatabaseError
from metastore.ids import DatabaseName, database_name, split_catalog
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import (
    column_statistics,
    fields_to_thrift,
    pattern_of,
    required_name,
    seen_of,
    table_name_of,
    table_to_thrift,
)
from metastore.thrift_server.convert.projection import projected
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.dispatch.table_access import TableAccess, said_in
from metastore.thrift_server.responses.streamed import InPieces, itself, texts

_ACCESS, _WORDS = 1, 2


class TableReadHandlers:
    """The call get_table and all calls that list or describe tables.

    A client gets a whole table, to read or write it, only if it has the abilities; lists and names are for every
    client.
    """

    def __init__(self, tables: TableReads, access: TableAccess, statistics: StatisticsService) -> None:
        """Prepare the handlers. ``tables``: does the work. ``access``: decides about transactional tables.

        ``statistics``: of columns, for a client that wants them with a table.
        """
        self._tables, self._access, self._statistics = tables, access, statistics

    def get_table(self, call: Call, db: str | None, name: str | None) -> ttypes.Table:
        """Return one table, for a client that does not describe itself."""
        found = self._tables.get_table(table_name_of(db, name))
        self._access.require(call, found.name, found.parameters, Said())
        return table_to_thrift(found)

    def get_table_req(self, call: Call, request: ttypes.GetTableRequest) -> ttypes.GetTableResult:
        """Return one table."""
        found = self._tables.get_table(table_name_of(request.dbName, request.tblName, request.catName))
        self._access.require(call, found.name, found.parameters, said_in(request))
        statistics = self._statistics_of(found, request) if request.getColumnStats else None
        return ttypes.GetTableResult(table_to_thrift(found, statistics))

    def _statistics_of(self, table: Table, request: ttypes.GetTableRequest) -> ttypes.ColumnStatistics | None:
        columns = [column["name"] for column in table.sd["cols"]]
        engine, seen = request.engine or HIVE, seen_of(request)
        statistics, is_exact = self._statistics.get(table.name, [""], columns, engine, seen)
        return column_statistics(table.name, statistics, is_exact=is_exact) if statistics else None

    def metastore_table_at(self, _call: Call, place: str | None) -> str:
        """Return the transactional table that other programs' writes to a place would harm."""
        if not place:
            raise MetaError("The request names no place")
        found = self._tables.metastore_table_at(place)
        return f"{found.db}.{found.table}" if found else ""

    def get_table_objects_by_name(self, _call: Call, db: str | None, names: list[str] | None) -> InPieces:
        """Return the named tables that exist."""
        return _whole_tables(itself, self._tables.get_table_objects_by_name(_database(db), names), None)

    def get_table_objects_by_name_req(self, _call: Call, request: ttypes.GetTablesRequest) -> InPieces:
        """Return the named tables that exist, or those that match a pattern.

        They are cut down to the wanted fields.
        """
        found = self._tables.get_table_objects_by_name(
            _database(request.dbName, request.catName),
            request.tblNames,
            request.tablesPattern,
            encoded=request.projectionSpec is None,
        )
        return _whole_tables(ttypes.GetTablesResult, found, request.projectionSpec)

    def get_tables(self, _call: Call, db: str | None, pattern: str | None) -> InPieces:
        """Return names that match."""
        return texts(self._tables.get_tables(_required(db), pattern))

    def get_tables_by_type(self, _call: Call, db: str | None, pattern: str | None, kind: str | None) -> InPieces:
        """Return names of one type that match."""
        return texts(self._tables.get_tables(_required(db), pattern, required_name(kind, "type")))

    def get_all_tables(self, _call: Call, db: str | None) -> InPieces:
        """Return names of all tables and views."""
        return texts(self._tables.get_tables(_required(db), None))

    def get_materialized_views_for_rewriting(self, _call: Call, db: str | None) -> list[str]:
        """Return names of materialized views that may replace their query."""
        return self._tables.get_materialized_views_for_rewriting(_required(db))

    def get_all_materialized_view_objects_for_rewriting(self, _call: Call) -> list[ttypes.Table]:
        """Return the tables of all such materialized views of the default catalog."""
        return [table_to_thrift(view) for view in self._tables.get_all_materialized_view_objects_for_rewriting()]

    def get_table_meta(
        self, _call: Call, databases: str | None, tables: str | None, types: list[str] | None
    ) -> InPieces:
        """Return a line for each table that matches both patterns."""
        catalog, database_pattern = pattern_of(databases)
        lines = self._tables.get_table_meta(catalog, database_pattern, tables, types or ())
        return InPieces(itself, ttypes.TableMeta, lines.count, lines)

    def get_table_names_by_filter(self, _call: Call, db: str | None, text: str | None, most: int | None) -> list[str]:
        """Return names of tables whose owner, last access or parameters fit a filter."""
        if not db or not split_catalog(db)[1]:
            raise UnknownDatabaseError("DB name is null or empty")
        if text is None:
            raise InvalidOperationError("null cannot apply null filter")
        most = -1 if most is None else most
        return self._tables.get_table_names_by_filter(database_name(db), TableFilter.of(text).accepts, most)

    def get_tables_ext(self, _call: Call, request: ttypes.GetTablesExtRequest) -> list[ttypes.ExtendedTableInfo]:
        """Return the matching names, with the access that the client's capabilities allow. No limit counts as 0."""
        database = DatabaseName(request.catalog.strip().lower(), request.database.strip().lower())
        said, most = request.processorCapabilities or (), request.limit or 0
        tables = self._tables.get_tables_ext(database, request.tableNamePattern, said, most)
        return [_extended(name, access, request.requestedFields) for name, access in tables]

    def get_fields(self, _call: Call, db: str | None, name: str | None) -> list[ttypes.FieldSchema]:
        """Return the data columns."""
        return fields_to_thrift(self._tables.get_fields(_required(db), required_name(name, "table")))

    def get_fields_with_environment_context(
        self, call: Call, db: str | None, name: str | None, _environment: ttypes.EnvironmentContext | None
    ) -> list[ttypes.FieldSchema]:
        """Return the data columns."""
        return self.get_fields(call, db, name)

    def get_fields_req(self, _call: Call, request: ttypes.GetFieldsRequest) -> ttypes.GetFieldsResponse:
        """Return the data columns."""
        fields = self._tables.get_fields(_required(request.dbName, request.catName), request.tblName)
        return ttypes.GetFieldsResponse(fields_to_thrift(fields))

    def get_schema(self, _call: Call, db: str | None, name: str | None) -> list[ttypes.FieldSchema]:
        """Return the data columns and the partition keys."""
        return fields_to_thrift(self._tables.get_schema(_required(db), required_name(name, "table")))

    def get_schema_with_environment_context(
        self, call: Call, db: str | None, name: str | None, _environment: ttypes.EnvironmentContext | None
    ) -> list[ttypes.FieldSchema]:
        """Return the data columns and the partition keys."""
        return self.get_schema(call, db, name)

    def get_schema_req(self, _call: Call, request: ttypes.GetSchemaRequest) -> ttypes.GetSchemaResponse:
        """Return the data columns and the partition keys."""
        fields = self._tables.get_schema(_required(request.dbName, request.catName), request.tblName)
        return ttypes.GetSchemaResponse(fields_to_thrift(fields))


def _extended(name: str, access: table_access.TableAccess, fields: int) -> ttypes.ExtendedTableInfo:
    """Return the fields that a client requested: bit 1 is the access, bit 2 the missing capabilities."""
    info = ttypes.ExtendedTableInfo(name)
    if fields & _ACCESS:
        info.accessType = int(access.type)
    if fields & _WORDS:
        info.requiredReadCapabilities, info.requiredWriteCapabilities = access.reads, access.writes
    return info


def _whole_tables(
    whole: Callable[[list[Any]], Any], found: Pieces[Wires | TablePiece], fields: ttypes.GetProjectionsSpec | None
) -> InPieces:
    """Return the tables; ``fields``: the wanted ones. Tables stay objects until their piece is encoded."""
    spec = [ttypes.Table, ttypes.Table.thrift_spec]

    def encoded(piece: Wires | TablePiece) -> bytes:
        if isinstance(piece, Wires):
            return piece.encoded
        return b"".join(
            fastbinary.encode_binary(projected(table_to_thrift(table), fields), spec) for table in piece.tables
        )

    return InPieces(whole, ttypes.Table, found.count, found.of(encoded))


def _database(db: str | None, catalog: str | None = None) -> DatabaseName:
    """Return a database whose name may be absent, for calls with their own answer to that."""
    return database_name(db or "", catalog)


def _required(db: str | None, catalog: str | None = None) -> DatabaseName:
    if db is None or split_catalog(db)[1] is None:
        raise MetaError("Null database name is not allowed")
    return database_name(db.strip(), catalog)
