"""Steps of a transaction, each a call by itself: for a program that keeps no state of it between two steps.

Rule: the caller passes results of one step to another. ``Transaction`` takes the same steps and keeps the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList, decode_aborted_bits
from metastore.client import outcome
from metastore.client.answers import domain_errors, is_unknown_method
from metastore.client.client import MetastoreClient, MetastoreUnreachableError
from metastore.client.conflicts import lost_at_commit
from metastore.client.outcome import CommitRequest
from metastore.errors import MetaError, TxnAbortedError
from metastore.ids import TableName
from metastore.locks.rules import Operation
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.operators.ttypes import CommitBatchRequest, ReadRequest, WrittenRows
from metastore.thrift_gen.operators.ttypes import StreamBatch as SentBatch
from metastore.txns.core.rules import Snapshot, TxnType, reader_snapshot
from metastore.txns.streams.rules import StreamBatch


def open_txn(client: MetastoreClient, kind: TxnType, *, user: str, host: str, agent: str) -> int:
    """Open a transaction and return its id. The caller sends its heartbeats."""
    request = ttypes.OpenTxnRequest(num_txns=1, user=user, hostname=host, agentInfo=agent, txn_type=int(kind))
    with domain_errors():
        [txn_id] = client.open_txns(request).txn_ids
    return int(txn_id)


def heartbeat(client: MetastoreClient, txn_id: int) -> None:
    """Keep a transaction open. Raises: TxnAbortedError, NoSuchTxnError."""
    with domain_errors():
        client.heartbeat(ttypes.HeartbeatRequest(txnid=txn_id, lockid=0))


def latest_conflict(client: MetastoreClient, txn_id: int) -> int | None:
    """Return the last transaction that committed a change to an object locked by this one.

    None if the server cannot tell.
    """
    try:
        with domain_errors():
            return int(client.get_latest_txnid_in_conflict(txn_id))
    except MetaError as error:
        if not is_unknown_method(error):
            raise
        return None


def valid_txns(client: MetastoreClient, txn_id: int) -> ValidTxnList:
    """Return the snapshot that a transaction takes now."""
    with domain_errors():
        answer = client.get_open_txns_req(ttypes.GetOpenTxnsRequest(excludeTxnTypes=[ttypes.TxnType.READ_ONLY]))
    opened = list(answer.open_txns or ())
    return reader_snapshot(
        Snapshot(answer.txn_high_water_mark, opened, answer.abortedBits or b"", answer.min_open_txn), txn_id
    )


def valid_write_ids(
    client: MetastoreClient, txns: ValidTxnList | None, tables: Iterable[str]
) -> dict[str, ValidWriteIdList]:
    """Return the visible write ids of each ``db.table`` in a snapshot; None: now."""
    names = list(tables)
    request = ttypes.GetValidWriteIdsRequest(fullTableNames=names, validTxnList=txns and txns.format())
    with domain_errors():
        answers = client.get_valid_write_ids(request).tblValidWriteIds
    return {name: _write_id_list(answer) for name, answer in zip(names, answers, strict=True)}


def read_snapshot(
    client: MetastoreClient,
    txn_id: int,
    tables: Sequence[str],
    txns: ValidTxnList | None = None,
    *,
    has_said: bool = False,
) -> tuple[ValidTxnList, dict[str, ValidWriteIdList], bool]:
    """Return the snapshot of a transaction that reads only these tables; the cleaning of others does not wait for it.

    ``tables``: ``db.table``, including all that it has read so far; ``txns``: its snapshot, if it has one.
    ``has_said``, and the last item of the answer: True if a call has declared tables to the metastore. A metastore
    without such a call still gives a snapshot; the cleaning of all tables then waits for the transaction.
    Raises: TxnAbortedError, NoSuchTxnError; MetaError if a table was cleaned without waiting for it, or may be.
    """
    try:
        with domain_errors():
            answer = client.metastore_read_snapshot(ReadRequest(txn_id, list(tables), txns and txns.format()))
    except MetaError as error:
        if not is_unknown_method(error):
            raise
        if has_said:
            raise MetaError(
                f"Transaction {txn_id} has said what it reads, and this metastore, of an older release, cannot be told "
                f"that it reads {', '.join(tables)} now: files that it needs might be removed. Start again."
            ) from error
        txns = txns or valid_txns(client, txn_id)
        return txns, valid_write_ids(client, txns, tables), False
    lists = map(_write_id_list, answer.tblValidWriteIds)
    return ValidTxnList.parse(answer.validTxnList), dict(zip(tables, lists, strict=True)), True


def valid_write_ids_at(client: MetastoreClient, name: TableName, at: datetime) -> ValidWriteIdList:
    """Return the write ids committed to a table at an instant.

    Raises: InvalidOperationError for a point that is not on record, or still to come.
    """
    with domain_errors():
        answer = client.metastore_valid_write_ids_at(name.catalog, name.db, name.table, int(at.timestamp() * 1000))
    return _write_id_list(answer)


def allocate_write_id(client: MetastoreClient, txn_id: int, db: str, table: str) -> int:
    """Return the write id of a transaction for a table: the same each time."""
    request = ttypes.AllocateTableWriteIdsRequest(dbName=db, tableName=table, txnIds=[txn_id])
    with domain_errors():
        [pair] = client.allocate_table_write_ids(request).txnToWriteIds
    return int(pair.writeId)


def add_dynamic_partitions(
    client: MetastoreClient,
    txn_id: int,
    write_id: int,
    db: str,
    table: str,
    partitions: Sequence[str],
    operation: Operation,
) -> None:
    """Report the partitions that a dynamic write has written; an empty list if none."""
    request = ttypes.AddDynamicPartitions(
        txnid=txn_id,
        writeid=write_id,
        dbname=db,
        tablename=table,
        partitionnames=list(partitions),
        operationType=getattr(ttypes.DataOperationType, operation.name),
    )
    with domain_errors():
        client.add_dynamic_partitions(request)


def note_rows(client: MetastoreClient, txn_id: int, rows: Iterable[tuple[TableName, int, int]]) -> None:
    """Report the row counts of an open transaction by table, for their history.

    No work waits for it: if no metastore answers, or an older release has no such call, the counts are lost.
    """
    written = [WrittenRows(name.catalog, name.db, name.table, inserted, deleted) for name, inserted, deleted in rows]
    try:
        with domain_errors():
            client.metastore_note_rows(txn_id, written)
    except MetastoreUnreachableError:
        return
    except MetaError as error:
        if not is_unknown_method(error):
            raise


def commit_request(
    txn_id: int, kind: TxnType, *, is_vouched: bool, batch: tuple[TableName, StreamBatch] | None = None
) -> CommitRequest:
    """Return a request; ``is_vouched``: the snapshot was taken under exclusive locks of all changed objects.

    ``batch``: the batch of a streaming query, recorded with the table.
    """
    if batch is None:
        return ttypes.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=is_vouched, txn_type=int(kind))
    name, sent = batch
    return CommitBatchRequest(
        txnid=txn_id, exclWriteEnabled=is_vouched, batch=SentBatch(name.catalog, name.db, name.table, *sent)
    )


def commit(client: MetastoreClient, request: CommitRequest) -> None:
    """Commit; see ``outcome.commit``. Raises: also WriteConflictError, which names the winner."""
    try:
        outcome.commit(client, request)
    except TxnAbortedError as error:
        conflict = lost_at_commit(client, request.txnid, error)
        if conflict is None:
            raise
        raise conflict from error


def _write_id_list(answer: ttypes.TableValidWriteIds) -> ValidWriteIdList:
    invalid = tuple(answer.invalidWriteIds)
    return ValidWriteIdList(
        answer.fullTableName,
        answer.writeIdHighWaterMark,
        answer.minOpenWriteId or None,
        invalid,
        decode_aborted_bits(invalid, answer.abortedBits or b""),
    )
