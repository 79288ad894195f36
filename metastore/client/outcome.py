"""The end of a transaction whose answers got lost: the metastore is asked for the outcome, nothing is guessed.

Rule: a commit counts as done only when the metastore says so, and as not done only when the transaction is aborted. An
open transaction proves nothing: the first commit may still be on its way. So the commit is sent again, because a commit
of a committed transaction changes nothing; and if that fails the transaction is aborted, for good. After a commit was
sent, files of the transaction are removed only after such an abort, and not if the abort finds a commit (ADR 0035).
"""

import threading
from datetime import timedelta
from time import monotonic
from typing import TypeAlias

from metastore.backoff import doubling
from metastore.client.answers import domain_errors, is_unknown_method
from metastore.client.client import AnswerLostError, MetastoreClient, MetastoreUnreachableError
from metastore.errors import MetaError, MetastoreError, NoSuchTxnError, TxnAbortedError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.operators.ttypes import CommitBatchRequest
from metastore.txns.core.rules import AbortCode
from metastore.txns.history.rules import Answer, Outcome

CommitRequest: TypeAlias = ttypes.CommitTxnRequest | CommitBatchRequest

_FIRST_PAUSE, _LONGEST_PAUSE, _QUESTIONS = timedelta(milliseconds=100), timedelta(seconds=5), 10
_HOLDS_S = 1.0


class Fence:
    """The fence of a transaction, for several threads. An answer holds for a second, and is a heartbeat as well."""

    def __init__(self, client: MetastoreClient, txn_id: int, asked_at: float | None = None) -> None:
        """``asked_at``: when, by ``monotonic``, a call was sent that is answered only for an open transaction."""
        self._client = client
        self._request = ttypes.HeartbeatRequest(txnid=txn_id, lockid=0)
        self._asked_at = asked_at

    def require_open(self) -> None:
        """Ask the metastore, unless the last answer is young; repeats for some seconds while it is away.

        Raises: TxnAbortedError, NoSuchTxnError (it has ended), MetastoreUnreachableError, MetaError (unknown): nothing
        may be published then.
        """
        if self._asked_at is not None and monotonic() - self._asked_at < _HOLDS_S:
            return
        self._asked_at = self._asked()

    def _asked(self) -> float:
        """Return the time of the question that was answered."""
        pause = threading.Event()
        failure: MetastoreError | None = None
        for delay in doubling(_FIRST_PAUSE, _LONGEST_PAUSE, _QUESTIONS):
            if failure is not None:
                pause.wait(delay.total_seconds())
            asked_at = monotonic()
            try:
                with domain_errors():
                    self._client.heartbeat(self._request)
            except (MetastoreUnreachableError, MetaError) as error:
                failure = error
            else:
                return asked_at
        assert failure is not None  # noqa: S101 - every question failed
        raise failure


def outcome_of(client: MetastoreClient, txn_id: int) -> Answer:
    """Return the outcome of a transaction, with its evidence.

    Raises: MetastoreUnreachableError; MetaError if the metastore is another product, which has no such call.
    """
    with domain_errors():
        answer = client.metastore_txn_outcome(txn_id)
    return Answer(Outcome(answer.outcome), answer.reason)


def commit(client: MetastoreClient, request: CommitRequest) -> None:
    """Commit a transaction; if the answer is lost, find out the outcome.

    Raises: TxnAbortedError; MetaError (refused, and aborted then); NoSuchTxnError (its outcome is no longer on record);
    MetastoreUnreachableError (nothing was sent); AnswerLostError (it may be committed, and no server could be asked);
    for a streaming query's batch also AlreadyExistsError, InvalidOperationError and NoSuchObjectError: then the
    transaction is still open.
    """
    failure: MetastoreError | None = None
    pause = threading.Event()
    for delay in doubling(_FIRST_PAUSE, _LONGEST_PAUSE, _QUESTIONS):
        try:
            _send(client, request)
        except (MetastoreUnreachableError, NoSuchTxnError, MetaError) as error:
            was_sent = failure is not None or type(error) is not MetastoreUnreachableError
            if was_sent and is_committed(client, request.txnid, error):
                return
            if not was_sent or isinstance(error, NoSuchTxnError):
                raise
            is_refused = isinstance(error, MetaError) and str(error) == str(failure)
            failure = error
            if is_refused:
                break
            pause.wait(delay.total_seconds())
        else:
            return
    if failure is not None:
        _give_up(client, request.txnid, failure)


def _give_up(client: MetastoreClient, txn_id: int, failure: MetastoreError) -> None:
    """Abort, and raise the failure; return if the abort finds a commit."""
    try:
        abort(client, txn_id)
    except NoSuchTxnError as error:
        if not is_committed(client, txn_id, error):
            raise
    except MetastoreError as error:
        raise _in_doubt(txn_id, error) from failure
    else:
        raise failure


def abort(client: MetastoreClient, txn_id: int, code: AbortCode = AbortCode.ROLLBACK) -> None:
    """Abort a transaction after a commit was sent: when this returns it never becomes committed.

    The first call waits for the disk, so that no crash of the database reopens the transaction for a commit that is
    still on its way; the second returns what the first found. Both wait for a commit in progress.
    Raises: NoSuchTxnError (it is committed, or not on record any more), MetaError, MetastoreUnreachableError.
    """
    with domain_errors():
        client.abort_txns(ttypes.AbortTxnsRequest(txn_ids=[txn_id], errorCode=int(code)))
        client.abort_txn(ttypes.AbortTxnRequest(txnid=txn_id, errorCode=int(code)))


def _send(client: MetastoreClient, request: CommitRequest) -> None:
    with domain_errors():
        if isinstance(request, CommitBatchRequest):
            client.metastore_commit_batch(request)
        else:
            client.commit_txn(request)


def is_committed(client: MetastoreClient, txn_id: int, cause: MetastoreError) -> bool:
    """Return True if the transaction is committed; False may mean that the commit is still on its way.

    Another product's metastore does not tell.
    Raises: TxnAbortedError; AnswerLostError if no server can be asked.
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
    raise _in_doubt(txn_id, cause) from cause


def _in_doubt(txn_id: int, cause: MetastoreError) -> AnswerLostError:
    return AnswerLostError(
        f"Transaction {txn_id} may or may not have been committed, and no metastore answers the question any more: "
        f"`metastore txn outcome {txn_id}` tells. ({cause})"
    )
