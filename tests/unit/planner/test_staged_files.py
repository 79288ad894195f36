"""What becomes of the files that tasks left in staging."""

import pytest

from metastore.errors import InvalidOperationError
from metastore.planner.staged_files import StagedFile, names_in_place, staged_directories

PLACES = {None: "w/t", "a": "w/t/p=a", "b": "w/t/p=b"}


def directories(*files: StagedFile, is_base: bool = False, emptied=()):
    return staged_directories(
        files, staging="w/t/.acid_stage_7_2", write_id=9, location=lambda file: PLACES[file.key], is_base=is_base, emptied=emptied)


def insert(path: str, bucket: int = 0, key: str | None = None, statement: int = 2) -> StagedFile:
    return StagedFile(path, key, bucket, statement, is_delete=False)


def delete(path: str, bucket: int = 0, key: str | None = None) -> StagedFile:
    return StagedFile(path, key, bucket, 2, is_delete=True)


def test_deletes_are_named_before_what_is_inserted() -> None:
    found = directories(insert("i1", 1), delete("d0"), insert("i0"), insert("ia", key="a"), delete("db", 3, "b"))

    assert [(one.target, one.files) for one in found] == [
        ("w/t/delete_delta_0000009_0000009_0002", {"bucket_00000": "d0"}),
        ("w/t/p=b/delete_delta_0000009_0000009_0002", {"bucket_00003": "db"}),
        ("w/t/delta_0000009_0000009_0002", {"bucket_00001": "i1", "bucket_00000": "i0"}),
        ("w/t/p=a/delta_0000009_0000009_0002", {"bucket_00000": "ia"}),
    ]
    assert len({one.source for one in found}) == len(found)
    assert found[2].answer() == {
        "from": found[2].source, "to": "w/t/delta_0000009_0000009_0002", "empty": [],
        "files": [["i0", "bucket_00000"], ["i1", "bucket_00001"]], "write": [["_orc_acid_version", "2"]]}


def test_files_of_tasks_above_the_last_writer_have_a_directory_of_their_own() -> None:
    assert [one.target for one in directories(insert("i", 0), insert("j", 0, statement=3))] == [
        "w/t/delta_0000009_0000009_0002", "w/t/delta_0000009_0000009_0003"]


def test_an_overwrite_leaves_an_empty_file_where_nothing_goes() -> None:
    found = directories(insert("ia", 4, "a"), is_base=True, emptied=["w/t/p=a", "w/t/p=b"])

    assert [(one.target, one.files, one.empty) for one in found] == [
        ("w/t/p=a/base_0000009", {"bucket_00004": "ia"}, ()), ("w/t/p=b/base_0000009", {}, ("bucket_00000",))]


def test_one_bucket_is_one_tasks() -> None:
    with pytest.raises(InvalidOperationError, match="i0 and i1 were both written for w/t/delta_0000009_0000009_0002/bucket_00000"):
        directories(insert("i0"), insert("i1"))


def test_an_overwrite_deletes_no_single_rows() -> None:
    with pytest.raises(InvalidOperationError, match="d0 holds delete events"):
        directories(delete("d0"), is_base=True)


@pytest.mark.parametrize(("is_base", "has_events"), [(False, True), (True, True), (False, False)])
def test_names_are_said_before_as_they_are_given(*, is_base: bool, has_events: bool) -> None:
    said = names_in_place(9, range(2, 4), is_base=is_base, has_events=has_events)
    given = staged_directories(
        [insert("i", 5), *([] if is_base else [insert("j", 5, statement=3)]), *([delete("d", 5)] if has_events and not is_base else [])],
        staging="s", write_id=9, location=lambda _: "w/t", is_base=is_base, has_events=has_events)

    assert {f"w/t/{name}/{said.file % 5}" for name in (*said.inserts, *([said.deletes] if has_events and not is_base else []))} == {
        f"{one.target}/{file}" for one in given for file in one.files}
