"""The rules of commit, snapshot and expiry, against tables of cases and against java.util.BitSet's definition."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.snapshots import decode_aborted_bits
from metastore.ids import TableName
from metastore.txns.core.rules import (
    AbortCode,
    CommittedWrite,
    Component,
    ExclusiveLock,
    LastHeard,
    Operation,
    Snapshot,
    TxnState,
    abort_code,
    accepts_more,
    any_expired,
    conflicts,
    encode_bits,
    expiry_cutoffs,
    first_conflict,
    reader_snapshot,
    required_open,
    shielded,
)

T = TableName("hive", "db", "t")
I, U, D = Operation.INSERT, Operation.UPDATE, Operation.DELETE


def mine(operation, partition="p=1", txn_id=18, name=T):
    return Component(txn_id, name, partition, operation)


def theirs(operation, partition="p=1", txn_id=17, commit_id=20, name=T):
    return CommittedWrite(txn_id, commit_id, name, partition, operation)


# TXN-28: second to commit (row) against first committed (column); insert overwrite is an update.
@pytest.mark.parametrize(("second", "first", "conflicting"), [
    (I, I, False), (I, U, False), (I, D, False),
    (U, I, False), (U, U, True), (U, D, True),
    (D, I, False), (D, U, True), (D, D, True),
    (Operation.COMPACT, U, False), (U, Operation.COMPACT, False)])
def test_conflict_matrix(second, first, conflicting):
    assert conflicts(mine(second), theirs(first)) is conflicting


@pytest.mark.parametrize(("txn_id", "overlaps"), [(18, True), (20, True), (21, False)])
def test_a_transaction_opened_after_the_commit_does_not_overlap(txn_id, overlaps):
    assert conflicts(mine(U, txn_id=txn_id), theirs(U, txn_id=17, commit_id=20)) is overlaps


@pytest.mark.parametrize("component", [
    mine(U, partition="p=2"), mine(U, partition=""), mine(U, name=T._replace(db="other")),
    mine(U, name=T._replace(table="u")), mine(U, name=T._replace(catalog="cat")), mine(U, txn_id=17)])
def test_other_objects_and_oneself_never_conflict(component):
    assert not conflicts(component, theirs(U))


def test_a_table_level_write_does_not_meet_a_partition_at_commit():
    assert not conflicts(mine(U, partition="p=1"), theirs(U, partition=""))
    assert conflicts(mine(U, partition=""), theirs(U, partition=""))


def test_the_message_names_both_ids_the_object_and_the_letters():
    found = first_conflict([mine(D)], [theirs(U, commit_id=25, txn_id=19), theirs(U)])

    assert found is not None
    assert found.message(26) == ("Aborting [txnid:18,26] due to a write conflict on db/t/p=1 committed by "
                                 "[txnid:17,20] d/u")


def test_the_message_of_an_unpartitioned_table_has_no_partition():
    found = first_conflict([mine(U, partition="")], [theirs(D, partition="")])

    assert found is not None
    assert " on db/t committed by " in found.message(26)


components = st.builds(mine, st.sampled_from([I, U, D]), st.sampled_from(["", "p=1", "p=2"]), st.integers(1, 6),
                       st.sampled_from([T, T._replace(table="u")]))
writes = st.builds(theirs, st.sampled_from([I, U, D]), st.sampled_from(["", "p=1", "p=2"]), st.integers(1, 6),
                   st.integers(1, 9), st.sampled_from([T, T._replace(table="u")]))


@given(st.lists(components), st.lists(writes))
def test_first_conflict_finds_one_exactly_when_any_pair_conflicts(declared, written):
    pairs = [(one, other) for one in declared for other in written if conflicts(one, other)]

    found = first_conflict(declared, written)

    assert (found is None) == (not pairs)
    assert found is None or (found.component, found.winner) in pairs


@pytest.mark.parametrize(("lock", "covers"), [
    (ExclusiveLock(18, "hive", "db", "t", "p=1"), True), (ExclusiveLock(18, "hive", "db", "t", ""), True),
    (ExclusiveLock(18, "hive", "db", "", ""), True), (ExclusiveLock(18, "hive", "db", "t", "p=2"), False),
    (ExclusiveLock(18, "hive", "db", "u", ""), False), (ExclusiveLock(19, "hive", "db", "t", ""), False),
    (ExclusiveLock(18, "cat", "db", "t", ""), False)])
def test_only_ones_own_lock_over_the_object_shields(lock, covers):
    assert shielded([mine(U)], [lock]) is covers


def test_every_changed_component_needs_a_shield_and_inserts_need_none():
    lock = ExclusiveLock(18, "hive", "db", "t", "p=1")

    assert shielded([mine(U), mine(I, partition="p=2")], [lock])
    assert not shielded([mine(U), mine(D, partition="p=2")], [lock])


def test_bits_are_least_significant_first():
    assert encode_bits(bytes([0, 1, 0, 1, 0, 0, 0, 0, 1])) == b"\x0a\x01"
    assert encode_bits(bytes([1, 0, 0, 0, 0, 0, 0, 0, 0, 0])) == b"\x01"
    assert encode_bits(b"") == encode_bits(bytes(20)) == b""


@given(st.lists(st.booleans(), max_size=70))
def test_bits_decode_to_what_was_encoded(aborted):
    ids = list(range(100, 100 + len(aborted)))

    bits = encode_bits(bytes(aborted))

    assert decode_aborted_bits(ids, bits) == {one for one, flag in zip(ids, aborted, strict=True) if flag}
    assert not bits.endswith(b"\0")


def test_a_reader_never_sees_later_ids_and_its_own_is_no_exception():
    snapshot = Snapshot(high_watermark=4, open_txns=[1, 3, 4], aborted_bits=b"\x01", min_open_txn=3)

    txns = reader_snapshot(snapshot, 3)

    assert (txns.high_watermark, txns.exceptions, txns.aborted, txns.min_open_txn) == (3, (1,), {1}, None)
    assert [txns.is_valid(txn_id) for txn_id in (1, 2, 3, 4)] == [False, True, True, False]


def test_a_reader_outside_a_transaction_sees_up_to_the_mark():
    txns = reader_snapshot(Snapshot(4, [1, 3, 4], b"\x01", 3))

    assert (txns.high_watermark, txns.exceptions, txns.min_open_txn) == (4, (1, 3, 4), 3)


@given(st.integers(0, 30).flatmap(lambda mark: st.tuples(
    st.just(mark), st.dictionaries(st.integers(1, max(mark, 1)), st.booleans()), st.integers(0, mark + 3))))
def test_a_readers_list_is_what_validity_is_defined_as(drawn):
    mark, listed, current = drawn
    ids = sorted(one for one in listed if one <= mark)
    snapshot = Snapshot(mark, ids, encode_bits(bytes(listed[one] for one in ids)), None)

    txns = reader_snapshot(snapshot, current)

    for txn_id in range(1, mark + 5):
        later = txn_id > mark or (0 < current < txn_id)
        assert txns.is_valid(txn_id) is (not later and (txn_id not in ids or txn_id == current))
        assert txns.is_aborted(txn_id) is (txn_id in ids and listed[txn_id] and (current == 0 or txn_id < current))
    opened = [one for one in ids if not listed[one] and not 0 < current <= one]
    assert txns.min_open_txn == min(opened, default=None)


@pytest.mark.parametrize(("count", "refusing", "accepts"), [
    (9, False, True), (10, False, False), (9, True, False), (8, True, True)])
def test_the_guard_has_hysteresis(count, refusing, accepts):
    assert accepts_more(count, 10, refusing=refusing) is accepts


@pytest.mark.parametrize(("number", "code"), [
    (50005, AbortCode.ROLLBACK), (None, AbortCode.NONE), (7, AbortCode.NONE), (2**62, AbortCode.NONE)])
def test_unknown_abort_codes_mean_none(number, code):
    assert abort_code(number) is code


def test_replicated_transactions_expire_later():
    now = datetime(2026, 1, 12, tzinfo=UTC)

    cutoffs = expiry_cutoffs(now, timedelta(seconds=300), timedelta(days=11))

    assert cutoffs == (now - timedelta(seconds=300), datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("state", "text"), [
    (TxnState.ABORTED, "Transaction txnid:7 already aborted"),
    (TxnState.COMMITTED, "Transaction txnid:7 is already committed."),
    (None, "No such transaction txnid:7")])
def test_adding_to_a_transaction_that_is_not_open(state, text):
    assert str(required_open(7, state)) == text
    assert required_open(7, TxnState.OPEN) is None


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("normal", "replicated", "expired"), [
    (None, None, False), (299, None, False), (301, None, True), (None, 301, False), (299, 12 * 86_400, True), (301, 5, True)])
def test_whether_anybody_was_silent_for_too_long(normal, replicated, expired):
    ago = [None if age is None else NOW - timedelta(seconds=age) for age in (normal, replicated)]

    assert any_expired(LastHeard(NOW, *ago), expiry_cutoffs(NOW, timedelta(seconds=300), timedelta(days=11))) is expired


def test_bits_beyond_the_list_are_nobodys():
    assert reader_snapshot(Snapshot(9, [4, 5], b"\xfe\xff\xff", None)).aborted == {5}
