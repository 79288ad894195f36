"""Findings of the doctor: each a rule of what was seen, in the order in which an operator should read them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

_SECOND, _MINUTE, _HOUR, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
OLDEST_POSTGRES = 130_000
"""PostgreSQL's server_version_num."""
SLOW_COMMIT = timedelta(milliseconds=20)
"""A disk that syncs in this time carries 50 commits a second of one client."""
CLOCKS_APART = 5 * _SECOND
FULL_CONNECTIONS = 0.8
DEAD_ROWS = 500_000
LATE_REPLICA = 30 * _SECOND
OLD_TXN = _DAY
LONG_SNAPSHOT = _HOUR
LONG_WAIT = 10 * _MINUTE
QUEUE_WAITS = _HOUR
CLEANING_WAITS = _DAY
MANY_DELTAS = 100
LEADERS = ("reaper", "initiator", "cleaner")
"""Loops without which the installation falls behind."""
_UNSAFE = {"fsync": "off", "full_page_writes": "off"}


class Severity(StrEnum):
    """The severity of a finding; its value is shown."""

    WRONG = "wrong"
    """Something is lost, refused or stands still."""
    WARNING = "warning"


class Finding(NamedTuple):
    """A finding: what is there, why it matters, and what to do."""

    severity: Severity
    what: str
    why: str
    remedy: str


class OldTxn(NamedTuple):
    """The open transaction that began first."""

    id: int
    user: str
    host: str
    age: timedelta
    silent: timedelta


class WaitingLock(NamedTuple):
    """The lock request that has waited longest."""

    lock_id: int
    place: str
    waits: timedelta


class Queue(NamedTuple):
    """The oldest age of a state of the compaction queue, and how many there are."""

    state: str
    requests: int
    oldest: timedelta


class TableState(NamedTuple):
    """A table, or a partition, with a number that is too large."""

    place: str
    number: int


class Facts(NamedTuple):
    """The facts that the checks judge.

    ``commit``: the time of a durable commit; ``clock``: this machine's clock minus PostgreSQL's.
    """

    version: int
    settings: Mapping[str, str]
    connections: int
    most_connections: int
    commit: timedelta
    clock: timedelta
    late_replicas: Sequence[tuple[str, timedelta]]
    dead_rows: Sequence[TableState]
    long_snapshot: tuple[int, str, timedelta] | None
    """Process id, application and age of the oldest snapshot in PostgreSQL that is not ours."""
    led: frozenset[str]
    schema: str
    release_schema: str
    oldest_txn: OldTxn | None
    waiting: WaitingLock | None
    queue: Sequence[Queue]
    failed_compactions: Sequence[TableState]
    """Tables with compactions that failed within a day."""
    many_deltas: Sequence[TableState]
    exposed: str
    """The sentence about strangers on the network; "" if they have no rights."""
    unwritable: Mapping[str, str]
    """Roots of the warehouse that cannot be written, with the reason."""
    planner: str
    """The reason why the planner does not answer; "" if it does, or if there is none."""


def shown(age: timedelta) -> str:
    """Format an age in its largest unit."""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s")):
        if age >= 2 * unit:
            return f"{age // unit} {name}"
    return f"{age / timedelta(milliseconds=1):.0f} ms"


def _wrong(what: str, why: str, remedy: str) -> Finding:
    return Finding(Severity.WRONG, what, why, remedy)


def _warning(what: str, why: str, remedy: str) -> Finding:
    return Finding(Severity.WARNING, what, why, remedy)


def _unsafe_postgres(facts: Facts) -> list[Finding]:
    return [
        _wrong(
            f"PostgreSQL runs with {name}={value}",
            "A crash of its machine loses or damages what clients were told is stored.",
            f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf()",
        )
        for name, value in _UNSAFE.items()
        if facts.settings.get(name) == value
    ]


def _schema(facts: Facts) -> list[Finding]:
    if facts.schema == facts.release_schema:
        return []
    return [
        _wrong(
            f"The database has schema {facts.schema or 'none'}, this release {facts.release_schema}",
            "Servers of this release bring it up to date when they start; older ones live with the next schema only.",
            "metastore db upgrade",
        )
    ]


def _leaders(facts: Facts) -> list[Finding]:
    missing = [role for role in LEADERS if role not in facts.led]
    if not missing:
        return []
    return [
        _wrong(
            f"No process runs {', '.join(missing)}",
            "Dead transactions keep their locks, and tables are not compacted or cleaned.",
            "Start a server without --no-loops (metastore serve), or see in its log why a loop has stopped",
        )
    ]


def _unwritable(facts: Facts) -> list[Finding]:
    return [
        _wrong(
            f"{root} cannot be written: {reason}",
            "Tables there cannot be made, dropped, compacted or cleaned.",
            "Give the server's user or its credentials the right to write there",
        )
        for root, reason in facts.unwritable.items()
    ]


def _planner(facts: Facts) -> list[Finding]:
    if not facts.planner:
        return []
    return [
        _wrong(
            f"The planner does not answer: {facts.planner}",
            "Spark's catalog cannot read or write transactional tables.",
            "metastore planner, or correct metastore.planner.uri",
        )
    ]


def _waiting(facts: Facts) -> list[Finding]:
    if facts.waiting is None or facts.waiting.waits < LONG_WAIT:
        return []
    lock = facts.waiting
    return [
        _wrong(
            f"Lock {lock.lock_id} on {lock.place} has waited for {shown(lock.waits)}",
            "Its client stands still.",
            f"metastore lock why {lock.lock_id}",
        )
    ]


def _queue(facts: Facts) -> list[Finding]:
    limits = {
        "initiated": (
            QUEUE_WAITS,
            "Readers get slower: there are too few Workers, or none.",
            "metastore show compactions",
        ),
        "ready for cleaning": (CLEANING_WAITS, "Old files take place.", "metastore compaction explain TABLE"),
    }
    return [
        _warning(f"{each.requests} compactions are {each.state}, the oldest for {shown(each.oldest)}", why, remedy)
        for each in facts.queue
        for limit, why, remedy in [limits.get(each.state, (timedelta.max, "", ""))]
        if each.oldest >= limit
    ]


def _failed(facts: Facts) -> list[Finding]:
    return [
        _warning(
            f"{state.number} compactions of {state.place} have failed within a day",
            "After some failures in a row no more are tried, and readers get slower.",
            f"metastore compaction explain {state.place.partition('/')[0]}",
        )
        for state in facts.failed_compactions
    ]


def _deltas(facts: Facts) -> list[Finding]:
    return [
        _warning(
            f"{state.place} has {state.number} deltas",
            "Each read opens all of them.",
            f"metastore compaction explain {state.place.partition('/')[0]}",
        )
        for state in facts.many_deltas
        if state.number >= MANY_DELTAS
    ]


def _oldest_txn(facts: Facts) -> list[Finding]:
    txn = facts.oldest_txn
    if txn is None or txn.age < OLD_TXN:
        return []
    return [
        _warning(
            f"Transaction {txn.id} of {txn.user} on {txn.host} is open for {shown(txn.age)}, and was heard of "
            f"{shown(txn.silent)} ago",
            "Nothing that it may read is cleaned, and rows of ended transactions stay.",
            f"metastore txn explain {txn.id}",
        )
    ]


def _long_snapshot(facts: Facts) -> list[Finding]:
    if facts.long_snapshot is None or facts.long_snapshot[2] < LONG_SNAPSHOT:
        return []
    pid, application, age = facts.long_snapshot
    return [
        _warning(
            f"A session of {application or 'an unnamed client'} (process {pid}) in PostgreSQL holds a snapshot for "
            f"{shown(age)}",
            "Vacuum removes nothing that is younger, so tables grow and calls get slower.",
            f"SELECT pg_terminate_backend({pid}), if nobody needs its answer",
        )
    ]


def _dead_rows(facts: Facts) -> list[Finding]:
    return [
        _warning(
            f"PostgreSQL's table {state.place} has {state.number:,} dead rows",
            "Calls read past them; autovacuum is off, too slow, or something holds a snapshot.",
            f"VACUUM {state.place}, and see autovacuum_vacuum_cost_limit",
        )
        for state in facts.dead_rows
        if state.number >= DEAD_ROWS
    ]


def _postgres(facts: Facts) -> list[Finding]:
    findings = []
    if facts.settings.get("autovacuum") == "off":
        findings.append(
            _warning(
                "PostgreSQL's autovacuum is off",
                "Tables of transactions and locks grow without end.",
                "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf()",
            )
        )
    if facts.version < OLDEST_POSTGRES:
        findings.append(
            _warning(
                f"PostgreSQL {facts.version // 10_000} is older than what is tested",
                "Nobody mends its faults any more.",
                f"Upgrade it to {OLDEST_POSTGRES // 10_000} or newer",
            )
        )
    if facts.connections >= FULL_CONNECTIONS * facts.most_connections:
        findings.append(
            _warning(
                f"{facts.connections} of PostgreSQL's {facts.most_connections} connections are taken",
                "The next server or Worker may not get in.",
                "Raise max_connections, or lower metastore.database.pool.size",
            )
        )
    if facts.commit >= SLOW_COMMIT:
        findings.append(
            _warning(
                f"A durable commit takes {shown(facts.commit)}",
                "Each call that changes something waits for it: the disk of PostgreSQL's WAL is slow, or a synchronous "
                "replica.",
                "pg_test_fsync on PostgreSQL's machine",
            )
        )
    findings += [
        _warning(
            f"PostgreSQL's replica {name} is {shown(late)} behind",
            "After a failover that much is lost, unless it is synchronous.",
            "SELECT * FROM pg_stat_replication",
        )
        for name, late in facts.late_replicas
        if late >= LATE_REPLICA
    ]
    return findings


def _clock(facts: Facts) -> list[Finding]:
    if abs(facts.clock) < CLOCKS_APART:
        return []
    return [
        _warning(
            f"This machine's clock and PostgreSQL's are {shown(abs(facts.clock))} apart",
            "Time-outs follow PostgreSQL's clock; logs of the two do not fit together.",
            "chronyc tracking, on both machines",
        )
    ]


def _exposed(facts: Facts) -> list[Finding]:
    if not facts.exposed:
        return []
    return [
        _warning(
            facts.exposed,
            "Whoever reaches the port may read and change every definition.",
            "Let clients log in: docs/how-to/who-is-it.md",
        )
    ]


CHECKS: Sequence[Callable[[Facts], list[Finding]]] = (
    _unsafe_postgres,
    _schema,
    _leaders,
    _unwritable,
    _planner,
    _waiting,
    _exposed,
    _queue,
    _failed,
    _deltas,
    _oldest_txn,
    _long_snapshot,
    _dead_rows,
    _postgres,
    _clock,
)
"""Every check; those before ``_exposed`` are of what is wrong, the others warn."""


def findings(facts: Facts) -> list[Finding]:
    """Return what is wrong, worst first."""
    return [finding for check in CHECKS for finding in check(facts)]
