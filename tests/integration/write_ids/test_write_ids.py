"""Allocation and valid write ids: cases W of tests/scripts/CASES."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.errors import InvalidRequestError, NoSuchTxnError, TxnAbortedError
from metastore.ids import TableName
from metastore.txns.core.rules import Operation, TxnType, reader_snapshot
from metastore.txns.core.service import OpenRequest
from metastore.write_ids.rules import Allocation
from metastore.write_ids.service import Reading, ReplayedAllocation, ReplicatedState
from tests.support.transactions import named

T = named("db.t")


def snapshot_of(t, txn_id=0):
    return reader_snapshot(t.txns.get_open_txns(), txn_id)


def test_w01_a_readers_own_snapshot(t):
    t.open(2)
    t.abort(1)
    t.commit(2)
    mine = t.open()
    t.open()

    txns = snapshot_of(t, mine)

    assert [txns.is_valid(one) for one in (1, 2, 3, 4)] == [False, True, True, False]


def test_w02_every_second_aborted(t):
    ids = t.open(20)
    for txn_id in ids[::2]:
        t.abort(txn_id)

    assert t.txns.get_open_txns() == (20, ids, bytes([0b01010101, 0b01010101, 0b0101]), 2)


def test_w03_a_later_transaction_that_commits_first_stays_invisible(t):
    first, second = t.open(2)
    t.commit(second)

    assert not snapshot_of(t, first).is_valid(second)


def test_w04_w06_allocation_is_idempotent_and_per_table(t):
    txn_id = t.open()

    assert t.allocate("db.T", txn_id) == t.allocate("db.t", txn_id) == {1: 1}
    assert t.allocate("db.u", txn_id) == {1: 1}
    assert t.write_ids.get_max_allocated_table_write_id(T) == 1


def test_w05_ids_in_the_order_of_transactions(t):
    t.open(5)

    assert list(t.allocate("db.t", 5, 4).items()) == [(4, 1), (5, 2)]


def test_w07_two_first_callers(t):
    for turn in range(20):
        ids = t.open(6)
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda part, name=f"db.t{turn}": t.allocate(name, *part), (ids[:3], ids[3:])))
        assert sorted(write_id for answer in answers for write_id in answer.values()) == [1, 2, 3, 4, 5, 6]
        assert all(list(answer.values()) == sorted(answer.values()) for answer in answers)


def test_w08_nothing_for_a_batch_with_a_bad_member(t):
    opened, aborted, committed = t.open(3)
    reader = t.open(kind=TxnType.READ_ONLY)
    t.abort(aborted)
    t.commit(committed)

    for bad, error in ((aborted, TxnAbortedError), (committed, NoSuchTxnError), (reader, InvalidRequestError),
                       (99, NoSuchTxnError)):
        with pytest.raises(error):
            t.allocate("db.t", opened, bad)
    assert [t.count("txn_write_ids"), t.count("next_write_ids")] == [0, 0]


def test_w08_one_bad_call_of_a_batch_hurts_nobody_else(t):
    opened, aborted = t.open(2)
    t.abort(aborted)

    answers = t.write_ids.allocate_table_write_ids(
        [Allocation(T, (opened,)), Allocation(named("db.u"), (aborted,)), Allocation(T, (aborted, opened))])

    assert answers[0] == {opened: 1}
    assert [type(one) for one in answers[1:]] == [TxnAbortedError, TxnAbortedError]
    assert t.rows('SELECT "table" FROM next_write_ids') == [("t",)]


def test_w09_reallocation(t):
    t.open(2)
    t.lock(1, "db.t", Operation.UPDATE)
    t.allocate("db.t", 1)
    t.allocate("db.t", 2)

    assert t.allocate("db.t", 1, reallocate=True) == {1: 3}
    assert t.rows("SELECT txn_id, write_id FROM txn_write_ids ORDER BY 2") == [(2, 2), (1, 3)]
    t.commit(1)
    assert t.rows("SELECT write_id FROM completed_txn_components") == [(3,)]


def replicated(t, *sources):
    request = OpenRequest(len(sources), "a", "h", txn_type=TxnType.REPL_CREATED, repl_policy="p", sources=sources)
    [ids] = t.txns.open_txns([request])
    return list(ids)


def test_w10_w11_the_sources_write_ids(t):
    targets = replicated(t, 71, 72)
    request = ReplayedAllocation(T, "p", ((71, 4), (72, 5)))

    assert t.write_ids.allocate_replayed(request) == dict(zip(targets, (4, 5), strict=True))
    assert t.write_ids.allocate_replayed(request) == dict(zip(targets, (4, 5), strict=True))
    assert t.write_ids.get_max_allocated_table_write_id(T) == 5
    assert t.write_ids.allocate_replayed(ReplayedAllocation(T, "p", ((81, 6),))) == {}


def test_w12_w13_seeding(t):
    t.allocate("db.u", *t.open(3))
    t.write_ids.seed_write_id(T, 7)

    assert t.write_ids.get_max_allocated_table_write_id(named("db.none")) == 0
    assert t.write_ids.get_max_allocated_table_write_id(named("db.u")) == 3
    assert t.write_ids.get_max_allocated_table_write_id(T) == 7
    assert t.reads("db.t").high_watermark == 7
    assert t.allocate("db.t", 1) == {1: 8}
    with pytest.raises(InvalidRequestError, match="db.t have begun already"):
        t.write_ids.seed_write_id(T, 7)


def test_w15_no_write_ids(t):
    assert t.reads("db.t") == ValidWriteIdList("db.t", 0)


def test_w16_one_of_each(t):
    committed, opened, aborted = (t.write("db.t", Operation.INSERT) for _ in range(3))
    t.commit(committed)
    t.abort(aborted)

    assert t.reads("db.t") == ValidWriteIdList("db.t", 3, 2, (2, 3), frozenset({3}))
    assert opened


def test_w17_an_older_snapshot(t):
    t.commit(t.write("db.t"))
    before = snapshot_of(t).format()
    t.commit(t.write("db.t"))

    assert not t.reads("db.t", before).is_valid(2)
    assert t.reads("db.t").is_valid(2)


def test_w18_committed_owners_are_forgotten(t):
    for _ in range(5):
        t.commit(t.write("db.t"))
    opened = t.open()
    t.abort(t.write("db.t", txn_id=opened) and t.write("db.t"))

    assert t.reaper.tick().write_ids == 5
    assert t.reads("db.t") == ValidWriteIdList("db.t", 6, 6, (6,))


def test_w19_ones_own_id(t):
    mine = t.write("db.t")

    assert t.reads("db.t", snapshot_of(t, mine).format()).is_valid(1)
    assert t.reads("db.t").open == (1,)


def test_w20_three_tables_in_order_and_spelling(t):
    t.allocate("db.a", t.open())
    names = ["DB.none", "db.A", "hive.db.a"]

    lists = t.lists(names)

    assert [(one.table, one.high_watermark, one.invalid) for one in lists] == [
        ("DB.none", 0, ()), ("db.A", 1, (1,)), ("hive.db.a", 1, (1,))]


def test_w21_by_write_id(t):
    t.write("db.t")
    second = t.write("db.t")
    third = t.write("db.t")
    t.commit(third)

    known = t.reads("db.t", write_id=2)

    assert known.is_valid(2)
    assert not known.is_valid(1)
    assert not known.is_valid(3)
    assert second
    with pytest.raises(InvalidRequestError, match="^invalid write id 9 for table db.t$"):
        t.reads("db.t", write_id=9)


def test_w22_everything(t):
    t.write("db.t")

    assert t.reads("db.t", "") == ValidWriteIdList("db.t", 1)


def test_w27_a_reader_that_was_open_across_a_commit(t):
    writer = t.write("db.t")
    reader = t.open()
    seen = snapshot_of(t, reader).format()
    t.commit(writer)

    assert t.reaper.tick().write_ids == 0
    assert not t.reads("db.t", seen).is_valid(1)
    t.commit(reader)
    assert t.reaper.tick().write_ids == 1
    assert t.reads("db.t") == ValidWriteIdList("db.t", 1)


def test_w28_all_owners_forgotten(t):
    for _ in range(3):
        t.commit(t.write("db.t"))
    t.reaper.tick()

    assert t.count("txn_write_ids") == 0
    assert t.reads("db.t") == ValidWriteIdList("db.t", 3)
    assert t.allocate("db.t", t.open()) == {4: 4}


def test_w29_aborted_ones_with_and_without_components(t):
    """A write id alone is a component of its table: whoever has one may have written under it."""
    with_data = t.write("db.t", Operation.INSERT)
    unsaid, without = t.open(), t.open()
    t.allocate("db.t", unsaid)
    t.abort(with_data)
    t.abort(unsaid)
    t.abort(without)

    assert t.reaper.tick().emptied_txns == 1
    assert t.txns.get_open_txns() == (3, [with_data, unsaid], b"\x03", None)
    assert t.rows("SELECT txn_id FROM txn_write_ids ORDER BY 1") == [(with_data,), (unsaid,)]


def test_w31_a_retained_aborted_owner_hides_nobody(t):
    first, aborted, third = (t.write("db.t", Operation.INSERT) for _ in range(3))
    t.commit(first, third)
    t.abort(aborted)
    t.reaper.tick()

    known = t.reads("db.t")

    assert (known.high_watermark, known.invalid, known.aborted) == (3, (2,), {2})


@pytest.mark.parametrize("seed", range(5))
def test_who_begins_now_sees_what_a_reader_with_the_snapshot_of_this_moment_sees(t, seed):
    """Random ends of random writers, some of them forgotten; readers of both kinds in one batch, in its order."""
    random, tables = Random(seed), [f"db.t{number}" for number in range(4)]
    for _ in range(25):
        txn_id = t.open()
        for table in random.sample(tables[:3], random.randrange(3)):
            t.allocate(table, txn_id)
        random.choice((t.commit, t.commit, t.abort, lambda _: None))(txn_id)
        if random.random() < 0.2:
            t.purges.purge_write_ids()
            t.purges.empty_aborted()
    now, given = Reading((*tables, "DB.T1")), Reading((*tables, "DB.T1"), snapshot_of(t).format())

    first, second, wrong, third, fourth = t.write_ids.get_valid_write_ids(
        [given, now, Reading(("db.t0",), None, 999), Reading(("db.t2",)), given])

    assert first == second == fourth
    assert third == [first[2]]
    assert isinstance(wrong, InvalidRequestError)
    assert t.lists((*tables, "DB.T1")) == first


def test_a_thousand_tables_are_one_statement(t, monkeypatch):
    names = [f"db.t{number}" for number in range(1000)]
    txn_id = t.open()
    t.write_ids.allocate_table_write_ids([Allocation(named(name), (txn_id,)) for name in names])
    seen = snapshot_of(t).format()
    statements = []
    once = t.db.once
    monkeypatch.setattr(type(t.db), "once", lambda self, *args, **kw: statements.append(args[0]) or once(*args, **kw))

    lists = t.lists(names, seen)

    assert len(statements) == 1
    assert [one.invalid for one in lists] == [(1,)] * 1000


def test_a_list_for_nobody(t):
    assert t.lists([]) == []


def test_an_unknown_txn_list_text(t):
    from metastore.errors import InvalidInputError

    with pytest.raises(InvalidInputError):
        t.reads("db.t", "nonsense")
    assert ValidTxnList.parse("4:1:1,3:") == snapshot_after_three(t)


def snapshot_after_three(t):
    t.open(4)
    t.commit(2)
    t.commit(4)
    return snapshot_of(t)


def test_names_with_a_catalog(t):
    txn_id = t.open()
    t.write_ids.allocate_table_write_ids([Allocation(TableName("cat", "db", "t"), (txn_id,))])

    assert t.reads("cat.db.t").invalid == (1,)
    assert t.reads("db.t").high_watermark == 0


def test_w23_the_state_of_a_replicated_table(t):
    state = ReplicatedState(T, "db.t:10:5:5:3,7", "a", "h")
    t.write_ids.repl_tbl_writeid_state(state)
    t.write_ids.repl_tbl_writeid_state(state)

    assert t.reads("db.t").aborted == {3, 7}
    assert t.write_ids.get_max_allocated_table_write_id(T) == 10
    assert t.rows("SELECT type, partition FROM compaction_queue") == [("major", "")]
    assert t.rows("SELECT DISTINCT state, abort_code FROM txns") == [("aborted", 51002)]
    t.reaper.tick()
    assert t.reads("db.t").aborted == {3, 7}
