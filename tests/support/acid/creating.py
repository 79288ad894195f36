"""ACID tables made through the metastore's own interface, without Spark."""

from metastore.acid.snapshots import ValidWriteIdList
from metastore.client import MetastoreClient, TxnManager

DATABASE = "d"


def create_database(client: MetastoreClient, name: str = DATABASE) -> None:
    client.create_database(client.types.Database(name=name, description="", locationUri=None, parameters={}))


def create_table(client: MetastoreClient, name: str, columns: dict[str, str], *, keys: dict[str, str] | None = None,
                 buckets: tuple[str, ...] = (), bucket_count: int = 0, **parameters: str) -> str:
    """A full ACID table in DATABASE; its location without ``file:``."""
    types = client.types
    fields = [types.FieldSchema(name=name_of, type=kind, comment=None) for name_of, kind in columns.items()]
    sd = types.StorageDescriptor(
        cols=fields, location=None, inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat", compressed=False,
        numBuckets=bucket_count or -1, bucketCols=list(buckets), sortCols=[], parameters={},
        serdeInfo=types.SerDeInfo(name=None, serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={}))
    client.create_table(types.Table(
        tableName=name, dbName=DATABASE, owner="ann", createTime=0, lastAccessTime=0, retention=0, sd=sd,
        partitionKeys=[types.FieldSchema(name=name_of, type=kind, comment=None) for name_of, kind in (keys or {}).items()],
        parameters={"transactional": "true", "bucketing_version": "2", **parameters}, tableType="MANAGED_TABLE"))
    return str(client.get_table(DATABASE, name).sd.location).removeprefix("file:").replace("///", "/")


def snapshot(client: MetastoreClient, table: str) -> ValidWriteIdList:
    """What a reader that comes now may see of a table in DATABASE."""
    with TxnManager(client).transaction() as txn:
        return txn.valid_write_ids([f"{DATABASE}.{table}"])[f"{DATABASE}.{table}"]
