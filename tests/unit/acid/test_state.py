"""Directory selection: the cases of the specification, and what they leave out."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.names import BaseName, DeltaName, MalformedNameError
from metastore.acid.snapshots import RangeState, ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, ListedFile, NotEnoughHistoryError, UnsupportedMetadataError, acid_state
from tests.support.acid.vectors import DirectoryVector, directory_vectors

EVERYTHING = ValidTxnList.everything()
COMPACTED = json.dumps({"thisFileVersion": "0", "dataFormat": "compacted"})


def _read_compacted(path: str) -> str:
    assert path.endswith("/_metadata_acid")
    return COMPACTED


def _state(*paths: str, write_ids: ValidWriteIdList | None = None, metadata: str = COMPACTED) -> AcidState:
    listing = [ListedFile(path.rstrip("/"), 10, path.endswith("/")) for path in paths]
    return acid_state(listing, write_ids or ValidWriteIdList("db.t", 100), EVERYTHING, lambda _: metadata)


def _listing(vector: DirectoryVector) -> list[ListedFile]:
    listing = []
    for child in vector.children:
        if child.startswith(("base_", "delta_", "delete_", "HIVE_", "_tmp", ".hive")):
            listing += [ListedFile(child, is_dir=True), ListedFile(f"{child}/bucket_00000", 10)]
        else:
            listing.append(ListedFile(child, 10))
    return listing + [ListedFile(f"{child}/_metadata_acid", 10) for child in vector.with_metadata]


@pytest.mark.parametrize("vector", directory_vectors(), ids=lambda vector: vector.name)
def test_selects_what_hive_selects(vector: DirectoryVector) -> None:
    if vector.error:
        with pytest.raises(NotEnoughHistoryError, match=f"up to write id {vector.write_ids.high_watermark} "):
            acid_state(_listing(vector), vector.write_ids, vector.txns, _read_compacted)
        return

    state = acid_state(_listing(vector), vector.write_ids, vector.txns, _read_compacted)

    assert (state.base.path if state.base else None) == vector.base
    assert tuple(delta.path for delta in state.deltas) == vector.deltas
    originals = {file.path.partition("/")[0]: None for file in state.originals}
    assert tuple(originals) == vector.originals
    assert {*state.obsolete, *(file.path for file in state.stranded)} == vector.obsolete
    assert set(state.aborted) == vector.aborted
    assert state.mixed_aborts == vector.mixed_aborts


def test_every_vector_is_there() -> None:
    assert len(directory_vectors()) == 62


def test_both_kinds_of_deltas_are_told_apart() -> None:
    state = _state("delta_0000004_0000004_0000/bucket_00000", "delete_delta_0000004_0000004_0000/bucket_00000")

    assert [delta.name for delta in state.insert_deltas] == [DeltaName(4, 4, 0)]
    assert [delta.name for delta in state.delete_deltas] == [DeltaName(4, 4, 0, is_delete=True)]


def test_files_of_a_directory_are_sorted_and_side_files_apart() -> None:
    state = _state(
        "delta_0000001_0000010/bucket_00001",
        "delta_0000001_0000010/bucket_00000_flush_length",
        "delta_0000001_0000010/bucket_00000",
        "delta_0000001_0000010/_orc_acid_version",
        "delta_0000001_0000010/.bucket_00000.crc",
        "delta_0000001_0000010/notes",
    )

    (delta,) = state.deltas
    names = [file.path.rpartition("/")[2] for file in delta.files]
    assert names == ["bucket_00000", "bucket_00001", "notes"]
    assert [file.path.rpartition("/")[2] for file in delta.bucket_files] == ["bucket_00000", "bucket_00001"]
    assert [file.path for file in delta.side_files] == ["delta_0000001_0000010/bucket_00000_flush_length"]


def test_bytes_that_no_new_reader_reads() -> None:
    """Of what is obsolete and what was aborted; not of what is hidden, open or staged."""
    files = [("base_5/bucket_00000", 1), ("delta_6_6/bucket_00000", 2), ("delta_6_6/bucket_00001", 4), ("base_6_v9/bucket_00000", 8),
             ("000000_0", 16), ("delta_7_7/bucket_00000", 32), ("delta_8_8/bucket_00000", 64), (".acid_stage_7/x", 128)]
    state = acid_state([ListedFile(*file) for file in files], ValidWriteIdList("d.t", 8, 8, (7, 8), frozenset({7})),
                       ValidTxnList.everything(), lambda _: "")

    assert (state.obsolete, state.aborted) == (("base_5", "000000_0", "delta_6_6"), ("delta_7_7",))
    assert state.held_size == 1 + 2 + 4 + 16 + 32


def test_staging_directories_are_never_seen() -> None:
    state = _state(".acid_stage_7_0000/delta_0000001_0000001_0000/bucket_00000", "_tmp/000000_0")

    assert state == AcidState()


def test_markers_in_the_root_are_no_originals() -> None:
    assert _state("_orc_acid_version", "_metadata_acid", "000000_0").originals == (ListedFile("000000_0", 10),)


def test_an_empty_base_directory_without_files_counts() -> None:
    state = _state("base_0000005/", "000000_0")

    assert state.base is not None
    assert state.base.name == BaseName(5)
    assert state.base.files == ()
    assert state.originals == ()


def test_a_base_with_a_marker_only_counts() -> None:
    assert _state("base_0000005/_orc_acid_version").base is not None


def test_originals_are_searched_in_depth_and_sorted_by_path() -> None:
    state = _state("b/c/000000_0", "b/c/", "a/000001_0", "000000_0", "000000_0_copy_10", "000000_0_copy_2")

    paths = [file.path for file in state.originals]
    assert paths == ["000000_0", "000000_0_copy_10", "000000_0_copy_2", "a/000001_0", "b/c/000000_0"]
    assert state.original_directories == ("a", "b")


def test_a_truncated_base_of_hive_4_is_an_overwrite_base() -> None:
    metadata = json.dumps({"thisFileVersion": "0", "dataFormat": "truncated"})
    snapshot = ValidWriteIdList("db.t", 5, 3, (3,))

    state = _state("base_0000005/_metadata_acid", "delta_0000004_0000004_0000/", write_ids=snapshot, metadata=metadata)

    assert state.base is not None
    assert not state.base.compacted
    assert state.deltas == ()


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ('{"thisFileVersion": "1", "dataFormat": "compacted"}', "version 1"),
        ('{"thisFileVersion": "0"}', "Cannot read base_0000005/_metadata_acid"),
        ("[]", "Cannot read"),
        ("compacted", "Cannot read"),
        ("[" * 100_000, "Cannot read"),
    ],
)
def test_metadata_that_is_not_understood_is_an_error(metadata: str, text: str) -> None:
    with pytest.raises(UnsupportedMetadataError, match=text):
        _state("base_0000005/_metadata_acid", metadata=metadata)


def test_not_enough_history_names_the_base_and_the_first_exception() -> None:
    with pytest.raises(NotEnoughHistoryError, match=r"first exception: 3\)\. Oldest available base: base_0000005"):
        _state("base_0000005/_metadata_acid", write_ids=ValidWriteIdList("db.t", 5, 3, (3,)))


def test_a_name_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(MalformedNameError, match="delta_x"):
        _state("delta_x/bucket_00000")


@pytest.mark.parametrize(
    ("path", "is_raw"),
    [
        ("delta_0000003_0000003_0000/000000_0", True),
        ("delta_0000003_0000003_0000/bucket_00000", False),
        ("delta_0000003_0000004/000000_0", False),
        ("delete_delta_0000003_0000003_0000/000000_0", False),
    ],
)
def test_only_a_delta_of_one_write_id_may_be_raw(path: str, is_raw: bool) -> None:
    (delta,) = _state(path).deltas

    assert delta.may_be_raw is is_raw


@pytest.mark.parametrize(
    ("paths", "is_raw"),
    [
        (["base_0000004/000000_0"], True),
        (["base_0000004/bucket_00000"], False),
        (["base_0000004/000000_0", "base_0000004/_metadata_acid"], False),
        (["base_0000004_v0000020/000000_0"], False),
    ],
)
def test_only_an_overwrite_base_may_be_raw(paths: list[str], is_raw: bool) -> None:
    state = _state(*paths)

    assert state.base is not None
    assert state.base.may_be_raw is is_raw


def test_ten_thousand_deltas_are_chosen_among_in_a_blink() -> None:
    listing = [ListedFile(f"{DeltaName(one, one, 0)}/bucket_00000", 10) for one in range(1, 10_001)]
    aborted = tuple(range(2, 10_000, 7))
    snapshot = ValidWriteIdList("db.t", 10_000, None, aborted, frozenset(aborted))

    started = time.process_time()
    state = acid_state(listing, snapshot, EVERYTHING, _read_compacted)

    assert time.process_time() - started < 4
    assert len(state.deltas) == 10_000 - len(aborted)
    assert len(state.aborted) == len(aborted)


_WRITE_IDS = st.integers(1, 12)


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[str], ValidWriteIdList]:
    """Single-write-id deltas and a snapshot."""
    ids = draw(st.lists(_WRITE_IDS, unique=True))
    statements = {one: draw(st.integers(1, 3)) for one in ids}
    names = [str(DeltaName(one, one, statement)) for one in ids for statement in range(statements[one])]
    mark = draw(st.integers(0, 14))
    invalid = tuple(sorted(draw(st.sets(_WRITE_IDS)) & set(range(mark + 1))))
    aborted = frozenset(draw(st.sets(st.sampled_from(invalid)))) if invalid else frozenset()
    opened = [one for one in invalid if one not in aborted]
    return names, ValidWriteIdList("db.t", mark, min(opened, default=None), invalid, aborted)


@given(_tables())
def test_without_compaction_exactly_the_valid_write_ids_are_read(table: tuple[list[str], ValidWriteIdList]) -> None:
    names, snapshot = table

    state = _state(*(f"{name}/bucket_00000" for name in names), write_ids=snapshot)

    chosen = {delta.path for delta in state.deltas}
    expected = {name for name in names if snapshot.is_valid(int(name.split("_")[1]))}
    assert chosen == expected
    assert not state.obsolete
    assert all(delta.visible is RangeState.ALL for delta in state.deltas)


@given(_tables(), st.data())
def test_a_reader_sees_the_same_write_ids_before_and_after_a_minor_compaction(
    table: tuple[list[str], ValidWriteIdList], data: st.DataObject
) -> None:
    names, snapshot = table
    compactor = snapshot.for_compactor()
    before = _state(*(f"{name}/bucket_00000" for name in names), write_ids=compactor)
    if not before.deltas:
        return
    low, high = before.deltas[0].name.min_write_id, before.deltas[-1].name.max_write_id
    compacted = DeltaName(low, high, None, 50)
    listing = [ListedFile(f"{name}/bucket_00000", 10) for name in [*names, str(compacted)]]
    later = data.draw(st.sampled_from([snapshot, compactor]))

    state = acid_state(listing, later, EVERYTHING, _read_compacted)

    covered = {one for one in range(low, high + 1) if later.is_valid(one)}
    left = {delta.name.min_write_id for delta in state.deltas if delta.name != compacted}
    assert compacted in [delta.name for delta in state.deltas]
    assert not left & covered
    written = {int(name.split("_")[1]) for name in names}
    if later is snapshot:
        assert left == {one for one in written if snapshot.is_valid(one)} - covered


def test_what_no_original_is_called_is_not_obsolete_beside_a_base() -> None:
    """No base was made of it: it was written past the transactions, and the Cleaner must leave it."""
    alone = _state("part-00000-x-c000", "000000_0")
    assert [file.path for file in alone.originals] == ["000000_0", "part-00000-x-c000"]
    assert not alone.stranded

    beside = _state("base_5/bucket_00000", "part-00000-x-c000", "000000_0", "_SUCCESS", "random/000000_0")
    assert [file.path for file in beside.stranded] == ["part-00000-x-c000"]
    assert set(beside.obsolete) == {"000000_0", "random"}
    assert not acid_state([ListedFile("base_5/bucket_00000", 10), ListedFile("part-0")], ValidWriteIdList("db.t", 100),
                          EVERYTHING, lambda _: COMPACTED).stranded


def test_a_lower_base_that_is_listed_later_is_obsolete() -> None:
    state = _state("base_10/bucket_00000", "base_5/bucket_00000")

    assert state.base is not None
    assert state.base.path == "base_10"
    assert state.obsolete == ("base_5",)
