"""Whether a transaction is open, and how it ends when answers get lost: the metastore is asked, nothing is guessed.

Rules: right before files get names that readers look at, the last heartbeat's answer is not enough: a process can be
stopped for longer than the time-out, and goes on without noticing. A commit counts as done only when the metastore says
so, and as not done only when the transaction is aborted. That it is open says nothing: the first commit may be on its
way yet. So it is sent again, because a commit of a committed transaction changes nothing; and where that leads nowhere
the transaction is aborted, for good. Whoever removes files of a transaction that he has sent a commit of does it after
such an abort, and not when that has met a commit (ADR 0035).
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
    """Return what became of a transaction, and how that is known.

    Raises: MetastoreUnreachableError; MetaError when the metastore is another product, which cannot be asked.
    """
    with domain_errors():
        answer = client.metastore_txn_outcome(txn_id)
    return Answer(Outcome(answer.outcome), answer.reason)


def commit(client: MetastoreClient, request: CommitRequest) -> None:
    """Commit a transaction, and find out whether it was done where the answer does not say.

    Raises: TxnAbortedError; MetaError (refused, and aborted then); NoSuchTxnError (what became of it is not on record
    any more); MetastoreUnreachableError (nothing was sent); AnswerLostError (it may have been done, and nobody could be
    asked); of a streaming query's batch also AlreadyExistsError, InvalidOperationError and NoSuchObjectError: then the
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
    """Abort, and raise the failure; nothing when the abort meets a commit."""
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
    """Abort a transaction that a commit was sent of: when this returns it never becomes committed.

    The first call waits for the disk, so that no crash of the database gives the transaction back to a commit that is
    still on its way; the second tells what the first met. Both wait for a commit that is being carried out.
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
    """Whether the transaction is committed; if not, it may be on its way. Another product's metastore does not say.

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
    raise _in_doubt(txn_id, cause) from cause


def _in_doubt(txn_id: int, cause: MetastoreError) -> AnswerLostError:
    return AnswerLostError(
        f"Transaction {txn_id} may or may not have been committed, and no metastore answers the question any more: "
        f"`metastore txn outcome {txn_id}` tells. ({cause})"
    )
