"""Writing ACID tables without Spark: a streaming connection for rows that keep coming, and changes by row ids."""

from metastore.streaming.connection import Counts, State, StreamingConnection, connect
from metastore.streaming.mutation import Mutation, MutationWorker, Ticket, Written, mutate
from metastore.streaming.records import Delimited, Json, RecordError

__all__ = [
    "Counts",
    "Delimited",
    "Json",
    "Mutation",
    "MutationWorker",
    "RecordError",
    "State",
    "StreamingConnection",
    "Ticket",
    "Written",
    "connect",
    "mutate",
]
