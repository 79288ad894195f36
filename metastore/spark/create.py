"""CREATE TABLE for transactional tables: Spark's own knows nothing of them, so the metastore is asked directly."""

from typing import Any

from metastore.client import MetastoreClient
from metastore.errors import InvalidOperationError
from metastore.ids import TableName
from metastore.spark.statements import CreateTable

_ORC = "org.apache.hadoop.hive.ql.io.orc"


def create_table(client: MetastoreClient, name: TableName, statement: CreateTable, owner: str) -> bool:
    """Create the table; False if it exists and the statement says IF NOT EXISTS.

    Raises: InvalidOperationError, and the metastore's own refusals.
    """
    types = client.types
    keys = {key for key, _, _ in statement.partition_columns}
    columns = [_field(types, *column) for column in statement.columns if column[0] not in keys]
    declared = {column[0]: column for column in statement.columns}
    partition_keys = [_field(types, *(column if column[1] else declared.get(column[0], column)))
                      for column in statement.partition_columns]
    if not columns:
        raise InvalidOperationError(f"CREATE TABLE {name} declares no columns.")
    sd = types.StorageDescriptor(
        cols=columns, location=statement.location, inputFormat=f"{_ORC}.OrcInputFormat",
        outputFormat=f"{_ORC}.OrcOutputFormat", compressed=False, numBuckets=statement.bucket_count or -1,
        bucketCols=list(statement.bucket_columns), sortCols=[], parameters={}, storedAsSubDirectories=False,
        serdeInfo=types.SerDeInfo(name=None, serializationLib=f"{_ORC}.OrcSerde", parameters={}))
    parameters = {"bucketing_version": "2", **statement.properties}
    if statement.comment is not None:
        parameters["comment"] = statement.comment
    table = types.Table(
        tableName=name.table, dbName=name.db, owner=owner, createTime=0, lastAccessTime=0, retention=0, sd=sd,
        partitionKeys=partition_keys, parameters=parameters, tableType="MANAGED_TABLE")
    try:
        client.create_table(table)
    except types.AlreadyExistsException:
        if statement.if_not_exists:
            return False
        raise
    return True


def _field(types: Any, name: str, kind: str, comment: str | None) -> Any:
    if not kind:
        raise InvalidOperationError(f"Column {name} has no type.")
    return types.FieldSchema(name=name, type=kind, comment=comment)
