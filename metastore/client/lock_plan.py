"""Which locks a statement takes: the table of Hive 4's DbTxnManager (transactions.md §7.1), as a pure function.

Rule: readers never block writers that only add; whoever changes or replaces rows excludes others that do. What is not a
managed table is not locked unless ``lock_external`` says so.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from metastore.locks.rules import LockType, Operation


class Kind(StrEnum):
    """How a statement uses what it writes."""

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
    """The forms of the above that leave the files to the cleaner, so that readers may go on."""


class Target(NamedTuple):
    """A database (no table), a table or a partition that a statement reads or writes."""

    db: str
    table: str = ""
    partition: str = ""
    is_acid: bool = True
    is_managed: bool = True
    is_dynamic: bool = False
    """Written, with partitions that only the data tells."""


class Output(NamedTuple):
    """What is written, and how."""

    target: Target
    kind: Kind


class LockPlan(NamedTuple):
    """One component of a lock request."""

    type: LockType
    operation: Operation
    db: str
    table: str = ""
    partition: str = ""
    is_transactional: bool = True
    is_dynamic: bool = False


class StatementLocks(NamedTuple):
    """A whole request: all locks of a statement are asked for at once, so that statements do not deadlock."""

    locks: tuple[LockPlan, ...]
    zero_wait_read: bool = False
    exclusive_ctas: bool = False


class LockModes(NamedTuple):
    """Hive's switches with Hive's defaults."""

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


HIVE_DEFAULTS = LockModes()


def statement_locks(inputs: Iterable[Target] = (), outputs: Sequence[Output] = (),
                    modes: LockModes = HIVE_DEFAULTS) -> StatementLocks:
    """The locks of one statement."""
    changed = {(output.target.db, output.target.table) for output in outputs
               if output.kind in {Kind.UPDATE, Kind.DELETE}}
    locks = [_read_lock(target) for target in _merged(inputs, modes)
             if _is_read_locked(target, modes) and (target.db, target.table) not in changed]
    locks += [_write_lock(output, modes) for output in outputs
              if output.target.is_managed or modes.lock_external or not output.target.table]
    return StatementLocks(
        tuple(dict.fromkeys(locks)),
        zero_wait_read=not (modes.exclusive_overwrite and modes.exclusive_write),
        exclusive_ctas=modes.exclusive_ctas and any(output.kind is Kind.CREATE_TABLE_AS for output in outputs))


def _merged(inputs: Iterable[Target], modes: LockModes) -> list[Target]:
    """The inputs, with the whole table in the place of too many of its partitions."""
    inputs = list(inputs)
    if modes.max_partitions <= 0:
        return inputs
    counts: dict[tuple[str, str], int] = {}
    for target in inputs:
        counts[target.db, target.table] = counts.get((target.db, target.table), 0) + bool(target.partition)
    return [target._replace(partition="") if counts[target.db, target.table] >= modes.max_partitions else target
            for target in inputs]


def _is_read_locked(target: Target, modes: LockModes) -> bool:
    if not modes.read_locks or not (target.is_managed or modes.lock_external):
        return False
    return not modes.lockless_reads if target.is_acid else modes.nonacid_read_locks


def _read_lock(target: Target) -> LockPlan:
    return LockPlan(LockType.SHARED_READ, Operation.SELECT, target.db, target.table, target.partition, target.is_acid)


def _write_lock(output: Output, modes: LockModes) -> LockPlan:
    target = output.target
    kind, operation = (_acid_write if target.is_acid else _plain_write)(output.kind, modes)
    return LockPlan(kind, operation, target.db, target.table, target.partition, target.is_acid, target.is_dynamic)


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
        case Kind.SHARED_DDL | Kind.SOFT_DELETE:
            return _ddl(kind)
        case _:
            return LockType.EXCLUSIVE, Operation.NO_TXN


def _ddl(kind: Kind) -> tuple[LockType, Operation]:
    types = {Kind.SHARED_DDL: LockType.SHARED_READ, Kind.SOFT_DELETE: LockType.EXCL_WRITE}
    return types.get(kind, LockType.EXCLUSIVE), Operation.NO_TXN
