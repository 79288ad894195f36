"""When old files may go, and which (COMP-17 to COMP-19)."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.names import BaseName
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import ListedFile, acid_state
from metastore.compaction.cleaning.rules import (
    GONE,
    WHOLE_TABLE,
    AbortedWrite,
    CleaningVerdict,
    Covered,
    DeclaredReading,
    OpenTxn,
    acid_directories,
    cleaning_txns,
    cleaning_write_ids,
    dead_staging,
    gate,
    gate_of_table,
    is_forgettable,
    is_hidden,
    is_kept,
    is_own,
    may_come_to_read,
    may_read,
    may_read_old_files,
    mixed_write_ids,
    next_in_line,
    results_of,
    staging_of,
    superseded_outputs,
    top_directories,
)
from metastore.compaction.queue.rules.requests import Entity
from metastore.ids import TableName
from tests.unit.compaction.queue.test_requests import DAY, NOW, request

ZERO = timedelta(0)


def ready(**fields):
    return request("r", **{"txn_id": 26, "next_txn_id": 30, "committed_at": NOW - DAY, "highest_write_id": 25, **fields})


def reader(txn_id, reading=DeclaredReading.ANYTHING):
    return OpenTxn(txn_id, "ann", "h1", reading)


def writer(write_id, *, may_publish=False):
    return AbortedWrite(20, "i", write_id, of_compaction=False, may_publish=may_publish)


def publisher(write_id):
    return writer(write_id, may_publish=True)


def compaction(write_id, txn_id):
    return AbortedWrite(txn_id, "c", write_id, of_compaction=True, may_publish=False)


@pytest.mark.parametrize(("this", "of_any", "reading"), [
    (None, None, DeclaredReading.ANYTHING), (None, 0, DeclaredReading.OTHERS), (0, 0, DeclaredReading.THIS), (7, 9, DeclaredReading.THIS),
    (-1, 0, DeclaredReading.NOT_THIS), (None, -1, DeclaredReading.ANYTHING)])
def test_reading(this, of_any, reading):
    assert DeclaredReading.of(this, of_any) is reading


@pytest.mark.parametrize(("fields", "txn_state", "open_ids", "verdict", "reason"), [
    ({}, "committed", [], CleaningVerdict.CLEAN, ""),
    ({}, None, [], CleaningVerdict.CLEAN, ""),
    ({}, "committed", [31], CleaningVerdict.CLEAN, ""),                                   # COMP-C07
    ({}, "committed", [30], CleaningVerdict.WAIT, "transaction 30 of ann@h1"),            # COMP-C06: the boundary is strict
    ({}, "committed", [3, 40], CleaningVerdict.WAIT, "transaction 3 "),                   # COMP-C05
    ({}, "open", [], CleaningVerdict.WAIT, "commit of the compaction's transaction 26"),  # COMP-C37
    ({}, "aborted", [], CleaningVerdict.FAIL, "was aborted"),
    ({"next_txn_id": None, "committed_at": None}, None, [], CleaningVerdict.NOTE_END, "point of commit"),
    ({"not_before": NOW + DAY, "error_message": "disk full"}, "committed", [], CleaningVerdict.WAIT, "disk full"),   # COMP-C20
    ({"not_before": NOW}, "committed", [], CleaningVerdict.CLEAN, ""),
    ({"committed_at": None}, "committed", [], CleaningVerdict.CLEAN, ""),                 # COMP-C12
])
def test_gate(fields, txn_state, open_ids, verdict, reason):
    found = gate(ready(**fields), NOW, ZERO, txn_state, [reader(one) for one in open_ids], per_table=False)

    assert found.verdict is verdict
    assert reason in found.reason


@pytest.mark.parametrize(("age", "verdict"), [(4, CleaningVerdict.WAIT), (5, CleaningVerdict.CLEAN), (6, CleaningVerdict.CLEAN)])
def test_delayed_cleanup(age, verdict):
    """COMP-C10."""
    one = ready(committed_at=NOW - timedelta(seconds=age))

    assert gate(one, NOW, timedelta(seconds=5), "committed", [], per_table=False).verdict is verdict


def test_files_of_a_compaction_without_a_time_are_not_kept():
    assert is_kept(ready(committed_at=NOW), NOW, DAY)
    assert not is_kept(ready(committed_at=None, enqueued_at=NOW), NOW, DAY)


@pytest.mark.parametrize(("days", "fields", "reason", "looked_at_after"), [
    (None, {}, None, None),
    ("0", {}, None, None),
    ("1", {}, None, None),                                                       # committed a day ago
    ("2", {}, "acid.history.retention.days keeps replaced files until ", timedelta(minutes=5)),
    ("2", {"committed_at": NOW - 2 * DAY + timedelta(seconds=9)}, "keeps replaced files until ", timedelta(seconds=9)),
    ("1", {"committed_at": None, "enqueued_at": NOW - 2 * DAY}, None, None),
    ("x", {}, "nothing is removed: 'acid.history.retention.days' must be a whole number", timedelta(minutes=5))])
def test_a_table_may_keep_its_past(days, fields, reason, looked_at_after):
    one, parameters = ready(**fields), {} if days is None else {"acid.history.retention.days": days}
    found = gate_of_table(parameters, {}, NOW, replaced_at=one.committed_at or one.enqueued_at)

    assert (found.verdict is CleaningVerdict.CLEAN) is (reason is None)
    assert (reason or "") in found.reason
    assert found.not_before == (looked_at_after and NOW + looked_at_after)
    assert gate_of_table(parameters, {}, NOW).verdict is CleaningVerdict.CLEAN  # what an aborted transaction wrote has no past


@pytest.mark.parametrize(("of_table", "of_partition"), [({"no_cleanup": "TRUE"}, {}), ({}, {"NO_CLEANUP": "true"})])
def test_a_table_may_refuse_to_be_cleaned(of_table, of_partition):
    found = gate_of_table(of_table, of_partition, NOW, replaced_at=NOW, shares="shared")

    assert found == (CleaningVerdict.REFUSE, "NO_CLEANUP is set: nothing was removed", None)


def test_a_table_that_shares_its_directory_waits():
    assert gate_of_table({}, {}, NOW, shares="shared with d.u") == (CleaningVerdict.WAIT, "shared with d.u", NOW + timedelta(minutes=5))


BOTH, ONE = Covered(BaseName(5, 9), BaseName(5, 9)), Covered(BaseName(5), BaseName(5))


@pytest.mark.parametrize(("write", "up_to", "keep", "covered", "goes"), [
    (writer(7), None, (), Covered(), True),                       # it has aborted itself: nothing more comes
    (writer(7), 7, (), Covered(), True), (writer(7), 6, (), Covered(), False), (writer(7), None, {7}, GONE, False),
    (publisher(5), None, (), Covered(), False),                   # its process may still publish
    (publisher(4), None, (), ONE, True), (publisher(5), None, (), ONE, False), (publisher(5), None, (), BOTH, True),
    (publisher(6), None, (), BOTH, False), (publisher(6), None, (), GONE, True), (publisher(6), None, (), WHOLE_TABLE, False),
    (publisher(None), None, (), Covered(), True),                 # it has no id under which it could publish
    (compaction(5, 8), None, (), Covered(), False), (compaction(5, 8), None, (), BOTH, True), (compaction(5, 9), None, (), BOTH, False),
    (compaction(4, 90), None, (), BOTH, True), (compaction(4, 90), None, (), ONE, True), (compaction(9, 90), None, (), WHOLE_TABLE, True)])
def test_which_aborted_writes_may_be_forgotten(write, up_to, keep, covered, goes):
    """ADR 38."""
    assert is_forgettable(write, up_to, keep, covered) is goes


@pytest.mark.parametrize(("reading", "reads", "may_come", "why"), [
    (DeclaredReading.ANYTHING, True, True, "has not said what it reads"),
    (DeclaredReading.THIS, True, True, "has said that it reads this table"),
    (DeclaredReading.OTHERS, False, True, ""),                                           # COMP-C07
    (DeclaredReading.NOT_THIS, False, False, "")])
def test_what_a_reader_has_said(reading, reads, may_come, why):
    """A request with an older reader waits if it reads the table; who is younger does not matter, whatever it reads."""
    old, young = reader(30, reading), reader(31, reading)
    found = gate(ready(), NOW, ZERO, "committed", [young, old], per_table=True)

    assert may_read(old, per_table=True) is may_read_old_files(old, ready(), per_table=True) is reads
    assert may_come_to_read(old, per_table=True) is may_come
    assert may_read_old_files(young, ready(), per_table=True) is False
    assert may_read_old_files(old, ready(next_txn_id=None), per_table=True) is reads
    assert (found.verdict is CleaningVerdict.WAIT, why in found.reason) == (reads, True)


@pytest.mark.parametrize(("next_txn_id", "readers", "hidden"), [
    (None, [], True), (30, [], False), (30, [31, 32], False), (30, [32, 30], True)])
def test_a_result_is_hidden_from_who_was_open_at_its_commit(next_txn_id, readers, hidden):
    assert is_hidden(ready(next_txn_id=next_txn_id), [reader(one) for one in readers]) is hidden


@pytest.mark.parametrize("reading", DeclaredReading)
def test_where_the_setting_is_off_nothing_that_was_said_counts(reading):
    assert may_read(reader(30, reading), per_table=False)
    assert may_come_to_read(reader(30, reading), per_table=False)


@given(st.integers(1, 60), st.integers(1, 60))
def test_no_reader_from_before_the_commit_is_ever_passed_over(txn_id, next_txn_id):
    one = ready(next_txn_id=next_txn_id)

    assert may_read_old_files(reader(txn_id), one, per_table=False) is (txn_id <= next_txn_id)


def test_one_request_of_an_entity_at_a_time_lowest_mark_first():
    other = Entity(TableName("hive", "d", "u"))
    rows = [ready(id=3, highest_write_id=30), ready(id=4, highest_write_id=22), ready(id=5, entity=other),
            request("r", "abort_txn_cleanup", 6, entity=Entity(TableName("hive", "d", "v")))]

    assert [one.id for one in next_in_line(rows, NOW, ZERO)] == [4, 5]


def test_a_request_that_must_wait_does_not_hold_up_a_later_one():
    """COMP-C11: the lower mark is not ripe yet."""
    rows = [ready(id=3, highest_write_id=22, committed_at=NOW), ready(id=4, highest_write_id=30)]

    assert [one.id for one in next_in_line(rows, NOW, timedelta(minutes=5))] == [4]


def obsolete(names, mark, current=None, txns=None, hidden=(), readers=()):
    current = current or ValidWriteIdList("d.t", 1000)
    listing = [ListedFile(f"{name}/bucket_00000", 1) for name in names]
    lists = cleaning_write_ids(current, mark), cleaning_txns(txns or ValidTxnList(100), hidden, readers)
    state = acid_state(listing, *lists, lambda _: "")
    return {*state.obsolete, *state.aborted}


@pytest.mark.parametrize(("names", "mark", "gone"), [
    (["base_20", "delta_21_22", "delta_23_24", "base_25_v26"], 25, {"base_20", "delta_21_22", "delta_23_24"}),   # COMP-C02
    (["base_20", "delta_21_22", "base_25", "base_25_v26"], 25, {"base_20", "delta_21_22", "base_25"}),           # COMP-C03
    (["base_20", "delta_21_22", "delta_23_24", "delta_21_24_v26"], 24, {"delta_21_22", "delta_23_24"}),          # COMP-C04
    (["base_20", "base_25_v26"], 25, {"base_20"}),                                                               # COMP-C17
    (["base_25", "base_26_v27"], 25, set()),                                                                     # COMP-C16
    (["base_25"], 25, set()),
    (["base_20", "delta_21_22", "delta_23_24", "base_25_v26"], 0, set()),      # nobody knows how far it went
])
def test_which_directories_go(names, mark, gone):
    assert obsolete(names, mark) == gone


def test_nothing_above_the_mark_is_touched():
    """COMP-C08."""
    names = ["delta_20_20", "delta_21_21", "delta_22_22", "delta_20_22_v26", "delta_23_23", "delta_24_24",
             "delta_20_24_v27"]

    assert obsolete(names, 22) == {"delta_20_20", "delta_21_21", "delta_22_22"}


def test_a_compaction_that_some_reader_does_not_see_covers_nothing():
    names = ["base_20", "delta_21_22", "delta_23_25", "delta_21_25_v26", "base_25_v29"]

    assert obsolete(names, 25, hidden=[29]) == {"delta_21_22", "delta_23_25"}
    assert obsolete(names, 25, readers=[reader(40), reader(28)]) == {"delta_21_22", "delta_23_25"}  # whatever became of its request
    assert obsolete(names, 25) == {"base_20", "delta_21_22", "delta_23_25", "delta_21_25_v26"}


@pytest.mark.parametrize(("txns", "gone"), [
    (ValidTxnList(100, 30, (30,)), set()),                             # COMP-C37: still open
    (ValidTxnList(100, None, (30,), frozenset({30})), {"base_25_v30"}),   # COMP-C37: aborted
])
def test_results_of_unfinished_compactions(txns, gone):
    assert obsolete(["base_20", "delta_21_22", "base_25_v30"], 25, txns=txns) == gone


def test_aborted_deltas_above_a_base_go_and_open_ones_stay():
    """COMP-C18, COMP-C29."""
    current = ValidWriteIdList("d.t", 24, 23, (21, 22, 23, 24), frozenset({21, 22, 24}))

    assert obsolete(["base_20", "delta_21_21", "delta_22_22", "delta_23_23", "delta_24_24"], 25, current) == {
        "delta_21_21", "delta_22_22"}


@pytest.mark.parametrize(("names", "kept"), [
    (["delta_1_3"], {2}), (["delta_2_2"], set()), (["delta_1_3_v9"], set()), (["delta_3_4", "base_2"], set())])
def test_mixed_directories_keep_their_aborted_write_ids(names, kept):
    """COMP-C36."""
    current = ValidWriteIdList("d.t", 9, None, (2,), frozenset({2}))

    assert mixed_write_ids(names, current) == kept


def test_a_tree_is_searched_for_acid_directories_by_name():
    listing = [ListedFile("p=1/delta_1_1_0000/bucket_00000", 5), ListedFile("p=1", 0, is_dir=True),
               ListedFile("p=2/q=x/base_3/bucket_00000", 5), ListedFile("p=3/000000_0", 5),
               ListedFile("delta_4_4_0000", 0, is_dir=True), ListedFile("delta_x/a", 1)]

    found = acid_directories(listing)

    assert {prefix: [entry.path for entry in entries] for prefix, entries in found.items()} == {
        "p=1": ["delta_1_1_0000/bucket_00000"], "p=2/q=x": ["base_3/bucket_00000"], "": ["delta_4_4_0000"]}


def test_results_are_recognised_by_their_transaction():
    listing = [ListedFile("base_0000025_v0000026/bucket_00000"), ListedFile("delta_1_2_v27", is_dir=True),
               ListedFile("base_0000026"), ListedFile("delta_broken_v26/x"), ListedFile("_tmp/x")]

    assert results_of(top_directories(listing), 26) == ["base_0000025_v0000026"]


def test_hidden_work_is_dead_when_its_transaction_has_ended():
    """Committed 3, aborted 5, open 7, unknown 12; the transactions are told as of before the listing."""
    txns = ValidTxnList(10, 7, (5, 7), frozenset({5}))
    names = [f".acid_stage_{txn_id}_0" for txn_id in (3, 5, 7, 12)] + [".compaction_5", "base_0000005", ".hive-staging_3"]

    assert dead_staging(names, txns) == [".acid_stage_3_0", ".acid_stage_5_0", ".compaction_5"]
    assert staging_of(names, 5) == [".acid_stage_5_0", ".compaction_5"]


def test_unproven_outputs_are_kept_until_a_later_compaction_was_proven():
    names = [".unproven_0000005", ".unproven_0000009", ".compaction_5"]

    assert superseded_outputs(names, 9) == [".unproven_0000005"]
    assert superseded_outputs(names, None) == []


@pytest.mark.parametrize(("place", "own"), [
    ("w/t/delta_1", True), ("w/t/old/deep", True), ("w/t/y=1/delta_1", True), ("w/t/y=10", True),
    ("w/t/raw", False), ("w/t/raw/delta_1", False), ("w/t/raw2", True), ("w/t/raw/y=2/delta_1", True), ("w/t/raw/y=2/u/x", False),
    ("w/t/a", False), ("w/t/both/delta_1", True)])
def test_what_lies_in_a_place_of_its_own(place, own):
    homes, others = {"w/t", "w/t/y=1", "w/t/raw/y=2", "w/t/both"}, {"w/t/raw", "w/t/raw/y=2/u", "w/t/a/b", "w/t/both"}
    assert is_own(place, homes, others) is own
