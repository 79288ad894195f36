"""Directory and file names: Hive's forms, and that what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.names import (
    MIN_WRITE_ID,
    NO_BUCKET,
    BaseName,
    DeltaName,
    FileName,
    MalformedNameError,
    bucket_file,
    compaction_staging,
    is_bucket_file,
    is_hidden,
    original_file,
    parse_directory,
    parse_file,
    side_file,
    staging_directory,
    staging_owner,
    unproven_directory,
    unproven_owner,
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (BaseName(200), "base_0000200"),
        (BaseName(22, 311), "base_0000022_v0000311"),
        (BaseName(MIN_WRITE_ID), "base_-9223372036854775808"),
        (DeltaName(100, 200, 0), "delta_0000100_0000200_0000"),
        (DeltaName(100, 200), "delta_0000100_0000200"),
        (DeltaName(100, 200, 7), "delta_0000100_0000200_0007"),
        (DeltaName(1, 10, None, 311), "delta_0000001_0000010_v0000311"),
        (DeltaName(1, 10, is_delete=True), "delete_delta_0000001_0000010"),
        (DeltaName(1, 10, 5, is_delete=True), "delete_delta_0000001_0000010_0005"),
        (DeltaName(1234567880, 1234567890, 0), "delta_1234567880_1234567890_0000"),
    ],
)
def test_names_are_written_and_read(name: BaseName | DeltaName, text: str) -> None:
    assert str(name) == text
    assert parse_directory(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("base_000123", BaseName(123)),
        ("base_5_v20", BaseName(5, 20)),
        ("delta_000005_000006", DeltaName(5, 6)),
        ("delta_5_5_0", DeltaName(5, 5, 0)),
        ("delta_005_5_0000", DeltaName(5, 5, 0)),
        ("delete_delta_5_5_0003", DeltaName(5, 5, 3, is_delete=True)),
        ("delta_1_5_v20", DeltaName(1, 5, None, 20)),
    ],
)
def test_padding_is_irrelevant_when_reading(text: str, name: BaseName | DeltaName) -> None:
    assert parse_directory(text) == name


@pytest.mark.parametrize("text", ["HIVE_UNION_SUBDIR_1", "part=3", "deltax_1_1", "delete_1_1", ""])
def test_other_directories_are_neither(text: str) -> None:
    assert parse_directory(text) is None


@pytest.mark.parametrize(
    "text",
    ["base_", "base_x", "base_1_2", "delta_1", "delta_1_2_3_4", "delta_1_x", "delta_1_2_v", "delete_delta__", "base_5_vx"],
)
def test_prefixed_names_without_their_numbers_are_errors(text: str) -> None:
    with pytest.raises(MalformedNameError, match=f"Directory {text} "):
        parse_directory(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("bucket_00007", FileName(7)),
        ("bucket_00007_2", FileName(7, attempt=2)),
        ("bucket_123", FileName(123)),
        ("000123_0", FileName(123, is_original=True)),
        ("000123_0_copy_4", FileName(123, copy=4, is_original=True)),
        ("random", FileName(NO_BUCKET, is_original=True)),
        ("bucket_00007_flush_length", FileName(NO_BUCKET, is_original=True)),
    ],
)
def test_file_names_are_read(text: str, name: FileName) -> None:
    assert parse_file(text) == name


def test_file_names_are_written() -> None:
    assert bucket_file(23) == "bucket_00023"
    assert [original_file(one) for one in (1, 123, 123456789)] == ["000001_0", "000123_0", "123456789_0"]
    assert side_file("bucket_00003") == "bucket_00003_flush_length"


def test_kinds_of_files() -> None:
    assert [is_hidden(name) for name in ("_orc_acid_version", ".stage", "bucket_00000")] == [True, True, False]
    assert is_bucket_file("bucket_00000_1")
    assert not is_bucket_file("bucket_00000_flush_length")
    assert not is_bucket_file("000000_0")


_IDS = st.integers(0, 2**63 - 1)


@given(st.builds(BaseName, _IDS, _IDS))
def test_every_base_name_is_read_back(name: BaseName) -> None:
    assert parse_directory(str(name)) == name


@given(st.builds(DeltaName, _IDS, _IDS, st.none() | st.integers(0, 4095), _IDS, st.booleans()))
def test_every_delta_name_is_read_back(name: DeltaName) -> None:
    assert parse_directory(str(name)) == name


def test_hidden_work_says_whose_it_is():
    assert [staging_owner(name) for name in (".acid_stage_7", ".acid_stage_7_2", ".compaction_12_0", ".compaction_x", "x")] == [
        7, 7, 12, None, None]
    ours = (staging_directory(7, 2), staging_directory(7, "2_b"), compaction_staging(7), compaction_staging(7, 1))
    assert [staging_owner(name) for name in ours] == [7] * 4
    assert all(is_hidden(name) for name in ours)
    assert unproven_directory(9) == ".unproven_0000009"
    assert unproven_owner(unproven_directory(9)) == 9
    assert unproven_owner(".compaction_9") is None
