"""Rules of compaction requests: their states, their obstacles, their repetition and their retention.

Rule: a request moves only along ``TRANSITIONS``; while it is queued it is initiated, working or ready for cleaning,
after that it is history. At most one request of a table or partition is initiated or working.
Source: Hive's CompactionState, CompactionTxnHandler, CompactionHouseKeeper (docs/explanation/compaction.md).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

from metastore.errors import InvalidRequestError
from metastore.ids import TableName

NO_AUTO_COMPACTION = "no_auto_compaction"


class CompactionState(StrEnum):
    """The states, as stored; ``code`` and ``display`` are Hive's."""

    INITIATED = "initiated"
    WORKING = "working"
    READY_FOR_CLEANING = "ready_for_cleaning"
    FAILED = "failed"
    SUCCEEDED = "succeeded"
    DID_NOT_INITIATE = "did_not_initiate"
    REFUSED = "refused"
    ABORTED = "aborted"

    @property
    def code(self) -> str:
        """The letter that Hive stores and puts into CompactionInfoStruct."""
        return _STATE_CODES[self]

    @property
    def display(self) -> str:
        """The words of SHOW COMPACTIONS."""
        return self.value.replace("_", " ")

    @classmethod
    def parse(cls, text: str) -> "CompactionState":
        """Parse a letter or the words of SHOW COMPACTIONS, in any case.

        Raises: InvalidRequestError.
        """
        wanted = text.strip().lower()
        for state in cls:
            if wanted in (state.code, state.display, state.value):
                return state
        raise InvalidRequestError(f"No compaction state {text!r}: use one of {', '.join(s.display for s in cls)}")


class CompactionType(StrEnum):
    """The kinds of compaction, as stored; ``number`` is the wire's."""

    MINOR = "minor"
    MAJOR = "major"
    REBALANCE = "rebalance"
    ABORT_TXN_CLEANUP = "abort_txn_cleanup"

    @property
    def number(self) -> int:
        """The value of the Thrift enum."""
        return _TYPE_NUMBERS[self]

    @classmethod
    def of_number(cls, number: int) -> "CompactionType":
        """Return the kind behind a Thrift enum value.

        Raises: InvalidRequestError.
        """
        for kind, known in _TYPE_NUMBERS.items():
            if number == known:
                return kind
        raise InvalidRequestError(f"No compaction type {number}: this service does minor, major and rebalance")


_S = CompactionState
_STATE_CODES = {
    _S.INITIATED: "i",
    _S.WORKING: "w",
    _S.READY_FOR_CLEANING: "r",
    _S.FAILED: "f",
    _S.SUCCEEDED: "s",
    _S.DID_NOT_INITIATE: "a",
    _S.REFUSED: "c",
    _S.ABORTED: "x",
}
_TYPE_NUMBERS = {
    CompactionType.MINOR: 1,
    CompactionType.MAJOR: 2,
    CompactionType.REBALANCE: 3,
    CompactionType.ABORT_TXN_CLEANUP: 4,
}

ACTIVE = frozenset({_S.INITIATED, _S.WORKING})
OLD_CLIENT_TYPES = frozenset({CompactionType.MINOR, CompactionType.MAJOR})
"""The types that Hive 2.3 and 3.1 clients know; another number fails their whole SHOW COMPACTIONS."""

TRANSITIONS: dict[CompactionState | None, frozenset[CompactionState]] = {
    None: frozenset({_S.INITIATED, _S.READY_FOR_CLEANING, _S.DID_NOT_INITIATE, _S.REFUSED}),
    _S.INITIATED: frozenset({_S.WORKING, _S.ABORTED}),
    _S.WORKING: frozenset({_S.INITIATED, _S.WORKING, _S.READY_FOR_CLEANING, _S.SUCCEEDED, _S.FAILED, _S.REFUSED}),
    _S.READY_FOR_CLEANING: frozenset({_S.READY_FOR_CLEANING, _S.SUCCEEDED, _S.REFUSED, _S.FAILED}),
}

CHANNEL = "metastore_compaction_queued"
"""The channel on which PostgreSQL announces queued requests."""
NO_CLEANUP = "no_cleanup"
LOCATION = "location"
"""The property of a soft drop, or of a CREATE TABLE AS that failed: what the Cleaner removes."""
_SOFT_DROPPED = re.compile(r"\.v\d+$")


MOST_DEATHS = 5
"""The most Workers that may die at one compaction, which may be the cause: then it fails."""


OUTSIDE_CAUSES = (
    "no space left on device",
    "quota exceeded",
    "quotaexceeded",
    "read-only file system",
    "mkdirs failed to create",  # Hadoop uses these words if the file system is read-only, or a right is missing.
    "the file system refuses to",  # Our own files use these words.
    "permission denied",
    "accesscontrolexception",
    "access denied",
    "accessdenied",
    "executorlostfailure",
    "all masters are unresponsive",
    "connection refused",
    "connection reset",
    "connection timed out",
    "sockettimeoutexception",
    "unknownhostexception",
    "name or service not known",
    "no route to host",
    "safemodeexception",
    "too many open files",
    "did not answer within",
    "does not answer",
)
"""Phrases of a failure's message, in any case, whose cause lies outside of the table."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(hours=6)
"""The pauses before a compaction is tried again after a failure with such a cause."""


class Entity(NamedTuple):
    """An unpartitioned table (partition "") or one partition."""

    table: TableName
    partition: str = ""

    def __str__(self) -> str:
        """Return ``db.table`` or ``db.table/part=1``."""
        return f"{self.table}/{self.partition}" if self.partition else str(self.table)


@dataclass(frozen=True)
class Compaction:
    """A request, queued or in the history."""

    id: int
    entity: Entity
    state: CompactionState
    type: CompactionType
    properties: dict[str, str]
    pool: str | None
    number_of_buckets: int | None
    order_by: str | None
    worker_id: str | None
    worker_version: str | None
    initiator_id: str | None
    initiator_version: str | None
    run_as: str | None
    enqueued_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    cleaner_started_at: datetime | None = None
    highest_write_id: int | None = None
    txn_id: int | None = None
    next_txn_id: int | None = None
    committed_at: datetime | None = None
    hadoop_job_id: str | None = None
    error_message: str | None = None
    meta_info: str | None = None
    """The progress of its job, and the place to look at it."""
    attempt: int = 0
    heartbeat_at: datetime | None = None
    failures: int = 0
    not_before: datetime | None = None

    @property
    def abandoned_place(self) -> str | None:
        """The directory that a soft drop, or a CREATE TABLE AS that failed, left to the Cleaner; None: a compaction."""
        return self.properties.get(LOCATION) or None

    @property
    def has_files_to_clean(self) -> bool:
        """True if it has a result, and the replaced files are still to be removed."""
        return self.state is CompactionState.READY_FOR_CLEANING and self.type is not CompactionType.ABORT_TXN_CLEANUP


class Claim(NamedTuple):
    """The right to work on a request; every later write of the worker repeats it.

    ``attempt`` None: a remote worker, which knows only the request's id and its own name.
    """

    id: int
    worker_id: str | None
    attempt: int | None = None


def may_become(before: CompactionState | None, after: CompactionState) -> bool:
    """Return True if a request may go from one state to another; None is "not there yet"."""
    return after in TRANSITIONS.get(before, frozenset())


def is_active_duplicate(existing: Compaction, kind: CompactionType, current_write_id: int) -> bool:
    """Return True if a new request would repeat one that waits, runs, or finished with nothing written since.

    A rebalance has work even if nothing was written: into other buckets, or in another order. A major one has, too,
    behind a minor one, whose cleaning may wait for as long as the table keeps its past.
    """
    does_more = kind is CompactionType.REBALANCE or (
        kind is CompactionType.MAJOR and existing.type is CompactionType.MINOR
    )
    return existing.state in ACTIVE or (
        not does_more and existing.has_files_to_clean and existing.highest_write_id == current_write_id
    )


def is_stopped_by_failures(
    newest_first: Iterable[Compaction], threshold: int, retry_after: timedelta, now: datetime
) -> bool:
    """Return True if the Initiator must leave a table or partition alone.

    Its last ``threshold`` compactions all failed. It is tried again once the newest failed request is older than
    ``retry_after``; zero or less means never. Failures with an `outside_cause` do not count.
    """
    ended = [request for request in _ended(newest_first) if not _failed_outside(request)]
    latest = ended[:threshold]
    if len(latest) < threshold or any(request.state is not CompactionState.FAILED for request in latest):
        return False
    return not (retry_after > timedelta(0) and latest[0].enqueued_at + retry_after < now)


def outside_cause(message: str | None) -> str | None:
    """Return the cause outside of the table in a failure's message: full disks, lost machines, rights.

    The error of a job is a text of any kind; an unknown cause counts as the table's.
    """
    text = (message or "").lower()
    return next((cause for cause in OUTSIDE_CAUSES if cause in text), None)


class PutOff(NamedTuple):
    """The time to try a compaction again, and the cause of its failure."""

    until: datetime
    cause: str


def put_off(newest_first: Iterable[Compaction]) -> PutOff | None:
    """Return the pause after a last failure with an `outside_cause`; None: there was none.

    The pause is twice the time between the last two such failures: it doubles, so a slow failure is repeated seldom.
    """
    failed = list(takewhile(_failed_outside, _ended(newest_first)))[:2]
    ends = [request.ended_at or request.enqueued_at for request in failed]
    if not ends:
        return None
    until = ends[0] + min(max(2 * (ends[0] - ends[-1]), FIRST_PAUSE), LONGEST_PAUSE)
    return PutOff(until, outside_cause(failed[0].error_message) or "")


def _ended(newest_first: Iterable[Compaction]) -> list[Compaction]:
    """Return the requests of a history that show how compactions went."""
    return [request for request in newest_first if request.state in (CompactionState.SUCCEEDED, CompactionState.FAILED)]


def _failed_outside(request: Compaction) -> bool:
    return request.state is CompactionState.FAILED and outside_cause(request.error_message) is not None


def is_claim_dead(
    claimed: Compaction, now: datetime, lease: timedelta, worker_timeout: timedelta, txn_state: str | None
) -> str | None:
    """Return why a working request's claim is void, or None while its worker may be alive.

    Our workers renew a lease. Hive's do not, but they keep their transaction alive: once it is aborted, they are dead.
    ``txn_state``: the compaction transaction's, None if it has none (yet) or it is forgotten.
    """
    worker = claimed.worker_id or "unknown"
    if claimed.heartbeat_at is not None and is_silent(claimed, now, lease):
        return f"worker {worker} gave no sign of life for {_seconds(now - claimed.heartbeat_at)} s"
    if claimed.txn_id and txn_state == "aborted":
        return f"the transaction {claimed.txn_id} of worker {worker} was aborted"
    if claimed.started_at is not None and claimed.started_at + worker_timeout < now:
        return f"worker {worker} has been at it for {_seconds(now - claimed.started_at)} s"
    return None


def is_silent(claimed: Compaction, now: datetime, lease: timedelta) -> bool:
    """Return True if a Worker of ours has let its lease run out: it died, or its machine did."""
    return claimed.heartbeat_at is not None and claimed.heartbeat_at + lease < now


def too_deadly(deaths: int, reason: str) -> str | None:
    """Return the reason to give up a compaction whose Workers died; None if it may not be the cause."""
    if deaths < MOST_DEATHS:
        return None
    return (
        f"Its Worker died {deaths} times, the last time so: {reason}. It may need more memory than there is: see the "
        "logs of the Workers, and spark.driver.memory in metastore.compactor.spark.conf"
    )


def cleaner_retry_delay(failures: int, first: timedelta) -> timedelta:
    """Return how long the Cleaner waits after its ``failures``-th failure on a request: doubling, from ``first``."""
    return first * (1 << max(failures - 1, 0))


def is_final_failure(failures: int, max_attempts: int) -> bool:
    """Return True if the Cleaner gives up with this failure.

    ``max_attempts`` are retried, 0 means that the first is final.
    """
    return failures > max_attempts


@dataclass(frozen=True)
class Retention:
    """The amount of history that a table or partition keeps."""

    succeeded: int
    failed: int
    refused: int
    did_not_initiate: int
    timeout: timedelta

    def kept(self, state: CompactionState) -> int:
        """Return the number of rows of a state that stay.

        Hive never purges aborted requests; here they are kept like the refused.
        """
        return {
            CompactionState.SUCCEEDED: self.succeeded,
            CompactionState.FAILED: self.failed,
            CompactionState.DID_NOT_INITIATE: self.did_not_initiate,
        }.get(state, self.refused)


def expendable(newest_first: Sequence[Compaction], retention: Retention, now: datetime) -> list[int]:
    """Return the ids of one entity's history that may go.

    A row goes when enough newer rows of its state exist, or when it did not succeed, is older than the time-out and a
    newer success covers it (a major success covers everything, any other only minor requests). The only row that tells
    how far files have been removed stays, even after a failed cleaning: readers of the past check it.
    """
    gone, seen, removed_up_to = [], dict.fromkeys(CompactionState, 0), 0
    newer: set[CompactionType] = set()
    for request in newest_first:
        seen[request.state] += 1
        up_to = (request.highest_write_id or 0) if request.cleaner_started_at is not None else 0
        is_enough = seen[request.state] > retention.kept(request.state)
        if up_to <= removed_up_to and (is_enough or _is_timed_out(request, newer, retention.timeout, now)):
            gone.append(request.id)
        removed_up_to = max(removed_up_to, up_to)
        if request.state is CompactionState.SUCCEEDED:
            newer.add(request.type)
    return gone


def _is_timed_out(compaction: Compaction, newer: set[CompactionType], timeout: timedelta, now: datetime) -> bool:
    if (
        compaction.state is CompactionState.SUCCEEDED
        or (compaction.started_at or compaction.enqueued_at) + timeout >= now
    ):
        return False
    return CompactionType.MAJOR in newer or (bool(newer) and compaction.type is CompactionType.MINOR)


def is_switched_on(parameters: Mapping[str, str], key: str) -> bool:
    """Return True if a table or database property, in any spelling of its case, is true."""
    return any(name.lower() == key and value.strip().lower() == "true" for name, value in parameters.items())


def is_opted_out(of_database: Mapping[str, str], of_table: Mapping[str, str]) -> bool:
    """Return True if automatic compaction is off, by the properties of the database, or else of the table."""
    deciding = of_database if any(name.lower() == NO_AUTO_COMPACTION for name in of_database) else of_table
    return is_switched_on(deciding, NO_AUTO_COMPACTION)


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())


def is_left_by(place: tuple[str, ...] | None, homes: Iterable[tuple[str, ...] | None]) -> bool:
    """Return True if a dropped object may have left a place: one of its homes, or that with Hive's suffix ``.v7``.

    All as `metastore.roots.parts_of` gives them.
    """
    if place is None:
        return False
    plain = (*place[:-1], _SOFT_DROPPED.sub("", place[-1]))
    return any(home in {place, plain} for home in homes)
