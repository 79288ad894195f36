"""What a stream reads of a table: how far it goes, which files, and what it says of rows that changed."""

import pytest

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory, NotEnoughHistoryError
from metastore.acid_tables.appended import Changes, Range, changed, changes, is_in, settled
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.sources import Sources
from metastore.errors import InvalidOperationError


@pytest.mark.parametrize(("text", "after", "most", "end"), [
    ("d.t:9", 0, None, 9),
    ("d.t:9", 9, None, 9),
    ("d.t:9:7:7:", 0, None, 6),                    # 7 may still be committed
    ("d.t:9:7:7:", 8, None, 8),
    ("d.t:9:3::3,4", 0, None, 9),                  # aborted
    ("d.t:9:3::3,4", 2, 2, 6),
    ("d.t:9:7:7:3", 2, 10, 6),
    ("d.t:0", 0, 1, 0),
    ("d.t:3", 0, 2, 2),
])
def test_a_stream_stops_before_what_may_still_be_committed(text, after, most, end) -> None:
    assert settled(ValidWriteIdList.parse(text), after, most) == end


def delete_delta(low, high):
    return DeltaDirectory("", (), (), True, DeltaName(low, high, is_delete=True), RangeState.ALL)


def directory(base=None, *deltas):
    return Directory("", (), "/t", AcidState(base, tuple(deltas)), Sources())


def base(write_id, *, compacted):
    return BaseDirectory("", (), (), True, BaseName(write_id), compacted)


@pytest.mark.parametrize(("of", "certain", "unclear"), [
    (directory(), set(), set()),
    (directory(None, delete_delta(5, 5), delete_delta(9, 9)), {5}, set()),
    (directory(None, delete_delta(3, 5)), set(), {4, 5}),
    (directory(base(3, compacted=True)), set(), set()),
    (directory(base(5, compacted=True)), set(), {4, 5}),
    (directory(base(5, compacted=True), delete_delta(5, 5)), {5}, {4}),
    (directory(base(6, compacted=False)), {6}, set()),
    (directory(base(8, compacted=False)), set(), set()),
])
def test_names_tell_of_changes_as_far_as_they_can(of, certain, unclear) -> None:
    found = changes([of], Range(3, 7), ValidWriteIdList.parse("d.t:9"))
    assert (found.certain, found.unclear) == (certain, unclear)


def test_what_was_aborted_changed_nothing() -> None:
    of = [directory(None, delete_delta(4, 4), delete_delta(4, 6))]
    assert changes(of, Range(3, 7), ValidWriteIdList.parse("d.t:9:4::4,5")) == Changes(frozenset(), frozenset({6}))


def test_changes_are_refused_or_left_out() -> None:
    found = Changes(frozenset({4}), frozenset({5, 6}))
    assert changed("d.t", found, {5: True, 6: False}, skips=True) == {4, 5}
    with pytest.raises(InvalidOperationError, match="write id 4 updated, deleted, overwrote or rebalanced rows of d.t.*skipChangeCommits"):
        changed("d.t", found, {5: True, 6: False}, skips=False)
    with pytest.raises(NotEnoughHistoryError, match="write id 6 only added rows: start the stream with a new checkpoint"):
        changed("d.t", found, {5: True}, skips=True)
    assert changed("d.t", Changes(frozenset(), frozenset({5})), {5: False}, skips=False) == frozenset()


@pytest.mark.parametrize(("path", "after", "is_read"), [
    ("delta_0000003_0000003_0000/bucket_00000", 3, False),
    ("delta_0000003_0000004/bucket_00000", 3, True),
    ("delta_0000008_0000008_0000/bucket_00000", 3, False),
    ("base_0000003_v5/bucket_00000", 3, False),
    ("base_0000009_v5/bucket_00000", 3, True),
    ("000000_0", 3, False),
    ("000000_0", -1, True),
    ("000000_0", 0, False),
])
def test_files_that_can_have_rows_of_a_range(path, after, is_read) -> None:
    assert is_in("/t", f"/t/{path}", Range(after, 7)) is is_read
