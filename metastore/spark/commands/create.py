"""CREATE TABLE for transactional tables: Spark's own knows nothing of them, so this calls the metastore directly.

Rule: CREATE TABLE AS leaves a table with the query's rows, or no table. Its transaction holds the exclusive lock of the
name before it makes the table, so that others who take locks see it filled or not at all.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from metastore.acid.names import is_hidden
from metastore.acid_tables.serde_storage import (
    LAZY_SIMPLE,
    HiveStorage,
    require_seen_as_declared,
    serde_properties,
    stored_classes,
)
from metastore.acid_tables.table import AcidTable, HiveColumn, require_user_names, stored_as
from metastore.client import DomainClient, tables
from metastore.client.declared_constraints import arguments
from metastore.client.lock_plan import Kind, Output, Target
from metastore.errors import AlreadyExistsError, InvalidOperationError, NoSuchObjectError
from metastore.ids import TableName
from metastore.spark.commands.constraints import require_sound
from metastore.spark.read.serde_files import require_usable
from metastore.spark.sql.statements import CreateLike, CreateTable
from metastore.spark.txn.spark_txn import Work


def create_table(
    client: DomainClient, name: TableName, statement: CreateTable, owner: str, spark: SparkSession
) -> bool:
    """Create the table; False if it exists and the statement says IF NOT EXISTS. ``spark`` checks constraints' SQL.

    Raises: InvalidOperationError, AlreadyExistsError, and the metastore's other refusals.
    """
    types = client.types
    keys = {key for key, _, _ in statement.partition_columns}
    columns = [_field(types, *column) for column in statement.columns if column[0] not in keys]
    declared = {column[0]: column for column in statement.columns}
    partition_keys = [
        _field(types, *(column if column[1] else declared.get(column[0], column)))
        for column in statement.partition_columns
    ]
    if not columns:
        raise InvalidOperationError(f"CREATE TABLE {name} declares no columns.")
    require_user_names(name, [field.name.lower() for field in (*columns, *partition_keys)])
    input_format, output_format, serde = _classes(statement)
    sd = types.StorageDescriptor(
        cols=columns,
        location=statement.location,
        inputFormat=input_format,
        outputFormat=output_format,
        compressed=False,
        numBuckets=statement.bucket_count or -1,
        bucketCols=list(statement.bucket_columns),
        parameters={},
        storedAsSubDirectories=False,
        sortCols=[types.Order(name, int(ascends)) for name, ascends in statement.order],
        serdeInfo=types.SerDeInfo(
            name=None, serializationLib=serde, parameters=serde_properties(serde, statement.serde_parameters)
        ),
    )
    parameters = {"bucketing_version": "2", **statement.properties}
    if statement.comment is not None:
        parameters["comment"] = statement.comment
    _require_storable(spark, sd, parameters)
    table = tables.managed_table(client, name, owner, sd, partition_keys, parameters)
    if statement.constraints:
        hive_columns = [HiveColumn(field.name, field.type) for field in (*columns, *partition_keys)]
        require_sound(spark, name, hive_columns, statement.constraints)
    try:
        tables.create_table(client, table, *arguments(types, name, statement.constraints))
    except AlreadyExistsError:
        if statement.if_not_exists:
            return False
        raise
    return True


def create_like(client: DomainClient, name: TableName, source: TableName, statement: CreateLike, owner: str) -> None:
    """Make a table like ``source``, without its rows and constraints. Raises: as ``create_table``."""
    old = client.get_table(source.db, source.table)
    with suppress(*([AlreadyExistsError] if statement.if_not_exists else [])):
        tables.create_table_like(client, name, old, owner, statement.location, statement.properties)


def filling_locks(name: TableName, statement: CreateTable) -> list[Output]:
    """The outputs of CREATE TABLE AS, for its locks: Hive's, and an exclusive lock until the table is filled."""
    target = Target(name.db, name.table, is_dynamic=bool(statement.partition_columns))
    return [Output(target, Kind.CREATE_TABLE_AS), Output(target, Kind.EXCLUSIVE_DDL)]


def filled(work: Work, table: AcidTable, fill: Callable[[], int]) -> int:
    """The result of ``fill``; when it fails, the table, which the statement has just created, is dropped.

    Raises: InvalidOperationError where the location has files already: their rows would mix with the query's.
    """
    if any(not is_hidden(entry.path) for entry in work.files.listing(table.location)):
        _drop(work, table.name, delete_data=False)
        raise InvalidOperationError(
            f"{table.location}, where {table.name} would be, has files: CREATE TABLE AS needs "
            "an empty directory. Remove them, or give another LOCATION."
        )
    try:
        return fill()
    except BaseException as failure:
        drop_created(work, table, failure)
        raise


def drop_created(work: Work, table: AcidTable, failure: BaseException) -> None:
    """Drop the table of a failed CREATE TABLE AS, with its files. ``failure`` gets a note when the table stays.

    A lost transaction has lost its locks too: another may have written to the table, which stays then.
    """
    client, (_, db, name) = work.client, table.name
    try:
        request = client.types.GetValidWriteIdsRequest(fullTableNames=[f"{db}.{name}"])
        [valid] = client.get_valid_write_ids(request).tblValidWriteIds
        if valid.writeIdHighWaterMark > (work.txn.own_write_id(db, name) or 0):
            failure.add_note(f"{table.name} was created, and others have written to it meanwhile: it stays.")
            return
        _drop(work, table.name, delete_data=True)
    except NoSuchObjectError:
        return
    except Exception as error:  # noqa: BLE001 - the caller has to know the first failure
        failure.add_note(f"{table.name} was created, and is still there without rows: DROP TABLE it. ({error})")


def _drop(work: Work, name: TableName, *, delete_data: bool) -> None:
    """Drop the table whose name the transaction has locked."""
    types = work.client.types
    work.client.drop_table_with_environment_context(
        name.db, name.table, delete_data, types.EnvironmentContext({"txnId": str(work.txn.id)})
    )


def _classes(statement: CreateTable) -> tuple[str, str, str]:
    if statement.classes is not None:
        return *statement.classes, statement.serde or LAZY_SIMPLE
    return stored_classes(statement.file_format, statement.serde, statement.serde_parameters)


def _require_storable(spark: SparkSession, sd: Any, parameters: Mapping[str, str]) -> None:
    """Raise InvalidOperationError where Hive's classes are missing, or would give columns other types."""
    seen = require_seen_as_declared(sd.serdeInfo.serializationLib, [(column.name, column.type) for column in sd.cols])
    storage = stored_as(sd, seen, parameters)
    if isinstance(storage, HiveStorage):
        storage.require_storable("the table")
        require_usable(spark, storage)


def _field(types: Any, name: str, kind: str, comment: str | None) -> Any:
    if not kind:
        raise InvalidOperationError(f"Column {name} has no type.")
    return types.FieldSchema(name=name, type=kind, comment=comment)
