"""Keeps a transaction, or a lock without one, alive, and tells the work when it is lost.

Rule: heartbeats travel on a connection of their own, at half of the server's hive.txn.timeout, so that a slow call of
the work never delays them. A heartbeat that does not get through is repeated sooner; when none got through for a whole
time-out, the subject counts as lost, because the server may have given it to others by then.
"""

import re
import threading
from datetime import timedelta
from time import monotonic
from types import TracebackType
from typing import Self

from metastore.client.answers import domain_errors
from metastore.client.client import MetastoreClient
from metastore.errors import MetastoreError, NoSuchLockError, NoSuchTxnError, TxnAbortedError
from metastore.thrift_gen.hive_metastore import ttypes

DEFAULT_TIMEOUT = timedelta(seconds=300)
_UNITS = {"ms": "milliseconds", "s": "seconds", "": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class LostError(MetastoreError):
    """The transaction or lock that the work relied on is gone; what the work did since must not be used."""


def txn_timeout(client: MetastoreClient) -> timedelta:
    """What the server says about hive.txn.timeout; Hive's default if it does not say."""
    with domain_errors():
        text = client.get_config_value("hive.txn.timeout", "300s")
    found = re.fullmatch(r"\s*(\d+)\s*(ms|s|m|h|d|)[a-z]*\s*", str(text))
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else DEFAULT_TIMEOUT


class Heartbeater:
    """A thread that heartbeats one transaction or one lock until it is stopped or the subject is lost."""

    def __init__(self, client: MetastoreClient, timeout: timedelta, *, txn_id: int = 0, lock_id: int = 0) -> None:
        """``client`` is cloned; ``timeout``: after how long without heartbeats the server gives up."""
        self.lost = threading.Event()
        self.reason: str | None = None
        self._interval_s = timeout.total_seconds() / 2
        self._timeout_s = timeout.total_seconds()
        self._client = client.clone(timeout_s=max(1.0, self._interval_s / 2))
        self._request = ttypes.HeartbeatRequest(txnid=txn_id, lockid=lock_id)
        self._subject = f"Transaction {txn_id}" if txn_id else f"Lock {lock_id}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat of {self._subject.lower()}", daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Stop."""
        self.stop()

    def start(self) -> None:
        """Begin; the first heartbeat is due after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """End the heartbeats; returns at once, also while one is under way."""
        self._stop.set()

    def check(self) -> None:
        """Raise LostError if the subject is lost."""
        if self.lost.is_set():
            raise LostError(self.reason or f"{self._subject} is lost.")

    def _run(self) -> None:
        alive_at = monotonic()
        pause = self._interval_s
        with self._client:
            while not self._stop.wait(pause):
                sent_at = monotonic()
                try:
                    with domain_errors():
                        self._client.heartbeat(self._request)
                except (NoSuchTxnError, TxnAbortedError, NoSuchLockError) as error:
                    self._lose(f"{self._subject} is lost: {error}")
                    return
                except MetastoreError as error:
                    silent_s = monotonic() - alive_at
                    if silent_s >= self._timeout_s:
                        self._lose(f"{self._subject} counts as lost: for {silent_s:.0f} s no heartbeat got through "
                                   f"({error}), so the metastore may have ended it.")
                        return
                    pause = min(self._interval_s, max(0.05, self._timeout_s / 20))
                else:
                    alive_at = sent_at
                    pause = self._interval_s

    def _lose(self, reason: str) -> None:
        self.reason = reason
        self.lost.set()
