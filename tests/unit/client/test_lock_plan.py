"""The lock plan per statement: transactions.md §7.1, column "4.x defaults" and its variations."""

import pytest

from metastore.client.lock_plan import Kind, LockModes, LockPlan, Output, Target, statement_locks
from metastore.locks.rules import LockType, Operation

S, W, E, X = LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE
ACID = Target("db", "t")
PLAIN = Target("db", "t", is_acid=False)
EXTERNAL = Target("db", "t", is_acid=False, is_managed=False)
DATABASE = Target("db")


@pytest.mark.parametrize(("kind", "target", "modes", "expected"), [
    (Kind.INSERT, ACID, {}, (S, "insert")),
    (Kind.INSERT, ACID, {"exclusive_write": False}, (W, "insert")),
    (Kind.INSERT, ACID, {"lockless_reads": True}, (W, "insert")),
    (Kind.INSERT, PLAIN, {}, (X, "insert")),
    (Kind.INSERT, PLAIN, {"strict": False}, (S, "insert")),
    (Kind.MERGE_INSERT, ACID, {}, (S, "insert")),
    (Kind.MERGE_INSERT, ACID, {"exclusive_merge_insert": True}, (E, "update")),
    (Kind.INSERT_OVERWRITE, ACID, {}, (X, "update")),
    (Kind.INSERT_OVERWRITE, ACID, {"exclusive_overwrite": False}, (E, "update")),
    (Kind.INSERT_OVERWRITE, ACID, {"exclusive_write": False}, (E, "update")),
    (Kind.INSERT_OVERWRITE, ACID, {"lockless_reads": True}, (E, "update")),
    (Kind.INSERT_OVERWRITE, PLAIN, {}, (X, "no_txn")),
    (Kind.INSERT_OVERWRITE, PLAIN, {"strict": False}, (X, "no_txn")),
    (Kind.UPDATE, ACID, {}, (E, "update")),
    (Kind.UPDATE, ACID, {"exclusive_write": False}, (W, "update")),
    (Kind.DELETE, ACID, {}, (E, "delete")),
    (Kind.DELETE, ACID, {"exclusive_write": False}, (W, "delete")),
    (Kind.CREATE_TABLE_AS, ACID, {}, (E, "insert")),
    (Kind.CREATE_TABLE_AS, PLAIN, {}, (X, "no_txn")),
    (Kind.SHARED_DDL, DATABASE, {}, (S, "no_txn")),
    (Kind.SHARED_DDL, PLAIN, {}, (S, "no_txn")),
    (Kind.EXCLUSIVE_DDL, ACID, {}, (X, "no_txn")),
    (Kind.EXCLUSIVE_DDL, PLAIN, {}, (X, "no_txn")),
    (Kind.EXCLUSIVE_DDL, DATABASE, {}, (X, "no_txn")),
    (Kind.SOFT_DELETE, ACID, {}, (E, "no_txn")),
    (Kind.EXCLUSIVE_DDL, EXTERNAL, {"lock_external": True}, (X, "no_txn")),
    (Kind.INSERT, EXTERNAL, {}, None),
])
def test_written(kind, target, modes, expected):
    plan = statement_locks(outputs=[Output(target, kind)], modes=LockModes(**modes))

    found = [(lock.type, lock.operation.value, lock.db, lock.table, lock.is_transactional) for lock in plan.locks]
    assert found == ([] if expected is None else [(*expected, target.db, target.table, target.is_acid)])


@pytest.mark.parametrize(("target", "modes", "locked"), [
    (ACID, {}, True),
    (ACID, {"read_locks": False}, False),
    (ACID, {"lockless_reads": True}, False),
    (ACID, {"nonacid_read_locks": False}, True),
    (PLAIN, {}, True),
    (PLAIN, {"nonacid_read_locks": False}, False),
    (PLAIN, {"lockless_reads": True}, True),
    (EXTERNAL, {}, False),
    (EXTERNAL, {"lock_external": True}, True),
])
def test_read(target, modes, locked):
    plan = statement_locks([target], modes=LockModes(**modes))

    expected = LockPlan(S, Operation.SELECT, target.db, target.table, is_transactional=target.is_acid)
    assert plan.locks == ((expected,) if locked else ())


def test_partitions_are_locked_one_by_one_until_there_are_too_many():
    partitions = [ACID._replace(partition=f"p={number}") for number in range(3)]

    few = statement_locks(partitions, modes=LockModes(max_partitions=4))
    many = statement_locks(partitions, modes=LockModes(max_partitions=3))

    assert [lock.partition for lock in few.locks] == ["p=0", "p=1", "p=2"]
    assert [lock.partition for lock in many.locks] == [""]


def test_what_is_updated_is_not_read_locked_but_the_source_is():
    source = Target("db", "source")

    plan = statement_locks([ACID, source], [Output(ACID, Kind.UPDATE), Output(ACID, Kind.MERGE_INSERT)])

    assert [(lock.type, lock.table) for lock in plan.locks] == [(S, "source"), (E, "t"), (S, "t")]


def test_an_insert_that_reads_its_own_target_locks_it_for_both():
    plan = statement_locks([ACID], [Output(ACID, Kind.INSERT)])

    assert [(lock.type, lock.operation.value) for lock in plan.locks] == [(S, "select"), (S, "insert")]


@pytest.mark.parametrize(("modes", "zero_wait"), [
    ({}, False), ({"exclusive_overwrite": False}, True), ({"exclusive_write": False}, True)])
def test_zero_wait_read(modes, zero_wait):
    assert statement_locks([ACID], modes=LockModes(**modes)).zero_wait_read == zero_wait


def test_exclusive_ctas():
    outputs = [Output(ACID, Kind.CREATE_TABLE_AS)]

    assert statement_locks(outputs=outputs).exclusive_ctas
    assert not statement_locks(outputs=outputs, modes=LockModes(exclusive_ctas=False)).exclusive_ctas
    assert not statement_locks(outputs=[Output(ACID, Kind.INSERT)]).exclusive_ctas
