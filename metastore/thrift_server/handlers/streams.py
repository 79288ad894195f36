"""Our own calls for streaming queries: decode, ask the service, encode."""

from __future__ import annotations

from metastore.errors import InvalidRequestError
from metastore.ids import TableName, table_name
from metastore.thrift_gen.operators import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.txns.commit.service import CommitRequest, CommitService
from metastore.txns.streams.rules import StreamBatch, StreamPosition


class StreamHandlers:
    """The commits of streaming queries' batches."""

    def __init__(self, commits: CommitService) -> None:
        """Prepare the handlers. ``commits`` does the work."""
        self._commits = commits

    def metastore_stream_positions(
        self, call: Call, catalog: str | None, db: str | None, table: str | None
    ) -> list[ttypes.StreamPosition]:
        """Return the position of each query in a table."""
        name = _table(catalog, db, table)
        call.log(table=str(name))
        return [_position(name, position) for position in self._commits.stream_positions(name)]

    def metastore_commit_batch(self, call: Call, request: ttypes.CommitBatchRequest | None) -> None:
        """Commit a transaction and record its batch."""
        commit = _commit(call, request)
        [error] = self._commits.commit_txn([commit])
        if error is not None:
            raise error


def _commit(call: Call, request: ttypes.CommitBatchRequest | None) -> CommitRequest:
    if request is None or request.batch is None or request.txnid is None:
        raise InvalidRequestError("The request names no transaction, or no batch")
    sent = request.batch
    call.log(txn_id=request.txnid, query_id=sent.queryId, batch_id=sent.batchId)
    if sent.batchId is None:
        raise InvalidRequestError("batchId is not set")
    batch = StreamBatch(sent.queryId or "", sent.batchId, sent.plan or "").required()
    return CommitRequest(
        request.txnid, request.exclWriteEnabled, batch=(_table(sent.catName, sent.dbname, sent.tablename), batch)
    )


def _table(catalog: str | None, db: str | None, table: str | None) -> TableName:
    if not db or not table:
        raise InvalidRequestError("The request needs the name of a database and of a table")
    return table_name(db, table, catalog)


def _position(name: TableName, position: StreamPosition) -> ttypes.StreamPosition:
    return ttypes.StreamPosition(
        batch=ttypes.StreamBatch(name.catalog, name.db, name.table, *position.batch),
        txnid=position.txn_id,
        committedAt=int(position.at.timestamp() * 1000),
    )
