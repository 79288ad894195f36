"""Decisions about the outcome of a transaction, from the records that are left.

Rule: no outcome is claimed that is not known. A transaction without any record counts as committed only if every abort
is still on record: then it was opened (its id was allocated), it is not open, and it was not aborted.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from metastore.txns.core.rules import Operation, TxnState, TxnType


class Outcome(StrEnum):
    """The outcomes of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    NEVER_OPENED = "never_opened"
    UNKNOWN = "unknown"


class Record(NamedTuple):
    """A transaction's record, or the part of it that was kept."""

    state: TxnState
    type: TxnType
    user: str
    host: str
    agent_info: str
    started_at: datetime
    last_heartbeat_at: datetime
    heartbeat_count: int
    longest_gap: timedelta
    ended_at: datetime | None
    abort_code: int | None
    abort_reason: str | None
    commit_id: int | None

    @property
    def owner(self) -> str:
        """The opener of the transaction, for people."""
        return f"{self.user or 'unknown'}@{self.host or 'unknown'} ({self.agent_info})"


class TxnEvidence(NamedTuple):
    """All that is left of a transaction, as of one instant.

    ``wrote``: a record exists that only a commit leaves. ``skipped``: the id was skipped when ids were allocated.
    ``mark``: the highest id allocated. ``complete_above``: aborts of later transactions are all on record.
    """

    txn_id: int
    record: Record | None
    from_history: bool
    wrote: bool
    skipped: bool
    mark: int
    complete_above: int


class Answer(NamedTuple):
    """The outcome of a transaction, the evidence for it, and the instant of its end."""

    outcome: Outcome
    reason: str
    ended_at: datetime | None = None


def outcome(left: TxnEvidence) -> Answer:
    """Decide the outcome of the transaction."""
    if left.record is not None:
        return _recorded(left.record)
    if left.txn_id <= 0:
        return Answer(Outcome.NEVER_OPENED, "no transaction has this id: ids begin at 1")
    if left.txn_id > left.mark:
        return Answer(
            Outcome.NEVER_OPENED, f"no transaction has this id yet: the highest that was given out is {left.mark}"
        )
    if left.skipped:
        return Answer(
            Outcome.NEVER_OPENED,
            "no transaction has this id: it was skipped, after a crash of the database or by seed_txn_id",
        )
    if left.wrote:
        return Answer(Outcome.COMMITTED, "its record has been removed, what it committed is still listed")
    if left.txn_id > left.complete_above:
        return Answer(Outcome.COMMITTED, "its record has been removed, and had it been aborted that would be on record")
    return Answer(
        Outcome.UNKNOWN,
        "it ended so long ago that its record has been removed, and aborts are on record "
        f"only for transactions above {left.complete_above}",
    )


def _recorded(record: Record) -> Answer:
    if record.state is TxnState.OPEN:
        return Answer(
            Outcome.OPEN,
            f"open since {when(record.started_at)} for {record.owner}, last heartbeat at "
            f"{when(record.last_heartbeat_at)}",
        )
    if record.state is TxnState.ABORTED:
        return Answer(
            Outcome.ABORTED,
            f"{record.abort_reason or 'aborted, no reason was recorded'}, at {when(record.ended_at)}",
            record.ended_at,
        )
    return Answer(Outcome.COMMITTED, f"committed at {when(record.ended_at)} by {record.owner}", record.ended_at)


class LeftWrite(NamedTuple):
    """A write for which an aborted transaction is still listed. ``cleaned``: its files are gone, but more may come."""

    object: str
    write_id: int | None
    cleaned: bool
    may_publish: bool


def listed(left: Iterable[LeftWrite]) -> str | None:
    """Return the reason why snapshots still name an aborted transaction; None if they need not."""
    there = list(left)
    if not there:
        return None
    objects = ", ".join(dict.fromkeys(component.object for component in there))
    if not all(component.cleaned for component in there):
        return f"snapshots name it until the Cleaner has removed what it wrote to {objects}"
    if there[0].may_publish:
        return (
            f"snapshots name it, though its files are gone: its owner did not abort it, and may still publish in "
            f"{objects} until a major compaction there covers it. `metastore txn abort --owner-gone` says that the "
            "owner's process has ended"
        )
    return (
        "snapshots name it until a major compaction covers what may still appear, or lies among other rows, in "
        f"{objects}"
    )


class LostConflict(NamedTuple):
    """The write conflict that a transaction lost: what it wanted to change, and who had changed it."""

    winner: int
    winner_commit_id: int
    object: str
    operation: str
    winner_operation: str


_CONFLICT = re.compile(
    r"^Aborting \[txnid:\d+,\d+\] due to a write conflict on (?P<object>.*) committed by "
    r"\[txnid:(?P<winner>\d+),(?P<at>\d+)\] (?P<mine>[iudc])/(?P<theirs>[iudc])",
    re.DOTALL,
)


def conflict(reason: str | None) -> LostConflict | None:
    """Parse the conflict from an abort's reason (the inverse of ``core.rules.Conflict.message``)."""
    match = _CONFLICT.match(reason or "")
    if match is None:
        return None
    return LostConflict(
        int(match["winner"]),
        int(match["at"]),
        match["object"],
        operation_name(match["mine"]),
        operation_name(match["theirs"]),
    )


_MORE_OPERATIONS = {"w": "change", "r": "reserve"}


def operation_name(letter: str) -> str:
    """Return the word for a stored operation; two letters exist only here.

    w: an update or delete somewhere in what the transaction wrote; r: a write id and nothing declared.
    """
    return _MORE_OPERATIONS.get(letter) or Operation(letter).name.lower()


def when(at: datetime | None) -> str:
    """Format an instant for people."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if at else "an unknown time"


def appended(text: str, answer: Answer) -> str:
    """Append the known outcome of a transaction to an error's text.

    Clients match the beginning of such texts.
    """
    if answer.reason in text:
        return text
    if text.endswith("."):
        return f"{text} {answer.reason[0].upper()}{answer.reason[1:]}"
    return f"{text}: {answer.reason}"


def named(txn_ids: Iterable[int | None]) -> list[int]:
    """Return the transactions worth looking up, each once."""
    return sorted({txn_id for txn_id in txn_ids if txn_id is not None})
