"""What the job of a compaction asks before it publishes."""

from metastore.client.client import MetastoreClient
from metastore.compaction.queue.rules.requests import CompactionState
from metastore.errors import ClaimLostError
from metastore.thrift_gen.hive_metastore import ttypes


def require_claim(client: MetastoreClient, compaction_id: int, txn_id: int) -> None:
    """See that a compaction still belongs to the attempt with this transaction: open, and its claim held.

    Raises: TxnAbortedError, NoSuchTxnError, ClaimLostError, MetastoreUnreachableError.
    """
    client.heartbeat(ttypes.HeartbeatRequest(txnid=txn_id))
    shown = client.show_compact(ttypes.ShowCompactRequest(id=compaction_id)).compacts
    if not any(one.state == CompactionState.WORKING.display and one.txnId == txn_id for one in shown):
        raise ClaimLostError(
            f"Compaction {compaction_id} does not belong to transaction {txn_id} any more: what its "
            "job has written is not published"
        )
