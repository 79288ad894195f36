"""Rules of waiting: the compatibility matrix, overlaps of objects, and the writes that a lock request declares.

Rules: a request waits for every incompatible request that was made earlier on an overlapping object, whether that lock
was granted or still waits itself: first come, first served. A request is granted whole or not at all. Requests of one
transaction never wait for each other.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

NO_TXN = 0

_QUERY_OF_TRINO = re.compile("[0-9]{8}_[0-9]{6}_[0-9]{5}_[0-9a-z]{5}")
# Iceberg gives such a name to one request only, so it identifies a repetition (LOCK-16).
_ONE_LOCK = re.compile("Iceberg-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class LockType(StrEnum):
    """The types of locks, weakest first; the value is stored in the database."""

    SHARED_READ = "shared_read"
    SHARED_WRITE = "shared_write"
    EXCL_WRITE = "excl_write"
    EXCLUSIVE = "exclusive"


class LockState(StrEnum):
    """The states of a stored lock, and the reply ``not_acquired``, which is never stored."""

    ACQUIRED = "acquired"
    WAITING = "waiting"
    NOT_ACQUIRED = "not_acquired"


class Operation(StrEnum):
    """The holder's intention with the object; clients before 2.0 (and PyIceberg) send UNSET."""

    SELECT = "select"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    UNSET = "unset"
    NO_TXN = "no_txn"


# The matrix of Hive 4.x (LOCK-1): a request of the first type waits for earlier requests of the other types.
WAITS_FOR = {
    LockType.SHARED_READ: frozenset({LockType.EXCLUSIVE}),
    LockType.SHARED_WRITE: frozenset({LockType.EXCL_WRITE, LockType.EXCLUSIVE}),
    LockType.EXCL_WRITE: frozenset({LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE}),
    LockType.EXCLUSIVE: frozenset(LockType),
}


_TAIL = 2**63
"""A place behind every request."""
MOST_AT_ONCE = 1000
"""The most locks that are granted at once without a look."""


class LockObject(NamedTuple):
    """A database (no table), a table (no partition) or a partition, in the stored spelling."""

    catalog: str
    db: str
    table: str = ""
    partition: str = ""

    def __str__(self) -> str:
        """Return ``db/table/partition``, as Hive's messages have it."""
        return "/".join(part for part in (self.db, self.table, self.partition) if part)


class Lock(NamedTuple):
    """A component of a request in the queue."""

    ext_id: int
    int_id: int
    txn_id: int
    object: LockObject
    type: LockType
    state: LockState = LockState.WAITING
    user: str = ""
    host: str = ""

    def __str__(self) -> str:
        """Format the lock and its owner for people."""
        owner = f"txnid:{self.txn_id}" if self.txn_id else "no transaction"
        return (
            f"{{lockid:{self.ext_id}.{self.int_id} {owner} {self.object} {self.type.upper()} {self.state.upper()} "
            f"by {self.user or 'unknown'}@{self.host or 'unknown'}}}"
        )


class WantedLock(NamedTuple):
    """A component of a request as the client sends it."""

    type: LockType
    object: LockObject
    operation: Operation = Operation.UNSET
    is_transactional: bool = False
    is_dynamic_partition_write: bool = False


class LockRequest(NamedTuple):
    """The content of one call of ``lock``."""

    components: tuple[WantedLock, ...]
    txn_id: int = NO_TXN
    user: str = ""
    host: str = ""
    agent_info: str = "Unknown"
    zero_wait_read: bool = False
    exclusive_ctas: bool = False

    @property
    def is_recognisable(self) -> bool:
        """True if a second equal request can only be a repetition (ADR 0045).

        Inside a transaction it does not matter whether it is. Without a transaction only Iceberg gives each lock a name
        of its own; two threads of another client may send equal requests, and both would believe that they hold the
        lock.
        """
        return self.txn_id != NO_TXN or _ONE_LOCK.fullmatch(self.agent_info) is not None

    @property
    def connects_for_each_call(self) -> bool:
        """True if the client is known to end its connection after each call, even while it holds the lock (ADR 0045).

        Trino does; its agent info is the id of the query.
        """
        return _QUERY_OF_TRINO.fullmatch(self.agent_info) is not None

    def is_stored_as(self, locks: Sequence[Lock], agent_info: str) -> bool:
        """Return True if this request would become the rows of a stored request."""
        return (
            bool(locks)
            and self.agent_info == agent_info
            and [lock._replace(state=LockState.WAITING) for lock in sorted(locks)] == self.locks(locks[0].ext_id)
        )

    def locks(self, ext_id: int) -> list[Lock]:
        """Return the rows that this request becomes."""
        return [
            Lock(ext_id, int_id, self.txn_id, wanted.object, wanted.type, LockState.WAITING, self.user, self.host)
            for int_id, wanted in enumerate(self.components, 1)
        ]


class Blocked(NamedTuple):
    """A wanted lock, its earliest blocker, and its latest."""

    wanted: Lock
    blocker: Lock
    last: Lock


class DeclaredWrite(NamedTuple):
    """A write that a transaction declares; operation ``i``, ``u`` or ``d``."""

    object: LockObject
    operation: str


def overlaps(locked: LockObject, other: LockObject) -> bool:
    """Return True if the two are equal, or either contains the other. Partial partition names contain nothing."""
    if (locked.catalog, locked.db) != (other.catalog, other.db):
        return False
    if not locked.table or not other.table:
        return True
    return locked.table == other.table and (
        not locked.partition or not other.partition or locked.partition == other.partition
    )


def conflicts(wanted: Lock, existing: Lock) -> bool:
    """Return True if ``wanted`` waits for ``existing``."""
    if existing.ext_id >= wanted.ext_id or (wanted.txn_id != NO_TXN and wanted.txn_id == existing.txn_id):
        return False
    if existing.type not in WAITS_FOR[wanted.type] or not overlaps(wanted.object, existing.object):
        return False
    # A shared read of a database only keeps it from being dropped: it fits everything that happens inside.
    reads_database = wanted.type is LockType.SHARED_READ and not wanted.object.table and bool(existing.object.table)
    inside_read_database = (
        wanted.type is LockType.EXCLUSIVE
        and bool(wanted.object.table)
        and existing.type is LockType.SHARED_READ
        and not existing.object.table
    )
    return not (reads_database or inside_read_database)


class LockQueue:
    """An index of locks by object, so that a request with thousands of partitions is not compared with every lock."""

    def __init__(self, locks: Iterable[Lock] = ()) -> None:
        self._databases: dict[tuple[str, str], dict[str, dict[str, list[Lock]]]] = {}
        for lock in locks:
            self.add(lock)

    def add(self, lock: Lock) -> None:
        """Put a lock into the queue."""
        catalog, db, table, partition = lock.object
        tables = self._databases.setdefault((catalog, db), {})
        tables.setdefault(table, {}).setdefault(partition, []).append(lock)

    def blockers(self, wanted: Lock) -> list[Lock]:
        """Return every lock that ``wanted`` waits for, earliest first."""
        conflicting = [lock for lock in self._near(wanted.object) if conflicts(wanted, lock)]
        return sorted(conflicting, key=lambda lock: (lock.ext_id, lock.int_id))

    def blocked(self, request: Iterable[Lock]) -> list[Blocked]:
        """Return the locks of a request that must wait, each with its earliest and its latest blocker."""
        waits = ((wanted, self.blockers(wanted)) for wanted in request)
        return [Blocked(wanted, blockers[0], blockers[-1]) for wanted, blockers in waits if blockers]

    def _near(self, wanted: LockObject) -> Iterator[Lock]:
        """Yield every lock that can overlap the object, and some that do not."""
        tables = self._databases.get((wanted.catalog, wanted.db), {})
        for table in (wanted.table, "") if wanted.table else tables:
            partitions = tables.get(table, {})
            for partition in (wanted.partition, "") if wanted.partition else partitions:
                yield from partitions.get(partition, ())


class Changer(NamedTuple):
    """The caller that is about to drop, rename or empty an object: its transactions, and its locks without one.

    ``trash_of``: the user whose trash may get the object's data; None: the caller wants none of it in a trash.
    """

    txn_ids: frozenset[int] = frozenset()
    lock_ids: frozenset[int] = frozenset()
    trash_of: str | None = None

    def owns(self, lock: Lock) -> bool:
        """Return True if the lock belongs to the changer."""
        return lock.ext_id in self.lock_ids if lock.txn_id == NO_TXN else lock.txn_id in self.txn_ids


def in_the_way(
    objects: Iterable[LockObject],
    locks: Sequence[Lock],
    changer: Changer,
    writers: Container[int],
    kind: LockType = LockType.EXCLUSIVE,
) -> list[Lock]:
    """Return the locks that a change of these objects waits for, which no reader and no writer may see (ADR 0046).

    The change waits as a request of this kind at the tail of the queue would, for every lock ahead, granted or not,
    unless its caller holds that lock. Hive takes such a lock before it drops or renames an object, but does not name
    its transaction: so an exclusive lock of a transaction that is not among the ``writers`` counts as the caller's.
    """
    blockers: dict[Lock, None] = {}
    queue = LockQueue(lock for lock in locks if not changer.owns(lock))
    callers_own = {
        lock.object
        for lock in locks
        if lock.state is LockState.ACQUIRED
        and lock.type is LockType.EXCLUSIVE
        and (changer.owns(lock) or (lock.txn_id != NO_TXN and lock.txn_id not in writers))
    }
    named = {lock.object for lock in locks}
    # One partition stands for all that no lock names: a drop of thousands is not compared with all.
    alike = {locked if locked in named or not locked.partition else locked[:3]: locked for locked in objects}
    for locked in alike.values():
        if callers_own.isdisjoint(around(locked)):
            blockers |= dict.fromkeys(queue.blockers(Lock(_TAIL, 0, NO_TXN, locked, kind)))
    return list(blockers)


def around(locked: LockObject) -> tuple[LockObject, ...]:
    """Return the object and everything that contains it."""
    return locked, locked._replace(partition=""), locked._replace(table="", partition="")


def tables_of(request: LockRequest) -> set[tuple[str, str, str]]:
    """Return catalog, database and name of the tables that a request locks, at least in part.

    No name for a whole database.
    """
    return {(lock.object.catalog, lock.object.db, lock.object.table) for lock in request.components}


def apart(requests: Sequence[LockRequest]) -> bool:
    """Return True if no member of a batch can block another, without a look at types: each has tables of its own.

    Large requests and locks of whole databases give False: a close look pays for them.
    """
    tables = [tables_of(request) for request in requests]
    return (
        all(tables)
        and all(table for names in tables for _, _, table in names)
        and sum(len(request.components) for request in requests) <= MOST_AT_ONCE
        and len(set().union(*tables)) == sum(map(len, tables))
    )


def refusal(request: LockRequest, blocked: Sequence[Blocked]) -> str | None:
    """Return the text that refuses a blocked request which does not want to wait; None if it waits."""
    if not blocked or request.txn_id == NO_TXN:
        return None
    if request.zero_wait_read:
        for wanted, blocker, _ in blocked:
            if wanted.type is LockType.SHARED_READ:
                return f"Unable to acquire read lock due to an existing exclusive lock {blocker}"
    if request.exclusive_ctas:
        return (
            f"Failed to initiate a concurrent CTAS operation with the same table name, lockInfo : {blocked[0].blocker}"
        )
    return None


def components(request: LockRequest) -> list[DeclaredWrite]:
    """Return the writes of the request's transaction, as far as its locks tell (LOCK-14, LOCK-15).

    A dynamic-partition write does not know its partitions yet. It leaves a placeholder without a partition, so that the
    files of a writer that dies before it reports them are still found (HIVE-21052).
    """
    if request.txn_id == NO_TXN:
        return []
    written: dict[DeclaredWrite, None] = {}
    placeholders: dict[LockObject, str] = {}
    for wanted in request.components:
        operation = _written(wanted)
        if operation is None:
            continue
        if wanted.is_dynamic_partition_write:
            table = wanted.object._replace(partition="")
            placeholders[table] = "i" if operation == "i" and placeholders.get(table, "i") == "i" else "u"
        else:
            written[DeclaredWrite(wanted.object, operation)] = None
    named = {component.object._replace(partition="") for component in written}
    return [
        *written,
        *(DeclaredWrite(table, operation) for table, operation in placeholders.items() if table not in named),
    ]


def _written(wanted: WantedLock) -> str | None:
    """Return the operation letter of a wanted lock, None if it writes nothing transactional."""
    match wanted.operation:
        case Operation.SELECT | Operation.NO_TXN:
            return None
        case Operation.UNSET:
            # Clients before 2.0 send neither the operation nor whether the table is transactional.
            return "i" if wanted.type is LockType.SHARED_READ else "u"
        case _:  # The operation is INSERT, UPDATE or DELETE.
            return wanted.operation[0] if wanted.is_transactional else None
