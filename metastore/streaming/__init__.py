"""Writers of ACID tables without Spark: a streaming connection for rows that keep coming."""

from metastore.streaming.connection import Counts, State, StreamingConnection, connect
from metastore.streaming.records import Delimited, Json, RecordError

__all__ = ["Counts", "Delimited", "Json", "RecordError", "State", "StreamingConnection", "connect"]
