"""Plans of locks for statements: the table of Hive's DbTxnManager (LOCK-18, LOCK-19), as a pure function.

Rule: readers never block writers that only add; a statement that changes or replaces rows excludes others that do. Only
managed tables are locked, unless ``lock_external`` is set.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.table import AcidTable
from metastore.locks.rules import LockType, Operation

"""The pseudo database of mutexes that have no table."""


class Generation(StrEnum):
    """The generations of Hive's client, whose tables differ."""

    HIVE_2_3 = "2.3"
    HIVE_3_1 = "3.1"
    HIVE_4 = "4"


class Kind(StrEnum):
    """The uses that a statement makes of an output."""

    INSERT = "insert"
    INSERT_OVERWRITE = "insert_overwrite"
    MERGE_INSERT = "merge_insert"
    UPDATE = "update"
    DELETE = "delete"
    CREATE_TABLE_AS = "create_table_as"
    SHARED_DDL = "shared_ddl"
    """CREATE TABLE (on its database), ADD PARTITION: fine beside readers and writers."""
    EXCLUSIVE_DDL = "exclusive_ddl"
    """DROP, RENAME, TRUNCATE, most of ALTER TABLE."""
    SOFT_DELETE = "soft_delete"
    """The forms of the above that leave the files to the cleaner, so that readers may go on; since Hive 4."""
    ANALYZE = "analyze"
    """ANALYZE TABLE of a transactional table; since Hive 4 its statistics are transactional and need no lock."""


class Target(NamedTuple):
    """A database (no table), a table or a partition that a statement reads or writes."""

    db: str
    table: str = ""
    partition: str = ""
    is_acid: bool = True
    is_managed: bool = True
    is_dynamic: bool = False
    """Written, with partitions that only the data tells."""
    is_temporary: bool = False
    """A temporary table, a file or a directory, which no other session can see."""
    handler_type: LockType | None = None
    """The lock that the table's storage handler asks for when it is written; Hive 2.3 does not ask it."""


def target_of(table: AcidTable, *, is_written: bool = False) -> Target:
    """Convert a table for the lock plan."""
    return Target(
        table.name.db,
        table.name.table,
        is_acid=table.kind is not TableKind.PLAIN,
        is_dynamic=is_written and bool(table.partition_keys),
    )


class Output(NamedTuple):
    """An object that a statement writes, and its use."""

    target: Target
    kind: Kind


class LockPlan(NamedTuple):
    """A component of a lock request."""

    type: LockType
    operation: Operation
    db: str
    table: str = ""
    partition: str = ""
    is_transactional: bool = True
    is_dynamic: bool = False


class StatementLocks(NamedTuple):
    """A whole request: all locks of a statement are requested at once, so that statements do not deadlock."""

    locks: tuple[LockPlan, ...]
    zero_wait_read: bool = False
    exclusive_ctas: bool = False


class LockModes(NamedTuple):
    """Hive's settings for locks, with Hive's defaults. Hive 2.3 has only the first, 3.1 a few more (``in_force``)."""

    strict: bool = True
    """hive.txn.strict.locking.mode"""
    read_locks: bool = True
    """hive.txn.read.locks"""
    nonacid_read_locks: bool = True
    """hive.txn.nonacid.read.locks"""
    exclusive_write: bool = True
    """hive.txn.xlock.write"""
    exclusive_overwrite: bool = True
    """hive.txn.xlock.iow"""
    exclusive_merge_insert: bool = False
    """hive.txn.xlock.mergeinsert"""
    exclusive_ctas: bool = True
    """hive.txn.xlock.ctas"""
    lockless_reads: bool = False
    """hive.acid.lockless.reads.enabled"""
    lock_external: bool = False
    """hive.txn.ext.locking.enabled"""
    max_partitions: int = 0
    """hive.locks.max.partitions: from so many read partitions on, the table is locked instead; 0: never"""
    generation: Generation = Generation.HIVE_4

    @property
    def in_force(self) -> "LockModes":
        """The switches without those that the generation does not have."""
        match self.generation:
            case Generation.HIVE_2_3:
                return LockModes(
                    strict=self.strict, lock_external=True, exclusive_ctas=False, generation=self.generation
                )
            case Generation.HIVE_3_1:
                return LockModes(
                    strict=self.strict,
                    exclusive_overwrite=self.exclusive_overwrite,
                    exclusive_ctas=False,
                    lock_external=self.lock_external,
                    generation=self.generation,
                )
            case Generation.HIVE_4:
                return self


HIVE_DEFAULTS = LockModes()


def lock_modes(setting: Callable[[str, str], str]) -> LockModes:
    """Return the metastore's switches. ``setting``: get_config_value, with a key and its default."""

    def flag(key: str, *, default: bool) -> bool:
        return setting(key, str(default).lower()).strip().lower() == "true"

    partitions = setting("hive.locks.max.partitions", "-1").strip()
    return LockModes(
        strict=flag("hive.txn.strict.locking.mode", default=True),
        read_locks=flag("hive.txn.read.locks", default=True),
        nonacid_read_locks=flag("hive.txn.nonacid.read.locks", default=True),
        exclusive_write=flag("hive.txn.xlock.write", default=True),
        exclusive_overwrite=flag("hive.txn.xlock.iow", default=True),
        exclusive_merge_insert=flag("hive.txn.xlock.mergeinsert", default=False),
        exclusive_ctas=flag("hive.txn.xlock.ctas", default=True),
        lockless_reads=flag("hive.acid.lockless.reads.enabled", default=False),
        lock_external=flag("hive.txn.ext.locking.enabled", default=False),
        max_partitions=int(partitions) if partitions.isdecimal() else 0,
    )


def statement_locks(
    inputs: Iterable[Target] = (), outputs: Sequence[Output] = (), modes: LockModes = HIVE_DEFAULTS
) -> StatementLocks:
    """Return the locks of one statement."""
    modes = modes.in_force
    changed = {
        (output.target.db, output.target.table) for output in outputs if output.kind in {Kind.UPDATE, Kind.DELETE}
    }
    locks = [
        _read_lock(target)
        for target in _merged(inputs, modes)
        if _is_read_locked(target, modes) and (target.db, target.table) not in changed
    ]
    locks += [
        lock
        for output in outputs
        if _is_write_locked(output.target, modes) and (lock := _write_lock(output, modes)) is not None
    ]
    return StatementLocks(
        tuple(dict.fromkeys(locks)),
        zero_wait_read=not (modes.exclusive_overwrite and modes.exclusive_write)
        and modes.generation is Generation.HIVE_4,
        exclusive_ctas=modes.exclusive_ctas and any(output.kind is Kind.CREATE_TABLE_AS for output in outputs),
    )


def _merged(inputs: Iterable[Target], modes: LockModes) -> list[Target]:
    """Return the inputs, with the whole table in place of too many of its partitions."""
    inputs = list(inputs)
    if modes.max_partitions <= 0:
        return inputs
    counts: dict[tuple[str, str], int] = {}
    for target in inputs:
        counts[target.db, target.table] = counts.get((target.db, target.table), 0) + bool(target.partition)
    return [
        target._replace(partition="") if counts[target.db, target.table] >= modes.max_partitions else target
        for target in inputs
    ]


def _is_read_locked(target: Target, modes: LockModes) -> bool:
    if not modes.read_locks or not _is_write_locked(target, modes):
        return False
    return not modes.lockless_reads if target.is_acid else modes.nonacid_read_locks


def _is_write_locked(target: Target, modes: LockModes) -> bool:
    return not target.is_temporary and (
        target.is_managed or modes.lock_external or not target.table or target.handler_type is not None
    )


def _read_lock(target: Target) -> LockPlan:
    return LockPlan(LockType.SHARED_READ, Operation.SELECT, target.db, target.table, target.partition, target.is_acid)


def _write_lock(output: Output, modes: LockModes) -> LockPlan | None:
    target, kind = output
    older = modes.generation is not Generation.HIVE_4
    if kind is Kind.CREATE_TABLE_AS and older:  # Its table does not exist yet.
        target, kind = Target(target.db, is_acid=target.is_acid), Kind.SHARED_DDL
    if kind is Kind.ANALYZE and not older:
        return None
    if target.handler_type is not None and modes.generation is not Generation.HIVE_2_3:
        operation = Operation.INSERT if kind in {Kind.INSERT, Kind.MERGE_INSERT} else Operation.NO_TXN
        return _lock(target, target.handler_type, operation)
    lock_type, operation = (
        _older_acid_write if older and target.is_acid else _acid_write if target.is_acid else _plain_write
    )(kind, modes)
    return _lock(target, lock_type, operation)


def _lock(target: Target, lock_type: LockType, operation: Operation) -> LockPlan:
    return LockPlan(lock_type, operation, target.db, target.table, target.partition, target.is_acid, target.is_dynamic)


def _older_acid_write(kind: Kind, modes: LockModes) -> tuple[LockType, Operation]:
    """Return the lock before Hive 4: no exclusive writes, updates are shared and each waits for the other."""
    match kind:
        case Kind.INSERT | Kind.MERGE_INSERT:
            return LockType.SHARED_READ, Operation.INSERT
        case Kind.INSERT_OVERWRITE if modes.generation is Generation.HIVE_2_3:
            return LockType.EXCLUSIVE, Operation.NO_TXN
        case Kind.INSERT_OVERWRITE:
            return (LockType.EXCLUSIVE if modes.exclusive_overwrite else LockType.SHARED_WRITE), Operation.UPDATE
        case Kind.UPDATE | Kind.DELETE:
            return LockType.SHARED_WRITE, Operation(kind.value)
        case Kind.SOFT_DELETE:
            return LockType.EXCLUSIVE, Operation.NO_TXN
        case _:
            return _ddl(kind)


def _acid_write(kind: Kind, modes: LockModes) -> tuple[LockType, Operation]:
    optimistic = not modes.exclusive_write or modes.lockless_reads
    match kind:
        case Kind.MERGE_INSERT if modes.exclusive_merge_insert:
            return LockType.EXCL_WRITE, Operation.UPDATE
        case Kind.INSERT | Kind.MERGE_INSERT:
            return (LockType.SHARED_WRITE if optimistic else LockType.SHARED_READ), Operation.INSERT
        case Kind.INSERT_OVERWRITE:
            readers_go_on = optimistic or not modes.exclusive_overwrite
            return (LockType.EXCL_WRITE if readers_go_on else LockType.EXCLUSIVE), Operation.UPDATE
        case Kind.UPDATE | Kind.DELETE:
            return (LockType.EXCL_WRITE if modes.exclusive_write else LockType.SHARED_WRITE), Operation(kind.value)
        case Kind.CREATE_TABLE_AS:
            return LockType.EXCL_WRITE, Operation.INSERT
        case _:
            return _ddl(kind)


def _plain_write(kind: Kind, modes: LockModes) -> tuple[LockType, Operation]:
    match kind:
        case Kind.INSERT | Kind.MERGE_INSERT:
            return (LockType.EXCLUSIVE if modes.strict else LockType.SHARED_READ), Operation.INSERT
        case Kind.SOFT_DELETE if modes.generation is not Generation.HIVE_4:
            return LockType.EXCLUSIVE, Operation.NO_TXN
        case Kind.SHARED_DDL | Kind.SOFT_DELETE:
            return _ddl(kind)
        case _:
            return LockType.EXCLUSIVE, Operation.NO_TXN


def _ddl(kind: Kind) -> tuple[LockType, Operation]:
    types = {
        Kind.SHARED_DDL: LockType.SHARED_READ,
        Kind.ANALYZE: LockType.SHARED_READ,
        Kind.SOFT_DELETE: LockType.EXCL_WRITE,
    }
    return types.get(kind, LockType.EXCLUSIVE), Operation.NO_TXN
