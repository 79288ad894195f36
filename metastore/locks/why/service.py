"""Explanations of waits: the blockers, since when and until when they block, and the remedy."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from metastore.config import TxnSettings
from metastore.db.engine import Database
from metastore.ids import DatabaseName, TableName
from metastore.locks.rules import Lock, LockObject, overlaps
from metastore.locks.why import rules as why
from metastore.locks.why import store as why_store
from metastore.locks.why.rules import Owner
from metastore.locks.why.store import OwnerInfo, Times
from metastore.txns.core.rules import TxnType
from metastore.txns.history.rules import when


class Question(NamedTuple):
    """The subject of a question: a lock request, a transaction or a table."""

    lock_id: int = 0
    txn_id: int = 0
    table: TableName | None = None

    def includes(self, lock: Lock) -> bool:
        """Return True if the question is about the lock. For a table: every lock on it, in it and above it."""
        if self.table is not None:
            return overlaps(lock.object, LockObject(*self.table))
        return lock.ext_id == self.lock_id if self.lock_id else bool(self.txn_id) and lock.txn_id == self.txn_id

    def __str__(self) -> str:
        """Format the question for people."""
        if self.table is not None:
            return f"table {self.table}"
        return f"lock {self.lock_id}" if self.lock_id else f"transaction {self.txn_id}"


class Claim(NamedTuple):
    """A lock that an owner wants, or holds against other owners of the walk."""

    lock: Lock
    times: Times


class Explained(NamedTuple):
    """An owner.

    ``waits_for``: places in the list of all; ``expires_in``: the time until it may be ended if it stays silent.
    """

    owner: Owner
    info: OwnerInfo
    age: timedelta
    silence: timedelta
    expires_in: timedelta
    ends_with: str
    claims: list[Claim]
    waits_for: list[int]
    is_root: bool
    in_cycle: bool
    asked: bool


class Explanation(NamedTuple):
    """The answer: owners in the order of the walk, and the whole of it in a sentence."""

    found: bool
    blocked: bool
    owners: list[Explained]
    text: str


@dataclass(frozen=True)
class WhyService:
    """The service that explains waits."""

    db: Database
    settings: TxnSettings
    orphan_timeout: timedelta = timedelta(0)
    not_before: datetime | None = None
    """Until then nothing expires: a server that has just started gives its clients time to come back."""

    def explain(self, question: Question) -> Explanation:
        """Walk from the locks in question to the owners that have to end first."""
        waits = why_store.select_waits(self.db, question.lock_id, question.txn_id, question.table)
        steps = why.walk(waits.locks, question.includes)
        if not steps or waits.at is None:
            return Explanation(found=False, blocked=False, owners=[], text=_nothing(question))
        places = {step.owner: place for place, step in enumerate(steps)}
        subjects = {why.owner_of(lock) for lock in waits.locks if question.includes(lock)}
        owners = [
            self._explained(
                step, waits.owners[step.owner], waits.times, places, waits.at, in_question=step.owner in subjects
            )
            for step in steps
        ]
        blocked = any(owner.waits_for for owner in owners if owner.asked)
        return Explanation(
            found=True, blocked=blocked, owners=owners, text=_sentence(question, owners, blocked=blocked)
        )

    def _explained(
        self,
        step: why.WalkStep,
        info: OwnerInfo,
        times: dict[Lock, Times],
        places: dict[Owner, int],
        now: datetime,
        *,
        in_question: bool,
    ) -> Explained:
        replicated = info.txn_type is TxnType.REPL_CREATED
        timeout = self.settings.repl_timeout if replicated else self.settings.timeout
        owner = step.owner
        return Explained(
            owner,
            info,
            now - info.since,
            now - info.last_heartbeat_at,
            self._expiry(info, timeout) - now,
            f"metastore txn abort {owner.txn_id}" if owner.txn_id else f"metastore lock release {owner.ext_id}",
            [Claim(lock, times[lock]) for lock in dict.fromkeys((*step.wanted, *step.held))],
            [places[blocker] for blocker in step.waits_for],
            step.is_root,
            step.in_cycle,
            in_question,
        )

    def _expiry(self, info: OwnerInfo, timeout: timedelta) -> datetime:
        """Return when a silent owner may be ended; orphans end sooner, if that is configured."""
        regular = info.last_heartbeat_at + timeout
        if self.not_before is not None:
            regular = max(regular, self.not_before)
        if not self.orphan_timeout or info.orphaned_at is None:
            return regular
        return min(regular, info.orphaned_at + self.orphan_timeout)


def _nothing(question: Question) -> str:
    if question.table is not None:
        return f"Nobody holds a lock on {question} or waits for one."
    if question.lock_id:
        return f"There is no {question}: it was released, or it ended with its transaction, or it expired."
    return (
        f"Transaction {question.txn_id} has no locks and waits for none; `metastore txn explain {question.txn_id}` "
        "tells more."
    )


def _sentence(question: Question, owners: list[Explained], *, blocked: bool) -> str:
    cycle = [owner for owner in owners if owner.in_cycle]
    if cycle:
        return (
            f"{_capital(question)} is behind a deadlock of {', '.join(_name(member) for member in cycle)}: they wait "
            f"for each other, so one of them has to be ended (`{cycle[0].ends_with}`)."
        )
    if not blocked:
        holders = ", ".join(f"{_name(owner)}" for owner in owners)
        return (
            f"{_capital(question)} is held by {holders}."
            if question.table
            else f"{_capital(question)} waits for nobody."
        )
    roots = [owner for owner in owners if owner.is_root and not (owner.asked and question.table is None)]
    return f"{_capital(question)} waits for {', '.join(map(_described, roots))}."


def _described(explained: Explained) -> str:
    """Describe an owner that has to end first: its lock, its expiry, and the command that ends it."""
    claims = [
        f"{'holds' if times.acquired_at else 'wants'} {lock.type.upper()} on {place(lock.object)} since "
        f"{when(times.acquired_at or times.requested_at)}"
        for lock, times in explained.claims[:1]
    ]
    seconds = explained.expires_in.total_seconds()
    expiry = "has been silent for too long" if seconds < 0 else f"expires in {seconds:.0f} s unless it is heard of"
    return f"{_name(explained)}, which {' and '.join([*claims, expiry])} (`{explained.ends_with}` ends it now)"


def place(locked: LockObject) -> str:
    """Format ``db.table/partition``, with the catalog if it is not Hive's."""
    name = (
        str(TableName(locked.catalog, locked.db, locked.table))
        if locked.table
        else str(DatabaseName(locked.catalog, locked.db))
    )
    return f"{name}/{locked.partition}" if locked.partition else name


def _name(explained: Explained) -> str:
    name = (
        f"transaction {explained.owner.txn_id}"
        if explained.owner.txn_id
        else f"lock {explained.owner.ext_id} without a transaction"
    )
    return (
        f"{name} of {explained.info.user or 'unknown'}@{explained.info.host or 'unknown'} ({explained.info.agent_info})"
    )


def _capital(question: Question) -> str:
    text = str(question)
    return text[0].upper() + text[1:]
