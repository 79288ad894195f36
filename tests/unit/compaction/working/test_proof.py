"""The rule by which a compaction's outputs are believed: each planted fault is said, and nothing else is."""

from dataclasses import replace

import pytest

from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.names import BaseName, DeltaName
from metastore.acid.orc_footer import RowKey, acid_entries
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import ListedFile, acid_state
from metastore.compaction.working.rules import (
    Footer,
    InputFile,
    OutputEvidence,
    OutputFile,
    Tally,
    UnprovenError,
    dealt,
    differences,
    footer_differences,
    later_deletes,
)

BASE, INSERTS, DELETES = BaseName(5, 9), DeltaName(1, 5, None, 9), DeltaName(1, 5, None, 9, is_delete=True)


def output(directory, bucket, rows, **more):
    is_delete = directory is DELETES
    last = RowKey(5, bucket, rows)
    footer = Footer(rows, 1, EVENT_COLUMNS, acid_entries([last], rows, is_delete=is_delete))
    file = OutputFile(directory, f"bucket_{bucket:05d}", bucket, rows, times=1, last=last, footer=footer)
    return file._replace(**more)


MAJOR = OutputEvidence(
    kind="major", highest_write_id=5, txn_id=9, lowest_write_id=1, may_hide=False,
    there=("t/base_1/bucket_00000", "t/delta_2_5/bucket_00000", "t/delta_2_5/bucket_00001", "t/delete_delta_3_3/bucket_00000"),
    inputs=(InputFile("t/base_1/bucket_00000", 0, 6), InputFile("t/delta_2_5/bucket_00000", 0, 4),
            InputFile("t/delta_2_5/bucket_00001", 1, 3), InputFile("t/delete_delta_3_3/bucket_00000", 0, 2, is_of_deletes=True)),
    tallies=(Tally(0, 0, inserts=10, deletes=2, deleted=2, found=2, highest_named=4), Tally(1, 1, inserts=3)),
    outputs=(output(BASE, 0, 8), output(BASE, 1, 3)),
    directories=(BASE,))
MINOR = replace(
    MAJOR, kind="minor", there=MAJOR.there[1:], inputs=MAJOR.inputs[1:],
    tallies=(Tally(0, 0, inserts=4), Tally(1, 1, inserts=3), Tally(0, 0, deletes=2)),
    outputs=(output(DELETES, 0, 2, times=2), output(INSERTS, 0, 4), output(INSERTS, 1, 3)), directories=(DELETES, INSERTS))

REBALANCE = replace(
    MAJOR, kind="rebalance", there=MAJOR.there[:3], inputs=MAJOR.inputs[:3],
    tallies=(Tally(0, 0, inserts=7), Tally(1, 1, inserts=6)), dealt=(0, 7, 13),
    outputs=(output(BASE, 0, 7, first_row_id=0), output(BASE, 1, 6, first_row_id=7)))


def changed(evidence, part, at, **changes):
    values = list(getattr(evidence, part))
    values[at] = values[at]._replace(**changes)
    return replace(evidence, **{part: tuple(values)})


def without(evidence, part, at):
    values = list(getattr(evidence, part))
    del values[at]
    return replace(evidence, **{part: tuple(values)})


@pytest.mark.parametrize("evidence", [
    MAJOR, MINOR, REBALANCE,
    replace(MAJOR, outputs=tuple(one._replace(footer=None) for one in MAJOR.outputs)),
    replace(MAJOR, there=(), inputs=(), tallies=(), outputs=(output(BASE, 0, 0, last=None, footer=Footer(
        0, 0, EVENT_COLUMNS, acid_entries((), 0, is_delete=False))),)),
    replace(REBALANCE, there=(), inputs=(), tallies=(), dealt=(0,), outputs=()),
], ids=["major", "minor", "rebalance", "uploads", "empty base", "empty rebalance"])
def test_what_is_right_is_proven(evidence):
    assert differences(evidence) == []


def test_a_delete_event_may_name_a_row_of_the_mark():
    assert differences(changed(MAJOR, "tallies", 0, highest_named=MAJOR.highest_write_id)) == []


def test_rows_of_aborted_write_ids_are_left_out_and_counted():
    hidden = changed(replace(MINOR, may_hide=True), "tallies", 0, inserts=3, hidden_inserts=1)
    assert differences(changed(hidden, "outputs", 1, rows=3, footer=None)) == []
    assert differences(changed(replace(hidden, may_hide=False), "outputs", 1, rows=3, footer=None)) == [
        "Bucket 0: 1 insert events were left out as invisible, and none is"]
    lost = changed(replace(MINOR, may_hide=True), "tallies", 0, inserts=2, hidden_inserts=1)
    assert differences(changed(lost, "outputs", 1, rows=2, footer=None)) == [
        "Bucket 0: the input files have 4 insert events, and 3 were read"]


@pytest.mark.parametrize(("evidence", "said"), [
    (without(MAJOR, "inputs", 2), ["t/delta_2_5/bucket_00001 was not read",
                                   "Bucket 1: the input files have 0 insert events, and 3 were read"]),
    (replace(MAJOR, inputs=(*MAJOR.inputs, MAJOR.inputs[1])),
     ["t/delta_2_5/bucket_00000 was read 2 times", "Bucket 0: the input files have 14 insert events, and 10 were read"]),
    (without(MAJOR, "there", 3), ["t/delete_delta_3_3/bucket_00000 was read and is no part of what is compacted"]),
    (without(MAJOR, "outputs", 1), ["Bucket 1: of 3 insert events 0 were written and 0 left out as deleted"]),
    (without(MAJOR, "tallies", 1), ["Bucket 1: the input files have 3 insert events, and 0 were read",
                                 "Bucket 1: of 0 insert events 3 were written and 0 left out as deleted"]),
    (changed(MAJOR, "tallies", 0, inserts=12), ["Bucket 0: the input files have 10 insert events, and 12 were read",
                                             "Bucket 0: of 12 insert events 8 were written and 2 left out as deleted"]),
    (changed(MAJOR, "tallies", 0, deletes=0, deleted=2), ["Bucket 0: the input files have 2 delete events, and 0 were read"]),
    (changed(MAJOR, "tallies", 0, deleted=0, found=0), ["Bucket 0: of 10 insert events 8 were written and 0 left out as deleted"]),
    (changed(MAJOR, "tallies", 0, found=1), ["Bucket 0: 2 events were left out for 1 deleted rows"]),
    (changed(MAJOR, "tallies", 0, highest_named=6),
     ["Bucket 0: a delete event names a row of write id 6, above the mark 5: it would be lost"]),
    (changed(MAJOR, "tallies", 1, highest_writer=2), ["One task's writer got events of the buckets 1 to 2"]),
    (without(MINOR, "outputs", 0), ["Bucket 0: of 2 delete events 0 were written and 0 left out as deleted"]),
    (changed(MAJOR, "outputs", 0, unsorted=3),
     ["base_0000005_v0000009/bucket_00000 has 3 events that do not belong behind the ones before them"]),
    (changed(MINOR, "outputs", 0, unsorted=1),
     ["delete_delta_0000001_0000005_v0000009/bucket_00000 has 1 events that do not belong behind the ones before them"]),
    (changed(MAJOR, "outputs", 1, times=2), ["base_0000005_v0000009/bucket_00001 has a row 2 times"]),
    (changed(MAJOR, "outputs", 1, name="bucket_00000"), ["base_0000005_v0000009/bucket_00000 holds events of the bucket 1"]),
])
def test_a_planted_fault_is_said(evidence, said):
    assert differences(evidence) == said


def test_a_bucket_number_of_no_codec_is_said():
    wrong = changed(changed(MAJOR, "outputs", 1, bucket=1 << 30), "tallies", 1, lowest_writer=1 << 30, highest_writer=1 << 30)
    wrong = changed(wrong, "inputs", 2, bucket=1 << 30)
    assert differences(wrong) == [
        "base_0000005_v0000009/bucket_00001 holds events of the bucket 1073741824, which no bucket number stands for"]


@pytest.mark.parametrize(("evidence", "written", "said"), [
    (MAJOR, BaseName(5), "base_0000005 was written, where only base_0000005_v0000009 may be"),
    (MAJOR, BaseName(4, 9), "base_0000004_v0000009 was written, where only base_0000005_v0000009 may be"),
    (MAJOR, BaseName(6, 9), "base_0000006_v0000009 was written, where only base_0000005_v0000009 may be"),
    (MINOR, DeltaName(1, 5, 0, 9), "delta_0000001_0000005_0000_v0000009 was written"),
    (MINOR, DeltaName(2, 5, None, 9), "delta_0000002_0000005_v0000009 was written"),
    (MINOR, DeltaName(1, 4, None, 9), "delta_0000001_0000004_v0000009 was written"),
    (MINOR, DeltaName(1, 5), "delta_0000001_0000005 was written"),
])
def test_a_name_is_the_one_that_the_transaction_hides(evidence, written, said):
    found = differences(replace(evidence, directories=(written,)))
    assert any(said in text for text in found)
    assert ("base_0000005_v0000009 was not written" in found) is evidence.is_major


@pytest.mark.parametrize(("footer", "said"), [
    ({"rows": 7}, "bucket_00000 has 7 rows, and its task wrote 8"),
    ({"columns": ("v",)}, "has the columns v, which are not"),
    ({"notes": {}}, "notes hive.acid.stats as None, which must be b'8,0,0'"),
    ({"notes": acid_entries([RowKey(5, 0, 8)], 7, is_delete=False)}, "notes hive.acid.stats as b'7,0,0'"),
    ({"stripes": 2}, "has 1 keys in its index for 2 stripes"),
    ({"notes": acid_entries([RowKey(5, 0, 7)], 8, is_delete=False)}, "ends with 5,0,7, and its last event is 5,0,8"),
])
def test_a_footer_is_read_back(footer, said):
    file = MAJOR.outputs[0]
    found = list(footer_differences(file._replace(footer=file.footer._replace(**footer))))
    assert said in found[0]


def test_the_error_says_what_differs_and_where_the_outputs_are():
    error = UnprovenError(["bucket 1 is lost", "so is 2"], "t/.unproven_9")
    assert str(error) == ("The compaction did not write what it read, so nothing was changed: bucket 1 is lost; so is 2; "
                          "what it wrote is kept in t/.unproven_9")
    assert error.differences == ("bucket 1 is lost", "so is 2")
    assert "kept" not in str(UnprovenError(["bucket 1 is lost"], ""))


@pytest.mark.parametrize(("rows", "buckets", "firsts"), [
    (5, 2, (0, 3, 5)), (5, 4, (0, 2, 3, 4, 5)), (9, 4, (0, 3, 5, 7, 9)), (2, 4, (0, 1, 2)), (10, 1, (0, 10)), (0, 3, (0,)),
    (10, 3, (0, 4, 7, 10))])
def test_rows_are_dealt_evenly(rows, buckets, firsts):
    """COMP-W18."""
    assert dealt(rows, buckets) == firsts


@pytest.mark.parametrize(("evidence", "said"), [
    (without(REBALANCE, "inputs", 2), ["t/delta_2_5/bucket_00001 was not read", "The input files have 10 rows, and 13 were read",
                                       "13 rows were dealt to buckets, and the input files have 10"]),
    (changed(REBALANCE, "tallies", 0, inserts=6, hidden_inserts=1), [
        "1 events were left out as invisible, and none is", "13 rows were dealt to buckets, and the input files have 12"]),
    (changed(REBALANCE, "tallies", 0, inserts=6), ["The input files have 13 rows, and 12 were read"]),
    (changed(REBALANCE, "tallies", 0, deletes=1, hidden_inserts=1, hidden_deletes=2), [
        "The input files have 13 rows, and 14 were read", "The input files have 0 delete events, and 3 were read",
        "3 events were left out as invisible, and none is", "13 rows were dealt to buckets, and the input files have 12"]),
    (without(REBALANCE, "outputs", 1), ["Bucket 1 has 0 rows instead of 6"]),
    (changed(REBALANCE, "outputs", 0, rows=6, footer=None), ["Bucket 0 has 6 rows instead of 7"]),
    (replace(REBALANCE, outputs=(*REBALANCE.outputs, output(BASE, 2, 1))), ["Bucket 2 has 1 rows instead of 0"]),
    (replace(REBALANCE, outputs=(*REBALANCE.outputs, REBALANCE.outputs[1])), ["A bucket has several files"]),
    (changed(REBALANCE, "outputs", 1, first_row_id=6),
     ["The row ids of bucket 1 begin with 6 instead of 7, and 0 of them do not follow the one before them"]),
    (changed(REBALANCE, "outputs", 0, jumps=2),
     ["The row ids of bucket 0 begin with 0 instead of 0, and 2 of them do not follow the one before them"]),
    (changed(REBALANCE, "outputs", 0, unsorted=3),
     ["base_0000005_v0000009/bucket_00000 has 3 events that do not belong behind the ones before them"]),
])
def test_a_planted_fault_of_a_rebalance_is_said(evidence, said):
    assert differences(evidence) == said


OF_DELETED = replace(
    REBALANCE, may_hide=True, there=MAJOR.there, inputs=MAJOR.inputs, dealt=(0, 5, 10),
    tallies=(Tally(0, 1, inserts=7, deletes=1, deleted=1, found=1, highest_named=5), Tally(0, 1, inserts=5, hidden_inserts=1,
             deletes=1, deleted=1, found=1)),
    outputs=(output(BASE, 0, 5, first_row_id=0), output(BASE, 1, 5, first_row_id=5)))


@pytest.mark.parametrize(("evidence", "said"), [
    (OF_DELETED, []),
    (changed(OF_DELETED, "tallies", 0, found=0), ["The rebalance: 2 events were left out for 1 deleted rows"]),
    (changed(OF_DELETED, "tallies", 0, deleted=0, found=0), ["10 rows were dealt to buckets, and the input files have 11"]),
    (changed(OF_DELETED, "tallies", 0, deletes=0), ["The input files have 2 delete events, and 1 were read"]),
    (changed(OF_DELETED, "tallies", 1, hidden_inserts=0), [
        "The input files have 13 rows, and 12 were read", "10 rows were dealt to buckets, and the input files have 11"]),
    (replace(OF_DELETED, may_hide=False), ["1 events were left out as invisible, and none is"]),
    (changed(OF_DELETED, "tallies", 0, highest_named=6), [
        "The rebalance: a delete event names a row of write id 6, above the mark 5: it would be lost"]),
    (replace(OF_DELETED, dealt=(0, 6, 11)), [
        "11 rows were dealt to buckets, and the input files have 10", "Bucket 0 has 5 rows instead of 6",
        "The row ids of bucket 1 begin with 5 instead of 6, and 0 of them do not follow the one before them"]),
])
def test_a_rebalance_that_leaves_deleted_rows_out_is_proven(evidence, said):
    assert differences(evidence) == said


@pytest.mark.parametrize(("paths", "said"), [
    ((), None),
    (("delta_6_6/bucket_0", "delta_6_6/_orc_acid_version"), None),
    (("delta_6_6/000000_0",), None),
    (("delta_6_6/bucket_0",), "delta_0000006_0000006"),
    (("delete_delta_6_6/bucket_0", "delete_delta_6_6/_orc_acid_version"), "delete_delta_0000006_0000006"),
    (("delete_delta_4_4/bucket_0", "delete_delta_4_4/_orc_acid_version"), None),
    (("delete_delta_5_5/bucket_0", "delete_delta_5_5/_orc_acid_version"), None),
], ids=["nothing", "rows", "loaded", "of an old Hive", "deletes", "below the mark", "at the mark"])
def test_deletes_above_the_mark_are_seen(paths, said):
    files = [ListedFile(path, 1) for path in ("base_3/bucket_0", *paths)]
    state = acid_state(files, ValidWriteIdList("d.t", 9), ValidTxnList.everything(), lambda path: b"")

    found = later_deletes(state, 5)

    assert (found and str(found)) == said
