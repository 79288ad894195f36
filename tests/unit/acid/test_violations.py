"""What a listing tells of an ACID directory: one case for each rule, and a sound directory that breaks none."""

import pytest

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import ListedFile
from metastore.acid.violations import LayoutRule, Surroundings, check_listing

SOUND = ("delta_0000001_0000001_0000/_orc_acid_version", "delta_0000001_0000001_0000/bucket_00000",
         "delta_0000002_0000002_0000/_orc_acid_version", "delta_0000002_0000002_0000/bucket_00000",
         "delta_0000002_0000002_0001/_orc_acid_version", "delta_0000002_0000002_0001/bucket_00000",
         "delete_delta_0000002_0000002_0001/_orc_acid_version", "delete_delta_0000002_0000002_0001/bucket_00000",
         "000000_0", "000000_0_copy_1", "_SUCCESS")
WRITE_IDS = ValidWriteIdList("db.t", 9, 8, (7, 8), frozenset({7}))
TXNS = ValidTxnList(50, 40, (40, 41), frozenset({41}))


def _found(*paths: str, full_acid: bool = True, buckets: int = 0, write_ids: ValidWriteIdList = WRITE_IDS,
           empty: tuple[str, ...] = ()) -> set[tuple[LayoutRule, str, bool]]:
    listing = [ListedFile(path.rstrip("/"), 0 if path in empty else 10, path.endswith("/")) for path in paths]
    found = check_listing(listing, Surroundings(write_ids, TXNS, full_acid, buckets), lambda _: "{}")
    return {(one.rule, one.path, one.is_unneeded) for one in found.findings}


def _delta(name: str, *files: str) -> list[str]:
    return [f"{name}/_orc_acid_version", *(f"{name}/{file}" for file in files or ("bucket_00000",))]


def test_a_sound_directory() -> None:
    assert _found(*SOUND) == set()
    assert _found(*SOUND, *_delta("base_0000002_v0000030"), *_delta("delta_0000001_0000002_v0000029")) == set()


@pytest.mark.parametrize(("paths", "expected"), [
    (["delta_x/bucket_00000"], (LayoutRule.MALFORMED_NAME, "delta_x", False)),
    (["base_1_2_3_4/"], (LayoutRule.MALFORMED_NAME, "base_1_2_3_4", False)),
    (["delta_0000001_0000001_0000/delta_0000002_0000002_0000/bucket_00000"],
     (LayoutRule.NESTED_DIRECTORY, "delta_0000001_0000001_0000/delta_0000002_0000002_0000", False)),
    (["delta_0000001_0000001_0000/sub/"], (LayoutRule.NESTED_DIRECTORY, "delta_0000001_0000001_0000/sub", False)),
    (_delta("delta_1_1_0"), (LayoutRule.OVERLAPPING_RANGES, "delta_1_1_0", False)),
    (_delta("delta_2_2_1"), (LayoutRule.OVERLAPPING_RANGES, "delta_2_2_1", False)),
    (_delta("delta_0000003_0000005") + _delta("delta_0000005_0000006"),
     (LayoutRule.OVERLAPPING_RANGES, "delta_0000005_0000006", False)),
    (_delta("delta_0000003_0000004") + _delta("delta_0000003_0000004_v0000020"),
     (LayoutRule.OVERLAPPING_RANGES, "delta_0000003_0000004", False)),
    (_delta("delete_delta_0000003_0000005") + _delta("delete_delta_0000004_0000006"),
     (LayoutRule.OVERLAPPING_RANGES, "delete_delta_0000004_0000006", False)),
    (["delta_0000001_0000001_0000/bucket_00000_1"],
     (LayoutRule.TWO_FILES_FOR_A_BUCKET, "delta_0000001_0000001_0000/bucket_00000_1", False)),
    (["delta_0000001_0000001_0000/bucket_x"],
     (LayoutRule.UNKNOWN_FILE, "delta_0000001_0000001_0000/bucket_x", False)),
    ([*_delta("base_0000002_v0000030"), "part-00000-0b1c-c000"], (LayoutRule.STRANDED, "part-00000-0b1c-c000", False)),
    (["random"], (LayoutRule.UNKNOWN_FILE, "random", False)),
    (["delta_0000003_0000003_0000/bucket_00000"], (LayoutRule.NO_VERSION_FILE, "delta_0000003_0000003_0000", False)),
    (["delete_delta_0000003_0000003_0000/bucket_00000"], (LayoutRule.NO_VERSION_FILE, "delete_delta_0000003_0000003_0000", False)),
    (["delta_0000003_0000003_0000/"], (LayoutRule.EMPTY_DIRECTORY, "delta_0000003_0000003_0000", True)),
    (["delta_0000001_0000001_0000/bucket_00000_flush_length"],
     (LayoutRule.SIDE_FILE, "delta_0000001_0000001_0000/bucket_00000_flush_length", False)),
    (_delta("delta_0000007_0000007_0000"), (LayoutRule.ABORTED_WRITER, "delta_0000007_0000007_0000", True)),
    (_delta("base_0000007"), (LayoutRule.ABORTED_WRITER, "base_0000007", True)),
    (_delta("delta_0000003_0000004_v0000041"), (LayoutRule.ABORTED_WRITER, "delta_0000003_0000004_v0000041", True)),
    (_delta("delta_0000010_0000010_0000"), (LayoutRule.UNKNOWN_WRITE_ID, "delta_0000010_0000010_0000", False)),
    ([".acid_stage_39_0_i/tasks/x"], (LayoutRule.DEAD_STAGING, ".acid_stage_39_0_i", True)),
    ([".compaction_41/"], (LayoutRule.DEAD_STAGING, ".compaction_41", True)),
])
def test_each_violation_is_named(paths: list[str], expected: tuple[LayoutRule, str, bool]) -> None:
    assert expected in _found(*SOUND, *paths)
    assert {rule for rule, _, _ in _found(*SOUND, *paths)} == {expected[0]}


@pytest.mark.parametrize("paths", [
    [".acid_stage_40_0_i/tasks/x"], [".acid_stage_51_0_i/tasks/x"], [".hive-staging_x/y"],
    _delta("delta_0000008_0000008_0000"), _delta("delta_0000003_0000003_0000", "bucket_00000", "bucket_00001"),
    _delta("delta_0000003_0000003_0000") + _delta("delta_0000003_0000006"), ["base_0000003/_metadata_acid"]])
def test_what_writers_at_work_and_compactors_leave_is_no_violation(paths: list[str]) -> None:
    found = check_listing([ListedFile(path, 10) for path in (*SOUND, *paths)], Surroundings(WRITE_IDS, TXNS),
                          lambda _: '{"thisFileVersion": "0", "dataFormat": "truncated"}')
    assert found.findings == ()
    assert found.state is not None


@pytest.mark.parametrize("delta", ["delta_0000002_0000004", "delta_0000003_0000004", "delete_delta_0000003_0000004"])
def test_a_delta_that_begins_within_the_base(delta: str) -> None:
    assert _found(*_delta("base_0000003_v0000020"), *_delta(delta)) == {(LayoutRule.OVERLAPPING_RANGES, delta, False)}
    assert _found(*_delta("base_0000003_v0000020"), *_delta(delta.replace("3_", "4_").replace("2_", "4_"))) == set()


def test_a_delta_within_a_wider_one_that_is_not_its_neighbour() -> None:
    names = ["delta_0000001_0000005", "delta_0000003_0000006", "delta_0000006_0000006_0000"]
    found = _found(*(path for name in names for path in _delta(name)))
    assert (LayoutRule.OVERLAPPING_RANGES, names[1], False) in found


def test_buckets_of_a_bucketed_table() -> None:
    assert _found(*_delta("delta_0000001_0000001_0000", "bucket_00001", "bucket_00002"), buckets=2) == {
        (LayoutRule.BUCKET_OUT_OF_RANGE, "delta_0000001_0000001_0000/bucket_00002", False)}


def test_insert_only_tables_may_nest_and_hide_originals() -> None:
    paths = ("delta_0000001_0000001_0000/HIVE_UNION_SUBDIR_1/000000_0", "000000_0", "000001_0")
    assert _found(*paths, full_acid=False, empty=("000001_0",)) == {(LayoutRule.ORIGINAL_FILE, "000000_0", False)}


def test_a_table_that_cannot_be_read_has_no_state() -> None:
    for path, rule in [("base_0000009_v0000020/bucket_00000", LayoutRule.HISTORY), ("base_0000003/_metadata_acid", LayoutRule.UNREADABLE_FILE)]:
        found = check_listing([ListedFile(path, 10)], Surroundings(WRITE_IDS, TXNS), lambda _: "not JSON")
        assert [one.rule for one in found.findings] == [rule]
        assert found.state is None
