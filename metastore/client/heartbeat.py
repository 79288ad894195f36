"""Heartbeats that keep a transaction, or a lock without a transaction, alive, and report its loss.

Rule: heartbeats travel on a connection of their own, at half of the server's hive.txn.timeout, so that a slow call of
the work never delays them. A heartbeat that does not get through is repeated sooner; when none got through for a whole
time-out, the subject counts as lost, because the server may have given it to others by then. The delay of heartbeats is
measured (``drift``): it shows that a process is starved, or was suspended.
"""

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import groupby
from time import monotonic
from types import TracebackType
from typing import Self

from metastore.client.answers import domain_errors
from metastore.client.client import MetastoreClient
from metastore.errors import MetastoreError, NoSuchLockError, NoSuchTxnError, TxnAbortedError
from metastore.telemetry.logs import get_logger
from metastore.thrift_gen.hive_metastore import ttypes

_log = get_logger(__name__)

DEFAULT_TIMEOUT = timedelta(seconds=300)
_UNITS = {"ms": "milliseconds", "s": "seconds", "": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class LostError(MetastoreError):
    """Error: the transaction or lock that the work relied on is gone.

    Results of the work since then must not be used.
    """


def txn_timeout(client: MetastoreClient) -> timedelta:
    """Return the server's hive.txn.timeout; Hive's default if it does not tell."""
    with domain_errors():
        return parse_duration(str(client.get_config_value("hive.txn.timeout", "300s")), DEFAULT_TIMEOUT)


def parse_duration(text: str, default: timedelta) -> timedelta:
    """Parse a time span as Hive writes it, a plain number being seconds; return the default if it is none."""
    match = re.fullmatch(r"\s*(\d+)\s*(ms|s|m|h|d|)[a-z]*\s*", text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else default


class Heartbeater:
    """A thread that heartbeats one transaction or one lock until it is stopped or the subject is lost."""

    def __init__(
        self,
        client: MetastoreClient,
        timeout: timedelta,
        *,
        txn_id: int = 0,
        lock_id: int = 0,
        cancel: Callable[[str], object] | None = None,
    ) -> None:
        """Prepare a heartbeater. ``client`` is cloned; ``timeout``: silence after which the server gives up.

        ``cancel``: called with the reason when the subject is lost, from the heartbeats' own thread.
        """
        self.lost = threading.Event()
        self.reason: str | None = None
        self.drift = timedelta(0)
        """How much later than planned a heartbeat left, at most."""
        self._cancel = cancel
        self._interval_s = timeout.total_seconds() / 2
        self._timeout_s = timeout.total_seconds()
        self._client = client.clone(timeout_s=max(1.0, self._interval_s / 2))
        self._request = ttypes.HeartbeatRequest(txnid=txn_id, lockid=lock_id)
        self._subject = f"Transaction {txn_id}" if txn_id else f"Lock {lock_id}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat of {self._subject.lower()}", daemon=True)

    def __enter__(self) -> Self:
        """Start the heartbeats."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the heartbeats."""
        self.stop()

    def start(self) -> None:
        """Start the thread; the first heartbeat is due after an interval."""
        self._thread.start()

    def stop(self) -> None:
        """End the heartbeats; return at once, even during a heartbeat."""
        self._stop.set()

    def check(self) -> None:
        """Raise LostError if the subject is lost."""
        if self.lost.is_set():
            raise LostError(self.reason or f"{self._subject} is lost.")

    def _run(self) -> None:
        alive_at = planned_from = monotonic()
        pause = self._interval_s
        with self._client:
            while not self._stop.wait(pause):
                sent_at = monotonic()
                self._measure(sent_at - planned_from - pause)
                try:
                    with domain_errors():
                        self._beat()
                except (NoSuchTxnError, TxnAbortedError, NoSuchLockError) as error:
                    self._lose(f"{self._subject} is lost: {error}")
                    return
                except MetastoreError as error:
                    silent_s = monotonic() - alive_at
                    if silent_s >= self._timeout_s:
                        self._lose(
                            f"{self._subject} counts as lost: for {silent_s:.0f} s no heartbeat got through "
                            f"({error}), so the metastore may have ended it."
                        )
                        return
                    pause = min(self._interval_s, max(0.05, self._timeout_s / 20))
                else:
                    alive_at = sent_at
                    pause = max(0.0, sent_at + self._interval_s - monotonic())  # A slow call does not delay the next.
                planned_from = monotonic()

    def _beat(self) -> None:
        self._client.heartbeat(self._request)

    def _measure(self, late_s: float) -> None:
        if late_s > self.drift.total_seconds():
            self.drift = timedelta(seconds=late_s)
            if late_s > self._interval_s / 2:
                _log.warning(
                    "heartbeat_late", subject=self._subject, late_s=round(late_s, 3), timeout_s=self._timeout_s
                )

    def _lose(self, reason: str) -> None:
        self.reason = reason
        self.lost.set()
        _log.warning("heartbeat_lost", subject=self._subject, reason=reason)
        if self._cancel is not None:
            self._cancel(reason)


class BatchHeartbeater(Heartbeater):
    """Heartbeats of several transactions that were opened together: one call for each run of neighbouring ids."""

    def __init__(self, client: MetastoreClient, timeout: timedelta, txn_ids: Iterable[int]) -> None:
        super().__init__(client, timeout)
        self._open = set(txn_ids)
        self._subject = f"The batch of transactions {min(self._open)} to {max(self._open)}"
        self._changes = threading.Lock()

    def finish(self, txn_id: int) -> None:
        """Stop the heartbeats of a transaction that is about to end, and ignore their failures."""
        with self._changes:
            self._open.discard(txn_id)

    def _beat(self) -> None:
        with self._changes:
            wanted = sorted(self._open)
        for low, high in _runs(wanted):
            answer = self._client.heartbeat_txn_range(ttypes.HeartbeatTxnRangeRequest(min=low, max=high))
            with self._changes:
                gone = self._open.intersection((*answer.aborted, *answer.nosuch))
            if gone:
                raise TxnAbortedError(f"Transaction txnid:{min(gone)} was ended", min(gone))


def _runs(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of consecutive numbers in ascending ``ids``."""
    for _, run in groupby(enumerate(ids), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        yield numbers[0], numbers[-1]
