"""Timestamps finer than Spark's, as only other engines write them."""

from pathlib import Path

import pyorc

from metastore.acid.bucket import encode

_EVENT = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          "row:struct<id:int,at:timestamp,note:string>>")


def insert_nanoseconds(session, name):
    """Into a table (id INT, at TIMESTAMP, note STRING) with one write id: rows 2, with nanoseconds, and 3, without."""
    db, table = name.split(".")
    client, types = session.client, session.client.types
    place = Path(client.get_table(db, table).sd.location.removeprefix("file:").replace("///", "/"))
    [txn_id] = client.open_txns(types.OpenTxnRequest(num_txns=1, user="other", hostname="engine")).txn_ids
    client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(dbName=db, tableName=table, txnIds=[txn_id]))
    delta = place / "delta_0000002_0000002_0000"
    delta.mkdir()
    with (delta / "bucket_00000").open("wb") as out, pyorc.Writer(
            out, _EVENT, converters={pyorc.TypeKind.TIMESTAMP: _Nanoseconds}) as writer:
        times = [(1577836800, 123456789), (1577836800, 123456000)]
        writer.writerows((0, 2, encode(0), row, 2, (row + 2, at, "y")) for row, at in enumerate(times))
        writer.set_user_metadata(**{"hive.acid.stats": b"2,0,0"})
    client.commit_txn(types.CommitTxnRequest(txnid=txn_id))


class _Nanoseconds(pyorc.converters.ORCConverter):
    """Timestamps as pairs of seconds and nanoseconds."""

    @staticmethod
    def from_orc(seconds, nanoseconds, timezone):
        return seconds, nanoseconds

    @staticmethod
    def to_orc(obj, timezone):
        return obj
