"""Which write ids a reader may not see, and what an allocation hands out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.snapshots import ValidTxnList
from metastore.errors import InvalidRequestError, NoSuchTxnError, TxnAbortedError
from metastore.ids import TableName
from metastore.txns.core.rules import LARGEST_ID, TxnRecord, TxnState, TxnType
from metastore.write_ids.rules import (
    Allocation,
    TableWriteIds,
    check_replayed,
    high_watermark,
    plan_allocations,
    valid_write_ids,
)

T = TableName("hive", "db", "t")
U = TableName("hive", "db", "u")


def records(*, aborted=(), committed=(), read_only=(), open=()):
    return {**{one: TxnRecord(one, TxnState.OPEN, TxnType.DEFAULT) for one in open},
            **{one: TxnRecord(one, TxnState.ABORTED, TxnType.DEFAULT) for one in aborted},
            **{one: TxnRecord(one, TxnState.COMMITTED, TxnType.DEFAULT) for one in committed},
            **{one: TxnRecord(one, TxnState.OPEN, TxnType.READ_ONLY) for one in read_only}}


def test_a_table_without_write_ids():
    known = valid_write_ids("db.t", TableWriteIds(), ValidTxnList(9))

    assert (known.high_watermark, known.invalid, known.min_open_write_id) == (0, (), None)


def test_open_and_aborted_owners():
    table = TableWriteIds(next_write_id=4, mapped=3, invalid=[(2, 12), (3, 13)], owned=3)

    known = valid_write_ids("db.t", table, ValidTxnList(13, 12, (12, 13), frozenset({13})))

    assert (known.high_watermark, known.invalid, known.aborted, known.min_open_write_id) == (3, (2, 3), {3}, 2)


def test_an_owner_behind_the_mark_counts_as_open():
    table = TableWriteIds(next_write_id=4, mapped=3, invalid=[(2, 12)])

    known = valid_write_ids("db.t", table, ValidTxnList(11))

    assert (known.invalid, known.aborted, known.min_open_write_id) == ((2,), frozenset(), 2)


def test_nothing_mapped_but_seeded_or_purged():
    assert high_watermark(TableWriteIds(next_write_id=8)) == 7
    assert high_watermark(TableWriteIds(next_write_id=8, purged=5, mapped=4)) == 5
    assert high_watermark(TableWriteIds(next_write_id=8, purged=5, mapped=6)) == 6


def test_w18_the_list_is_cut_where_all_valid_owners_are_forgotten():
    table = TableWriteIds(next_write_id=8, purged=5, mapped=7, invalid=[(6, 26), (7, 27)], owned=2)

    known = valid_write_ids("db.t", table, ValidTxnList(30, 26, (26, 27), frozenset({27})))

    assert (known.high_watermark, known.invalid, known.min_open_write_id, known.aborted) == (6, (6,), 6, frozenset())


def test_w31_a_retained_aborted_id_does_not_hide_later_purged_ones():
    table = TableWriteIds(next_write_id=4, purged=3, mapped=2, invalid=[(2, 12)], owned=1)

    known = valid_write_ids("db.t", table, ValidTxnList(30, None, (12,), frozenset({12})))

    assert [known.is_valid(one) for one in (1, 2, 3)] == [True, False, True]
    assert (known.high_watermark, known.aborted, known.min_open_write_id) == (3, {2}, None)


@given(st.data())
def test_a_list_says_of_every_id_what_its_owner_is(data):
    """TXN-25 (d), WID-7: up to the mark, invalid exactly where the owner is not valid; cutting the list changes nothing."""
    owners = data.draw(st.lists(st.integers(1, 12), unique=True, max_size=8))
    mark = data.draw(st.integers(0, 12))
    listed = data.draw(st.dictionaries(st.integers(1, 12), st.booleans()))
    exceptions = tuple(sorted(one for one in listed if one <= mark))
    txns = ValidTxnList(mark, None, exceptions, frozenset(one for one in exceptions if listed[one]))
    owned = list(enumerate(owners, 1))
    mapped = max((write_id for write_id, txn_id in owned if txn_id <= mark), default=0)
    table = TableWriteIds(
        next_write_id=len(owned) + 1 if owned else 0, mapped=mapped,
        invalid=[(write_id, txn_id) for write_id, txn_id in owned if not txns.is_valid(txn_id)],
        owned=None if mapped and txns.is_valid(owners[mapped - 1]) else mapped)

    known = valid_write_ids("db.t", table, txns)

    for write_id, txn_id in owned:
        assert known.is_valid(write_id) is txns.is_valid(txn_id)
        assert not known.is_aborted(write_id) or txns.is_aborted(txn_id)


def test_w05_ids_go_to_transactions_in_ascending_order():
    plan = plan_allocations([Allocation(T, (5, 4))], records(open=(4, 5)), {}, {T: 3})

    assert plan.answers == [{4: 3, 5: 4}]
    assert list(plan.answers[0]) == [4, 5]
    assert plan.next_write_ids == {T: 5}


def test_what_a_transaction_has_is_given_again_and_only_the_missing_are_new():
    plan = plan_allocations([Allocation(T, (4, 5, 4)), Allocation(T, (5,)), Allocation(U, (4,))],
                            records(open=(4, 5)), {(5, T): 1}, {T: 2, U: 1})

    assert plan.answers == [{4: 2, 5: 1}, {5: 1}, {4: 1}]
    assert plan.allocated == {(4, T): 2, (4, U): 1}


def test_w09_reallocation_drops_the_old_id():
    plan = plan_allocations([Allocation(T, (4,), reallocate=True)], records(open=(4,)), {(4, T): 1}, {T: 3})

    assert (plan.dropped, plan.answers, plan.next_write_ids) == ([(4, T)], [{4: 3}], {T: 4})


@pytest.mark.parametrize(("txns", "error"), [
    (records(open=(4,), aborted=(5,)), TxnAbortedError), (records(open=(4,), committed=(5,)), NoSuchTxnError),
    (records(open=(4,)), NoSuchTxnError), (records(open=(4,), read_only=(5,)), InvalidRequestError)])
def test_w08_one_bad_transaction_and_nothing_is_allocated(txns, error):
    plan = plan_allocations([Allocation(T, (4, 5)), Allocation(T, (4,))], txns, {}, {T: 1})

    refused, served = plan.answers
    assert isinstance(refused, error)
    assert served == {4: 1}
    assert plan.allocated == {(4, T): 1}


@pytest.mark.parametrize("owners", [[(7, 1)], [(9, 4), (7, 5), (8, 6)]])
def test_what_a_source_warehouse_can_have_given_out(owners):
    check_replayed(owners)


@pytest.mark.parametrize(("owners", "complaint"), [
    ([], "consecutive"), ([(7, 0)], "consecutive"), ([(7, LARGEST_ID + 1)], "consecutive"),
    ([(7, 1), (8, 3)], "consecutive"), ([(7, 2), (8, 1)], "consecutive"), ([(7, 1), (7, 2)], "twice")])
def test_what_no_source_warehouse_gives_out(owners, complaint):
    with pytest.raises(InvalidRequestError, match=complaint):
        check_replayed(owners)
