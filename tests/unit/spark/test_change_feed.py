"""Which changes lie between two points, and whether the files still tell them."""

import pytest

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory, NotEnoughHistoryError
from metastore.acid_tables.change_feed import (
    ChangeRange,
    between,
    can_have_deletes,
    can_have_inserts,
    overwritten_by,
    require_changes,
    require_no_overwrite,
)
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.sources import Sources
from metastore.errors import InvalidOperationError


def directory(base=None, *deltas):
    return Directory("", (), "/t", AcidState(base, tuple(deltas)), Sources())


def base(write_id, *, compacted):
    return BaseDirectory("", (), (), True, BaseName(write_id), compacted)


def wanted(text, first, last=None):
    return between(ValidWriteIdList.parse(text), first, last)


@pytest.mark.parametrize(("text", "first", "last", "after", "until"), [
    ("d.t:9", 3, None, 2, 9),
    ("d.t:9", 3, 5, 2, 5),
    ("d.t:9", 0, None, -1, 9),
    ("d.t:9", 10, None, 9, 9),                     # nothing yet
    ("d.t:9:7:7:", 3, None, 2, 6),                 # 7 may still be committed
    ("d.t:9:7:7:", 3, 6, 2, 6),
    ("d.t:9:7:7:", 8, 9, 7, 9),                    # which is not asked for
    ("d.t:9:7::7", 3, None, 2, 9),                 # aborted
])
def test_where_a_range_ends(text, first, last, after, until) -> None:
    of = wanted(text, first, last)
    assert (of.after, of.until.high_watermark, of.late) == (after, until, ())


@pytest.mark.parametrize(("text", "first", "last", "sentence"), [
    ("d.t:9:7:7:", 3, 9, "write id 7 of d.t belongs to a transaction that is still open"),
    ("d.t:9", 3, 10, "write ids up to 9"),
    ("d.t:9", 5, 3, "not from 5 to 3"),
    ("d.t:9", 11, None, "write ids up to 9"),
])
def test_what_is_not_final_is_refused(text, first, last, sentence) -> None:
    with pytest.raises(InvalidOperationError, match=sentence):
        wanted(text, first, last)


def test_what_was_committed_late_is_among_the_changes() -> None:
    """Of a range in time: 3 was open at its beginning, 4 is aborted, and 8 is open at its end."""
    of = ChangeRange(ValidWriteIdList.parse("d.t:6:3:3,4:"), ValidWriteIdList.parse("d.t:9:8:8:4"))
    assert (of.after, of.late) == (6, (3,))
    assert [of.has_any(number, number) for number in (2, 3, 4, 6, 7, 9, 10)] == [False, True, False, False, True, True, False]
    with pytest.raises(NotEnoughHistoryError, match="compacted up to write id 5"):
        require_changes([directory(base(5, compacted=True))], of)
    require_changes([directory(base(2, compacted=True))], of)


@pytest.mark.parametrize(("of", "is_lost", "by"), [
    (directory(), False, None),
    (directory(base(3, compacted=True)), False, None),
    (directory(base(4, compacted=True)), True, None),
    (directory(base(3, compacted=False)), False, None),
    (directory(base(4, compacted=False)), False, 4),
])
def test_a_base_hides_changes_or_is_one(of, is_lost, by) -> None:
    between_4_and_7 = wanted("d.t:9", 4, 7)
    assert overwritten_by(of, between_4_and_7) == by
    for require, raises in ((require_changes, is_lost), (require_no_overwrite, by is not None)):
        if raises:
            with pytest.raises(NotEnoughHistoryError, match="begin with write id 5"):
                require([of], between_4_and_7)
        else:
            require([of], between_4_and_7)


@pytest.mark.parametrize(("path", "has"), [
    ("000000_0", False), ("base_3/bucket_0", False), ("base_4/bucket_0", True), ("delta_1_3/bucket_0", False),
    ("delta_1_4_0001/bucket_0", True), ("delta_7_7/bucket_0", True), ("delta_8_9/bucket_0", False),
])
def test_files_that_can_have_changes(path, has) -> None:
    assert can_have_inserts(directory(), f"/t/{path}", wanted("d.t:9", 4, 7)) is has


def test_deletes_and_originals() -> None:
    def deleting(low, high):
        return directory(None, DeltaDirectory("", (), (), True, DeltaName(low, high, is_delete=True), RangeState.ALL))

    of = wanted("d.t:9", 4, 7)
    assert [can_have_deletes(deleting(*ends), of) for ends in ((1, 3), (2, 4), (7, 7), (8, 8))] == [False, True, True, False]
    assert can_have_inserts(directory(), "/t/000000_0", wanted("d.t:9", 0, 7))
