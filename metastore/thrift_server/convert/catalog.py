"""Conversions between catalog structs and the catalog's values.

Replies are complete, as Hive 2.3.10 sends them: Spark and PyIceberg fail on collections that are null (CLIENT-5).
Requests are checked for fields that Hive requires; the services validate the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metastore.acid.snapshots import ValidWriteIdList
from metastore.catalog.model import Catalog, ColumnStatistics, Database, Function, Json, Table, TableType
from metastore.catalog.service.databases import DatabaseDraft
from metastore.catalog.service.statistics import Seen
from metastore.errors import MetaError
from metastore.ids import TableName, database_name, split_catalog, table_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.structs import struct_from_json, struct_to_json


def required_name(value: str | None, what: str) -> str:
    """Return a required name. Raises: MetaError if it is missing."""
    if value is None:
        raise MetaError(f"Null {what} name is not allowed")
    return value.strip()


def required_struct(value: Any, what: str) -> Any:
    """Return a required struct. Raises: MetaError if it is missing."""
    if value is None:
        raise MetaError(f"Null {what} is not allowed")
    return value


def table_name_of(db: str | None, table: str | None, catalog: str | None = None) -> TableName:
    """Return the table that two arguments name. Raises: MetaError if either is missing."""
    return table_name(required_name(db, "database"), required_name(table, "table"), catalog)


def context_of(environment: Any) -> dict[str, str]:
    """Return the properties of an EnvironmentContext; {} without it."""
    return dict(environment.properties or {}) if environment is not None else {}


def pattern_of(text: str | None) -> tuple[str, str | None]:
    """Return (catalog, pattern) from a pattern argument that may carry a catalog."""
    return split_catalog(text)


def catalog_from_thrift(catalog: Any) -> Catalog:
    """Decode a catalog. The service raises InvalidObjectError for missing fields. Raises: MetaError."""
    required_struct(catalog, "catalog")
    return Catalog((catalog.name or "").strip().lower(), catalog.locationUri or "", catalog.description)


def catalog_to_thrift(catalog: Catalog) -> Any:
    """Encode the answer of get_catalog."""
    return ttypes.Catalog(
        name=catalog.name, description=catalog.description, locationUri=catalog.location, createTime=catalog.create_time
    )


def database_from_thrift(database: Any, name: str | None = None) -> DatabaseDraft:
    """Decode a request for a database. ``name``: the altered database, which the request need not name again.

    Raises: MetaError without a name.
    """
    required_struct(database, "database")
    return DatabaseDraft(
        database_name(required_name(name or database.name, "database"), database.catalogName),
        database.locationUri,
        database.description,
        database.managedLocationUri,
        database.parameters,
        database.ownerName,
        database.ownerType,
        *remote_of(database.type, database.connector_name, database.remote_dbname),
    )


def remote_of(kind: int | None, connector: str | None, remote_name: str | None) -> tuple[str | None, str | None]:
    """Return the data connector ("" if missing) and the remote name of a REMOTE database; None twice for others."""
    if kind != ttypes.DatabaseType.REMOTE:
        return None, None
    return (connector or "").strip(), remote_name or None


def database_to_thrift(database: Database) -> Any:
    """Encode the answer of get_database."""
    return ttypes.Database(
        name=database.name.db,
        description=database.description,
        locationUri=database.location,
        parameters=database.parameters,
        ownerName=database.owner,
        ownerType=database.owner_type,
        catalogName=database.name.catalog,
        createTime=database.create_time,
        managedLocationUri=database.managed_location,
        type=ttypes.DatabaseType.NATIVE if database.connector is None else ttypes.DatabaseType.REMOTE,
        connector_name=database.connector,
        remote_dbname=database.remote_name,
    )


def table_from_thrift(table: Any) -> Table:
    """Decode a request for a table. Raises: MetaError where Hive does not take null."""
    if table is None:
        raise MetaError("Null table is not allowed")
    return Table(
        table_name_of(table.dbName, table.tableName, table.catName),
        descriptor_from_thrift(table.sd),
        table.tableType or (TableType.VIEW if table.viewOriginalText else TableType.MANAGED),
        table.owner,
        table.ownerType,
        last_access_time=table.lastAccessTime or 0,
        retention=table.retention or 0,
        partition_keys=fields_from_thrift(table.partitionKeys or []),
        parameters=_without_nulls(table.parameters),
        view_original_text=table.viewOriginalText,
        view_expanded_text=table.viewExpandedText,
        rewrite_enabled=bool(table.rewriteEnabled),
        creation_metadata=struct_to_json(table.creationMetadata) if table.creationMetadata is not None else None,
        write_id=-1 if table.writeId is None else table.writeId,
    )


def table_to_thrift(table: Table, statistics: Any = None) -> Any:
    """Encode the answer of get_table; ``statistics``: of its columns."""
    return ttypes.Table(
        tableName=table.name.table,
        dbName=table.name.db,
        owner=table.owner,
        createTime=table.create_time,
        lastAccessTime=table.last_access_time,
        retention=table.retention,
        sd=descriptor_to_thrift(table.sd),
        partitionKeys=fields_to_thrift(table.partition_keys),
        parameters=table.parameters,
        viewOriginalText=table.view_original_text,
        viewExpandedText=table.view_expanded_text,
        tableType=table.type,
        temporary=None,
        rewriteEnabled=table.rewrite_enabled,
        creationMetadata=_creation_metadata_to_thrift(table),
        catName=table.name.catalog,
        ownerType=table.owner_type or ttypes.PrincipalType.USER,
        writeId=max(table.write_id, 0),
        id=table.id,
        colStats=statistics,
    )


def _creation_metadata_to_thrift(table: Table) -> Any:
    if table.creation_metadata is None or table.type != TableType.MATERIALIZED_VIEW:
        return None
    return struct_from_json(ttypes.CreationMetadata, table.creation_metadata)


def descriptor_from_thrift(sd: Any) -> Json:
    """Decode a table's storage descriptor. Raises: MetaError where Hive does not take null."""
    if sd is None:
        raise MetaError("A table needs a storage descriptor (sd), null is not allowed")
    if sd.cols is None:
        raise MetaError("A storage descriptor needs columns (cols), null is not allowed")
    if sd.serdeInfo is None:
        raise MetaError("A storage descriptor needs serdeInfo, null is not allowed")
    fields_from_thrift(sd.cols)
    return struct_to_json(sd)


def descriptor_to_thrift(sd: Json) -> Any:
    """Encode a complete storage descriptor.

    Most of it is columns, which are encoded by fixed code.
    """
    struct = struct_from_json(ttypes.StorageDescriptor, {name: value for name, value in sd.items() if name != "cols"})
    struct.cols = fields_to_thrift(sd["cols"])
    return struct


def fields_from_thrift(fields: list[Any]) -> list[Json]:
    """Decode columns or partition keys. Raises: MetaError for a column without name or type."""
    for field in fields:
        if field.name is None or field.type is None:
            raise MetaError(f"A column needs a name and a type: {field.name!r} {field.type!r}")
    return [struct_to_json(field) for field in fields]


def fields_to_thrift(fields: list[Json]) -> list[Any]:
    """Encode columns or partition keys."""
    return [ttypes.FieldSchema(field["name"], field["type"], field.get("comment")) for field in fields]


def function_from_thrift(function: Any) -> Function:
    """Decode a request for a function. Raises: MetaError where Hive does not take null."""
    required_struct(function, "function")
    name = table_name_of(function.dbName, required_name(function.functionName, "function"), function.catName)
    if function.ownerType is None or function.functionType is None:
        raise MetaError(f"Function {name} needs an owner type and a function type")
    return Function(
        name,
        function.className or "",
        function.ownerName,
        function.ownerType,
        function.functionType,
        resource_uris=[struct_to_json(uri) for uri in function.resourceUris or []],
    )


def function_to_thrift(function: Function) -> Any:
    """Encode the answer of get_function."""
    return ttypes.Function(
        functionName=function.name.table,
        dbName=function.name.db,
        className=function.class_name,
        ownerName=function.owner,
        ownerType=function.owner_type,
        createTime=function.create_time,
        functionType=function.type,
        catName=function.name.catalog,
        resourceUris=[struct_from_json(ttypes.ResourceUri, uri) for uri in function.resource_uris],
    )


def statistics_from_thrift(statistics: Any, engine: str | None) -> list[ColumnStatistics]:
    """Decode the columns of one ColumnStatistics."""
    partition = "" if statistics.statsDesc.isTblLevel else statistics.statsDesc.partName
    return [
        ColumnStatistics(
            statistic.colName.strip().lower(),
            statistic.colType,
            struct_to_json(statistic.statsData),
            partition,
            engine or statistics.engine or "hive",
        )
        for statistic in statistics.statsObj
    ]


def statistics_to_thrift(statistics: list[ColumnStatistics]) -> list[Any]:
    """Encode one ColumnStatisticsObj for each column."""
    return [
        ttypes.ColumnStatisticsObj(
            statistic.column, statistic.type, struct_from_json(ttypes.ColumnStatisticsData, statistic.data)
        )
        for statistic in statistics
    ]


def column_statistics(
    name: TableName, statistics: list[ColumnStatistics], partition: str = "", *, is_exact: bool | None = None
) -> Any:
    """Encode statistics of one engine that a table or a partition has, of at least one column."""
    first = statistics[0]
    return ttypes.ColumnStatistics(
        ttypes.ColumnStatisticsDesc(
            not partition, name.db, name.table, partition or None, first.last_analyzed, name.catalog
        ),
        statistics_to_thrift(statistics),
        is_exact,
        first.engine,
    )


def seen_of(request: Any) -> Seen:
    """Return the sender's snapshot of the table and its write id there; neither if it sends none."""
    text, own = request.validWriteIdList, getattr(request, "writeId", None) or 0
    return Seen(ValidWriteIdList.parse(text) if text else None, own if own > 0 else None)


def _without_nulls(parameters: Mapping[str, str | None] | None) -> dict[str, str]:
    return {key: value for key, value in (parameters or {}).items() if value is not None}
