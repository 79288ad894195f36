"""Positions of streaming queries: the last batch of each in a table."""

from datetime import UTC, datetime

from metastore.client.answers import domain_errors
from metastore.client.client import MetastoreClient
from metastore.ids import TableName
from metastore.txns.streams.rules import StreamBatch, StreamPosition, is_repetition


def positions(client: MetastoreClient, name: TableName) -> list[StreamPosition]:
    """Return the last batch of each streaming query in a table, the latest first."""
    with domain_errors():
        listed = client.metastore_stream_positions(name.catalog, name.db, name.table)
    return [
        StreamPosition(
            StreamBatch(position.batch.queryId, position.batch.batchId, position.batch.plan),
            position.txnid,
            datetime.fromtimestamp(position.committedAt / 1000, UTC),
        )
        for position in listed
    ]


def has_batch(client: MetastoreClient, name: TableName, batch: StreamBatch) -> bool:
    """Return True if a table has a batch already. Raises: InvalidOperationError if the query was set back."""
    known = {position.batch.query_id: position for position in positions(client, name)}
    return is_repetition(known.get(batch.query_id), batch)
