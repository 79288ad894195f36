"""The lock plan per statement: every cell of the table of LOCK-18, and its variations (LOCK-19)."""

import re

import pytest

from metastore.client.lock_plan import (
    Generation,
    Kind,
    LockModes,
    LockPlan,
    Output,
    Target,
    lock_modes,
    statement_locks,
)
from metastore.locks.rules import LockType, Operation

S, W, E, X = LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE
ACID = Target("db", "t")
PLAIN = Target("db", "t", is_acid=False)
EXTERNAL = Target("db", "t", is_acid=False, is_managed=False)
HANDLER = EXTERNAL._replace(handler_type=LockType.SHARED_WRITE)
DATABASE = Target("db")
LETTERS = {"S": S, "W": W, "E": E, "X": X}


def cell(text):
    """``X(INSERT)`` on what is written, ``S(NO_TXN) db`` on its database, ``none``; as (type, operation, on database)."""
    if text == "none":
        return None
    letter, operation, where = re.fullmatch(r"([SWEX])\((\w+)\)( db)?", text).groups()
    return LETTERS[letter], Operation[operation], bool(where)


# The table of LOCK-18: statement, target, and its columns 2.3, 3.1, 4.x.
TABLE = [
    ("INSERT INTO ACID, static", Kind.INSERT, ACID, "S(INSERT)", "S(INSERT)", "S(INSERT)"),
    ("INSERT INTO ACID, dynamic", Kind.INSERT, ACID._replace(is_dynamic=True), "S(INSERT)", "S(INSERT)", "S(INSERT)"),
    ("INSERT INTO non-ACID", Kind.INSERT, PLAIN, "X(INSERT)", "X(INSERT)", "X(INSERT)"),
    ("INSERT OVERWRITE ACID", Kind.INSERT_OVERWRITE, ACID, "X(NO_TXN)", "X(UPDATE)", "X(UPDATE)"),
    ("INSERT OVERWRITE non-ACID", Kind.INSERT_OVERWRITE, PLAIN, "X(NO_TXN)", "X(NO_TXN)", "X(NO_TXN)"),
    ("UPDATE", Kind.UPDATE, ACID, "W(UPDATE)", "W(UPDATE)", "E(UPDATE)"),
    ("DELETE", Kind.DELETE, ACID, "W(DELETE)", "W(DELETE)", "E(DELETE)"),
    ("MERGE, its inserts", Kind.MERGE_INSERT, ACID, "S(INSERT)", "S(INSERT)", "S(INSERT)"),
    ("CTAS, ACID", Kind.CREATE_TABLE_AS, ACID, "S(NO_TXN) db", "S(NO_TXN) db", "E(INSERT)"),
    ("CTAS, non-ACID", Kind.CREATE_TABLE_AS, PLAIN, "S(NO_TXN) db", "S(NO_TXN) db", "X(NO_TXN)"),
    ("CREATE TABLE, CREATE VIEW", Kind.SHARED_DDL, DATABASE, "S(NO_TXN) db", "S(NO_TXN) db", "S(NO_TXN) db"),
    ("DROP TABLE and the like, ACID", Kind.EXCLUSIVE_DDL, ACID, "X(NO_TXN)", "X(NO_TXN)", "X(NO_TXN)"),
    ("DROP TABLE and the like, non-ACID", Kind.EXCLUSIVE_DDL, PLAIN, "X(NO_TXN)", "X(NO_TXN)", "X(NO_TXN)"),
    ("the same, not blocking", Kind.SOFT_DELETE, ACID, "X(NO_TXN)", "X(NO_TXN)", "E(NO_TXN)"),
    ("the same, not blocking, non-ACID", Kind.SOFT_DELETE, PLAIN, "X(NO_TXN)", "X(NO_TXN)", "E(NO_TXN)"),
    ("ADD PARTITION, ACID", Kind.SHARED_DDL, ACID, "S(NO_TXN)", "S(NO_TXN)", "S(NO_TXN)"),
    ("ADD PARTITION, non-ACID", Kind.SHARED_DDL, PLAIN, "S(NO_TXN)", "S(NO_TXN)", "S(NO_TXN)"),
    ("DROP DATABASE", Kind.EXCLUSIVE_DDL, DATABASE, "X(NO_TXN) db", "X(NO_TXN) db", "X(NO_TXN) db"),
    ("ANALYZE on ACID", Kind.ANALYZE, ACID, "S(NO_TXN)", "S(NO_TXN)", "none"),
    ("a temporary table", Kind.INSERT, PLAIN._replace(is_temporary=True), "none", "none", "none"),
    ("a temporary ACID table", Kind.UPDATE, ACID._replace(is_temporary=True), "none", "none", "none"),
    ("an external table", Kind.INSERT, EXTERNAL, "X(INSERT)", "none", "none"),
    ("an external table, DDL", Kind.EXCLUSIVE_DDL, EXTERNAL, "X(NO_TXN)", "none", "none"),
    ("a storage handler's table", Kind.INSERT, HANDLER, "X(INSERT)", "W(INSERT)", "W(INSERT)"),
    ("a storage handler's table, overwritten", Kind.INSERT_OVERWRITE, HANDLER, "X(NO_TXN)", "W(NO_TXN)", "W(NO_TXN)"),
]
# The rows that differ from the table, by the switch that is turned: statement, 2.3, 3.1, 4.x.
VARIATIONS = [
    ({"strict": False}, "INSERT INTO non-ACID", "S(INSERT)", "S(INSERT)", "S(INSERT)"),
    ({"strict": False}, "an external table", "S(INSERT)", "none", "none"),
    ({"strict": False}, "a storage handler's table", "S(INSERT)", "W(INSERT)", "W(INSERT)"),
    ({"exclusive_write": False}, "INSERT INTO ACID, static", "S(INSERT)", "S(INSERT)", "W(INSERT)"),
    ({"exclusive_write": False}, "INSERT INTO ACID, dynamic", "S(INSERT)", "S(INSERT)", "W(INSERT)"),
    ({"exclusive_write": False}, "INSERT OVERWRITE ACID", "X(NO_TXN)", "X(UPDATE)", "E(UPDATE)"),
    ({"exclusive_write": False}, "UPDATE", "W(UPDATE)", "W(UPDATE)", "W(UPDATE)"),
    ({"exclusive_write": False}, "DELETE", "W(DELETE)", "W(DELETE)", "W(DELETE)"),
    ({"exclusive_write": False}, "MERGE, its inserts", "S(INSERT)", "S(INSERT)", "W(INSERT)"),
    ({"lockless_reads": True}, "INSERT INTO ACID, static", "S(INSERT)", "S(INSERT)", "W(INSERT)"),
    ({"lockless_reads": True}, "INSERT INTO ACID, dynamic", "S(INSERT)", "S(INSERT)", "W(INSERT)"),
    ({"lockless_reads": True}, "MERGE, its inserts", "S(INSERT)", "S(INSERT)", "W(INSERT)"),
    ({"lockless_reads": True}, "INSERT OVERWRITE ACID", "X(NO_TXN)", "X(UPDATE)", "E(UPDATE)"),
    ({"exclusive_merge_insert": True}, "MERGE, its inserts", "S(INSERT)", "S(INSERT)", "E(UPDATE)"),
    ({"exclusive_overwrite": False}, "INSERT OVERWRITE ACID", "X(NO_TXN)", "W(UPDATE)", "E(UPDATE)"),
    ({"lock_external": True}, "an external table", "X(INSERT)", "X(INSERT)", "X(INSERT)"),
    ({"lock_external": True}, "an external table, DDL", "X(NO_TXN)", "X(NO_TXN)", "X(NO_TXN)"),
    ({"read_locks": False}, None, None, None, None), ({"nonacid_read_locks": False}, None, None, None, None),
    ({"exclusive_ctas": False}, None, None, None, None), ({"max_partitions": 1}, None, None, None, None),
]
SWITCHES = [{}, *(dict(items) for items in dict.fromkeys(tuple(one[0].items()) for one in VARIATIONS))]


@pytest.mark.parametrize("generation", Generation)
@pytest.mark.parametrize("switch", SWITCHES, ids=str)
def test_written(generation, switch):
    """Every cell: the table's, unless the switch has one of its own."""
    column = list(Generation).index(generation)
    wrong = []
    for statement, kind, target, *cells in TABLE:
        [text] = [one[2 + column] for one in VARIATIONS if one[:2] == (switch, statement)] or [cells[column]]
        plan = statement_locks(outputs=[Output(target, kind)], modes=LockModes(**switch, generation=generation))
        wanted = cell(text)
        expected = [] if wanted is None else [LockPlan(
            *wanted[:2], target.db, "" if wanted[2] else target.table, is_transactional=target.is_acid,
            is_dynamic=target.is_dynamic)]
        if list(plan.locks) != expected:
            wrong.append((statement, plan.locks, expected))
    assert not wrong


def test_every_variation_is_about_a_row_of_the_table():
    assert {one[1] for one in VARIATIONS} - {None} <= {row[0] for row in TABLE}


@pytest.mark.parametrize("generation", Generation)
def test_statements_that_only_show_lock_nothing(generation):
    assert statement_locks(modes=LockModes(generation=generation)).locks == ()


@pytest.mark.parametrize("generation", [Generation.HIVE_2_3, Generation.HIVE_3_1])
def test_before_hive_4_reads_are_locked_whatever_the_switches(generation):
    modes = LockModes(read_locks=False, nonacid_read_locks=False, lockless_reads=True, max_partitions=1,
                      exclusive_write=False, generation=generation)
    targets = [ACID._replace(partition="p=1"), PLAIN]
    plan = statement_locks(targets, [Output(ACID._replace(table="new"), Kind.CREATE_TABLE_AS)], modes)

    assert [(lock.type, lock.partition) for lock in plan.locks] == [(S, "p=1"), (S, ""), (S, "")]
    assert (plan.zero_wait_read, plan.exclusive_ctas) == (False, False)


def test_the_switches_as_the_metastore_tells_them():
    told = {"hive.txn.strict.locking.mode": "false", "hive.acid.lockless.reads.enabled": "TRUE", "hive.locks.max.partitions": "7"}

    assert lock_modes(told.get) == LockModes(strict=False, lockless_reads=True, max_partitions=7)
    assert lock_modes(lambda _key, default: default) == LockModes()


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
