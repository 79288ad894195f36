"""Valid write-id and transaction lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.snapshots import (
    MOST_IN_RANGES,
    NO_OPEN,
    CompactorWriteIdList,
    RangeState,
    TxnWriteIds,
    ValidTxnList,
    ValidWriteIdList,
    decode_aborted_bits,
    listed_ids,
)
from metastore.errors import InvalidInputError

NONE, SOME, ALL = RangeState.NONE, RangeState.SOME, RangeState.ALL
parse = ValidWriteIdList.parse


def test_one_open_id() -> None:
    ids = parse("db.t:100:4:4:")

    assert ids == ValidWriteIdList("db.t", 100, 4, (4,))
    assert not ids.is_valid(4)
    ranges = [(1, 3), (4, 4), (2, 5), (90, 120), (101, 120)]
    assert [ids.range_state(*one) for one in ranges] == [ALL, NONE, SOME, SOME, NONE]
    assert ids.is_valid_base(3)
    assert not ids.is_valid_base(4)
    assert ids.open == (4,)


def test_nothing_invalid() -> None:
    ids = parse(f"db.t:100:{NO_OPEN}::")

    assert ids == parse(f"db.t:100:{NO_OPEN}") == parse("db.t:100")
    assert ids.min_open_write_id is None
    assert ids.is_valid(4)
    assert not ids.is_valid(101)
    assert ids.range_state(90, 120) is SOME
    assert ids.is_valid_base(100)
    assert not ids.is_valid_base(101)


def test_open_and_aborted_ids() -> None:
    ids = parse("db.t:100:4:4:7,9")

    assert ids.invalid == (4, 7, 9)
    assert ids.is_aborted(7)
    assert not ids.is_aborted(4)
    assert ids.aborted_range_state(7, 7) is ALL
    assert ids.aborted_range_state(4, 9) is SOME
    assert ids.aborted_range_state(1, 4) is NONE
    assert ids.aborted_range_state(101, 120) is NONE


def test_aborted_ids_do_not_stop_a_base() -> None:
    ids = parse(f"db.t:100:{NO_OPEN}::7,9")

    assert not ids.is_valid(7)
    assert ids.is_valid_base(50)


def test_a_missing_last_field() -> None:
    ids = parse("db.t:10:3:3,5")

    assert ids == parse("db.t:10:3:3,5:")
    assert ids.range_state(1, 3) is SOME
    assert ids.range_state(90, 120) is NONE
    assert not ids.is_valid_base(3)


@pytest.mark.parametrize("text", ["db.t", "db.t:x", "db.t:1:2:3:4:5", "db.t:1:2:a", ""])
def test_what_cannot_be_read_is_shown(text: str) -> None:
    with pytest.raises(InvalidInputError, match="the form is"):
        parse(text)


def test_a_compactor_takes_whole_ranges() -> None:
    ids = CompactorWriteIdList.parse(f"db.t:4:{NO_OPEN}::2")

    assert ids.range_state(2, 5) is NONE
    assert ids.range_state(1, 4) is ALL
    assert ids.is_aborted(2)


def test_the_compactors_list_ends_below_the_first_open_id() -> None:
    ids = parse("db.t:10:5:5,8:2,7").for_compactor()

    assert ids == CompactorWriteIdList("db.t", 4, None, (2,), frozenset({2}))
    assert ids.format() == f"db.t:4:{NO_OPEN}::2"
    assert ids.for_compactor() == ids


def test_the_compactors_list_without_open_ids_keeps_the_mark() -> None:
    assert parse(f"db.t:10:{NO_OPEN}::2").for_compactor().high_watermark == 10


def test_a_writer_sees_its_own_earlier_statements() -> None:
    ids = parse("db.t:10:5:5,8:2").with_own(8)

    assert ids.is_valid(8)
    assert ids == ValidWriteIdList("db.t", 10, 5, (2, 5), frozenset({2}))


def test_an_own_id_above_the_mark_brings_nobody_elses_with_it() -> None:
    ids = parse(f"db.t:10:{NO_OPEN}::").with_own(13)

    assert [ids.is_valid(one) for one in (10, 11, 12, 13, 14)] == [True, False, False, True, False]
    assert ids.min_open_write_id == 11


def test_transaction_lists() -> None:
    txns = ValidTxnList.parse("55:20:20,30:25")

    assert txns == ValidTxnList(55, 20, (20, 25, 30), frozenset({25}))
    assert [txns.is_valid(one) for one in (0, 20, 25, 40, 56)] == [True, False, False, True, False]
    assert txns.is_aborted(25)
    assert not txns.is_aborted(20)
    assert txns.format() == "55:20:20,30:25"
    assert txns.exceptions_text == "20,25,30"


@pytest.mark.parametrize(("text", "opened", "aborted"), [
    ("20:1:1-6:", range(1, 7), []),                                     # Hive 4: five or more in a row
    ("20:1:1-6", range(1, 7), []),
    ("20:9223372036854775807::3-9,11,13-17", [], [*range(3, 10), 11, *range(13, 18)]),
    ("20:2:2,4-8,10:3,12-16", [2, 4, 5, 6, 7, 8, 10], [3, 12, 13, 14, 15, 16]),
    ("20:2:2,3,4:", [2, 3, 4], []),
    ("50:10:10-20,14,16-30", range(10, 31), []),                        # the example in Hive's comment
    ("20:5:9-5", [], []),
    ("20:2:2:3:4:9", [2, 3, 4, 9], []),                                 # Hive 2.3, which does not tell what is aborted
    ("20:2:2", [2], []),
])
def test_every_form_of_a_transaction_list(text: str, opened: list[int], aborted: list[int]) -> None:
    txns = ValidTxnList.parse(text)

    assert txns.exceptions == tuple(sorted({*opened, *aborted}))
    assert txns.aborted == frozenset(aborted)
    assert not txns.is_valid(txns.exceptions[-1] if txns.exceptions else 21)
    assert "-" not in txns.format()                                     # Hive 3 cannot read a range
    assert ValidTxnList.parse(txns.format()) == txns


def test_ranges_are_read_in_every_list() -> None:
    assert parse("db.t:20:1:1-6:7-11") == ValidWriteIdList("db.t", 20, 1, tuple(range(1, 12)), frozenset(range(7, 12)))
    assert parse("a-1.t-2:20:1:1:").table == "a-1.t-2"
    assert TxnWriteIds.parse("5$db.t:20:1:1-6:$").tables == (parse("db.t:20:1:1,2,3,4,5,6"),)


@pytest.mark.parametrize("ids", ["1-", "-6", "-", "1-6-9", "1--6", "1 - 6", "1_0", "\u0661", "9223372036854775808", "9" * 5000,
                                 f"{10**22}-{2 * 10**22}", "1;2", "2:3-5:4"])
def test_no_form_of_hives(ids: str) -> None:
    with pytest.raises(InvalidInputError, match="the form is"):
        ValidTxnList.parse(f"20:1:{ids}:7-12")


@pytest.mark.parametrize("ids", [f"1-{MOST_IN_RANGES + 1}", f"9-1,1-{MOST_IN_RANGES},2-2", "1-9223372036854775807",
                                 ",".join(["1-1000"] * 501)])
def test_a_short_text_cannot_ask_for_endless_ids(ids: str) -> None:
    with pytest.raises(InvalidInputError, match=f"at most {MOST_IN_RANGES} are read"):
        ValidTxnList.parse(f"9223372036854775807:1:{ids}:")


def test_how_much_a_text_stands_for() -> None:
    assert listed_ids("20:1:1-6:7,9") == 3 + 6 + 1
    assert len(ValidTxnList.parse(f"{MOST_IN_RANGES}:1:1-{MOST_IN_RANGES}").exceptions) == MOST_IN_RANGES


def test_everything_is_committed_in_the_full_list() -> None:
    assert ValidTxnList.everything().is_valid(2**62)


def test_lists_of_all_tables() -> None:
    text = "55$db.t:10:3:3:7$db.u:4:9223372036854775807::"

    lists = TxnWriteIds.parse(text)

    assert lists.txn_id == 55
    assert lists.of_table("db.t") == parse("db.t:10:3:3:7")
    assert lists.of_table("db.x") is None
    assert lists.format() == text
    assert TxnWriteIds.parse("55$").tables == ()


def test_lists_of_all_tables_need_a_transaction() -> None:
    with pytest.raises(InvalidInputError, match="txnId"):
        TxnWriteIds.parse("db.t:1")


def test_the_bit_set_is_javas() -> None:
    exceptions = list(range(100, 120))

    assert decode_aborted_bits(exceptions, b"\xaa\xaa\x0a") == frozenset(exceptions[1::2])
    assert decode_aborted_bits(exceptions, b"") == frozenset()
    assert decode_aborted_bits(exceptions, b"\x01") == {100}
    assert decode_aborted_bits([1], b"\xff") == {1}


@st.composite
def _lists(draw: st.DrawFn) -> ValidWriteIdList:
    mark = draw(st.integers(0, 30))
    invalid = tuple(sorted(draw(st.sets(st.integers(1, max(1, mark)))))) if mark else ()
    aborted = frozenset(one for one in invalid if draw(st.booleans()))
    opened = [one for one in invalid if one not in aborted]
    return ValidWriteIdList("db.t", mark, min(opened, default=None), invalid, aborted)


@given(_lists())
def test_every_list_is_read_back(ids: ValidWriteIdList) -> None:
    assert parse(ids.format()) == ids


@given(_lists())
def test_the_highest_valid_write_id(ids: ValidWriteIdList) -> None:
    assert ids.highest_valid == max(filter(ids.is_valid, range(1, ids.high_watermark + 1)), default=0)


@given(_lists(), st.integers(1, 35), st.integers(0, 10))
def test_ranges_are_counted_right(ids: ValidWriteIdList, low: int, length: int) -> None:
    inside = range(low, low + length + 1)

    valid = [ids.is_valid(one) for one in inside]
    aborted = [ids.is_aborted(one) for one in inside]

    assert ids.range_state(inside[0], inside[-1]) is _state(valid)
    assert ids.aborted_range_state(inside[0], inside[-1]) is _state(aborted)


@given(_lists())
def test_a_compactor_only_works_on_what_is_settled(ids: ValidWriteIdList) -> None:
    compactor = ids.for_compactor()

    assert not [one for one in ids.open if one <= compactor.high_watermark]
    assert compactor.open == ()
    for one in range(1, compactor.high_watermark + 1):
        assert compactor.is_valid(one) == ids.is_valid(one)


@given(st.lists(st.integers(1, 10**6), unique=True).map(sorted), st.data())
def test_bit_sets_are_read_back(exceptions: list[int], data: st.DataObject) -> None:
    aborted = {one for one in exceptions if data.draw(st.booleans())}

    bits = sum(1 << position for position, one in enumerate(exceptions) if one in aborted)
    assert decode_aborted_bits(exceptions, bits.to_bytes(len(exceptions) // 8 + 1, "little")) == aborted


def _state(flags: list[bool]) -> RangeState:
    return ALL if all(flags) else SOME if any(flags) else NONE


def test_what_a_list_is_made_to_hide_counts_as_open() -> None:
    txns = ValidTxnList.parse("55:30:30:25")

    assert txns.without([20, 30]) == ValidTxnList(55, 20, (20, 25, 30), frozenset({25}))
    assert txns.without([], 40) == ValidTxnList(40, 30, (25, 30), frozenset({25}))
    assert not txns.without([50]).is_valid(50)


@given(st.sets(st.integers(1, 60)), st.integers(0, 70), st.lists(st.integers(1, 80)))
def test_hidden_are_those_that_are_not_valid(exceptions: set[int], mark: int, txn_ids: list[int]) -> None:
    txns = ValidTxnList(mark, None, tuple(sorted(exceptions)))
    assert txns.hidden(txn_ids) == {txn_id for txn_id in txn_ids if not txns.is_valid(txn_id)}


@pytest.mark.parametrize("txn_ids", [[3, 4, 5001], range(1, 5002)], ids=["few, looked up", "many"])
def test_few_and_many_hidden_transactions(txn_ids: list[int]) -> None:
    txns = ValidTxnList(5000, None, tuple(range(2, 5001, 2)))
    assert txns.hidden(txn_ids) == {txn_id for txn_id in txn_ids if txn_id % 2 == 0 or txn_id == 5001}
