"""A check that a transaction is still open, right before its files get names that readers look at.

Rule: the last heartbeat's answer is not enough: a process can be stopped for longer than the time-out, and continue
without noticing. An answer holds for a second; the question is a heartbeat, so the time-out begins anew.
"""

import threading
from datetime import timedelta
from time import monotonic

from metastore.backoff import doubling
from metastore.client.answers import domain_errors
from metastore.client.client import MetastoreClient, MetastoreUnreachableError
from metastore.errors import MetaError, MetastoreError
from metastore.thrift_gen.hive_metastore import ttypes

_HOLDS_S = 1.0
_FIRST_PAUSE, _LONGEST_PAUSE, _QUESTIONS = timedelta(milliseconds=100), timedelta(seconds=5), 10


class Fence:
    """The fence of a transaction. It is thread-safe."""

    def __init__(self, client: MetastoreClient, txn_id: int, asked_at: float | None = None) -> None:
        """Prepare a fence.

        ``asked_at``: monotonic time of a sent call that is answered only for an open transaction.
        """
        self._client = client
        self._request = ttypes.HeartbeatRequest(txnid=txn_id, lockid=0)
        self._asked_at = asked_at

    def require_open(self) -> None:
        """Ask the metastore, unless the last answer is young; repeat for some seconds while it is unavailable.

        Raises: TxnAbortedError, NoSuchTxnError (it has ended), MetastoreUnreachableError, MetaError (unknown): nothing
        may be published then.
        """
        if self._asked_at is not None and monotonic() - self._asked_at < _HOLDS_S:
            return
        self._asked_at = self._asked()

    def _asked(self) -> float:
        """Ask the metastore; return the time of the question that was answered."""
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
