"""Commits whose answer got lost: ask what became of the transaction, instead of guessing or committing blindly again.

Rule: a commit counts as done only when the metastore says so. It is sent a second time only when the answer was lost
and the metastore says that the transaction is still open; should the first one be on its way yet, the two are one,
because a commit of a committed transaction changes nothing.
"""

import threading
from datetime import timedelta
from typing import TypeAlias

from metastore.backoff import doubling
from metastore.client.answers import domain_errors, is_unknown_method
from metastore.client.client import AnswerLostError, MetastoreClient, MetastoreUnreachableError
from metastore.errors import MetaError, MetastoreError, NoSuchTxnError, TxnAbortedError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.operators.ttypes import CommitBatchRequest
from metastore.txns.history_rules import Answer, Outcome

CommitRequest: TypeAlias = ttypes.CommitTxnRequest | CommitBatchRequest

_FIRST_PAUSE, _LONGEST_PAUSE, _QUESTIONS = timedelta(milliseconds=100), timedelta(seconds=5), 10


def outcome_of(client: MetastoreClient, txn_id: int) -> Answer:
    """What became of a transaction, and how that is known.

    Raises: MetastoreUnreachableError; MetaError when the metastore is another product, which cannot be asked.
    """
    with domain_errors():
        told = client.metastore_txn_outcome(txn_id)
    return Answer(Outcome(told.outcome), told.reason)


def commit(client: MetastoreClient, request: CommitRequest) -> None:
    """Commit a transaction, and find out whether it was done where the answer does not say.

    Raises: TxnAbortedError, NoSuchTxnError, MetaError (not done), MetastoreUnreachableError (nothing was sent),
    AnswerLostError (it may have been done, and nobody could be asked); of a streaming query's batch also
    AlreadyExistsError, InvalidOperationError and NoSuchObjectError: then the transaction is still open.
    """
    try:
        _send(client, request)
    except AnswerLostError as lost:
        if _is_committed(client, request.txnid, lost):
            return
        try:
            _send(client, request)
        except (AnswerLostError, NoSuchTxnError, MetaError) as again:
            if not _is_committed(client, request.txnid, again):
                raise
    except (NoSuchTxnError, MetaError) as error:  # also: the server itself lost the answer of its database
        if not _is_committed(client, request.txnid, error):
            raise


def _send(client: MetastoreClient, request: CommitRequest) -> None:
    with domain_errors():
        if isinstance(request, CommitBatchRequest):
            client.metastore_commit_batch(request)
        else:
            client.commit_txn(request)


def _is_committed(client: MetastoreClient, txn_id: int, cause: MetastoreError) -> bool:
    """Whether the transaction is committed; of another product's metastore: not that anybody knew.

    Raises: TxnAbortedError; AnswerLostError when nobody can be asked.
    """
    pause = threading.Event()
    for delay in doubling(_FIRST_PAUSE, _LONGEST_PAUSE, _QUESTIONS):
        try:
            answer = outcome_of(client, txn_id)
        except MetastoreUnreachableError:
            pause.wait(delay.total_seconds())
        except MetaError as error:
            if is_unknown_method(error):
                return False
            pause.wait(delay.total_seconds())
        else:
            if answer.outcome is Outcome.ABORTED:
                raise TxnAbortedError(f"Transaction txnid:{txn_id} already aborted: {answer.reason}", txn_id) from cause
            return answer.outcome is Outcome.COMMITTED
    raise AnswerLostError(
        f"Transaction {txn_id} may or may not have been committed, and no metastore answers the question any more: "
        f"`metastore txn outcome {txn_id}` tells. ({cause})") from cause
