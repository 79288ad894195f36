"""ACID tables made through the metastore's own interface, without Spark."""

from typing import Any

from metastore.acid.snapshots import ValidWriteIdList
from metastore.client import MetastoreClient, TxnManager

DATABASE = "d"


def create_database(client: MetastoreClient, name: str = DATABASE) -> None:
    client.create_database(client.types.Database(name=name, description="", locationUri=None, parameters={}))


def create_table(client: MetastoreClient, name: str, columns: dict[str, str], **more: Any) -> str:
    """Create a full ACID table in DATABASE and return its location without ``file:``. ``more``: as of ``full_acid``."""
    client.create_table(full_acid(client, DATABASE, name, columns, **more))
    return str(client.get_table(DATABASE, name).sd.location).removeprefix("file:").replace("///", "/")


def full_acid(client: MetastoreClient, db: str, name: str, columns: dict[str, str], *, location: str | None = None,
              keys: dict[str, str] | None = None, buckets: tuple[str, ...] = (), bucket_count: int = 0, **parameters: str) -> Any:
    """Build the argument of create_table for a full ACID table."""
    types = client.types
    fields = [types.FieldSchema(name=name_of, type=kind, comment=None) for name_of, kind in columns.items()]
    sd = types.StorageDescriptor(
        cols=fields, location=location, inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat", compressed=False,
        numBuckets=bucket_count or -1, bucketCols=list(buckets), sortCols=[], parameters={},
        serdeInfo=types.SerDeInfo(name=None, serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={}))
    return types.Table(
        tableName=name, dbName=db, owner="ann", createTime=0, lastAccessTime=0, retention=0, sd=sd,
        partitionKeys=[types.FieldSchema(name=name_of, type=kind, comment=None) for name_of, kind in (keys or {}).items()],
        parameters={"transactional": "true", "bucketing_version": "2", **parameters}, tableType="MANAGED_TABLE")


def snapshot(client: MetastoreClient, table: str) -> ValidWriteIdList:
    """Return the write ids of a table in DATABASE that a new reader may see."""
    with TxnManager(client).transaction() as txn:
        return txn.valid_write_ids([f"{DATABASE}.{table}"])[f"{DATABASE}.{table}"]
