"""How often delete files are opened, and that what is counted and read is what they hold: hand-made files, no Spark."""

from collections import Counter
from pathlib import Path
from typing import BinaryIO

import pyorc
import pytest
from pyarrow import orc

from metastore.acid_tables import delete_files
from metastore.acid_tables.delete_files import DeleteFiles
from metastore.acid_tables.sources import DataFile
from metastore.files import Files

_COLUMNS = ["rowId"]


class CountedFiles(Files):
    """The same, and which files were opened how often."""

    opened: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "opened", Counter())

    def open(self, uri: str) -> BinaryIO:
        self.opened[uri] += 1
        return super().open(uri)

    def read(self, uri: str) -> bytes:
        self.opened[uri] += 1
        return super().read(uri)


@pytest.fixture
def wanted(tmp_path: Path) -> list[DataFile]:
    """Files with one, two and three events."""
    found = []
    for events in (1, 2, 3):
        path = tmp_path / f"bucket_{events:05d}"
        with path.open("wb") as out, pyorc.Writer(out, "struct<rowId:bigint>") as writer:
            writer.writerows((10 * events + row,) for row in range(events))
        found.append(DataFile(str(path), path.stat().st_size))
    return found


def _rows(files: Files, found: DeleteFiles, wanted: list[DataFile]) -> list[int]:
    return [row for one in wanted for row in found.read(files, one.path, _COLUMNS)["rowId"].to_pylist()]


def test_a_small_file_is_opened_once_to_count_and_to_read(wanted: list[DataFile]) -> None:
    files = CountedFiles()

    found = DeleteFiles.of(files, wanted)

    assert found.events(wanted) == 6
    assert found.events(wanted[:1]) == 1
    assert _rows(files, found, wanted) == [10, 20, 21, 30, 31, 32]
    assert set(files.opened.values()) == {1}
    assert len(files.opened) == len(wanted)


@pytest.mark.parametrize("limit", ["SMALL", "ROOM"])
def test_a_large_file_is_not_taken_into_memory(wanted: list[DataFile], monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(delete_files, limit, 1)
    files = CountedFiles()

    found = DeleteFiles.of(files, wanted)

    assert found.events(wanted) == 6
    assert _rows(files, found, wanted) == [10, 20, 21, 30, 31, 32]
    assert set(files.opened.values()) == {2}


def test_too_many_files_are_not_even_counted(wanted: list[DataFile], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delete_files, "_MANY_FILES", 2)
    files = CountedFiles()

    assert DeleteFiles.of(files, wanted).events(wanted) is None
    assert not files.opened


def test_files_elsewhere_are_counted_too(wanted: list[DataFile]) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    there = []
    for one in wanted:
        store.pipe_file(f"/deletes{one.path}", Path(one.path).read_bytes())
        there.append(DataFile(f"memory:///deletes{one.path}", one.size))
    files = CountedFiles()

    found = DeleteFiles.of(files, there)

    assert _rows(files, found, there) == [10, 20, 21, 30, 31, 32]
    assert found.events(there) == 6
    assert set(files.opened.values()) == {1}


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bucket_00000"
    bad.write_text("no ORC file at all")

    with pytest.raises(OSError, match="bucket_00000 cannot be read as an ORC file"):
        DeleteFiles.of(Files(), [DataFile(str(bad), 18)])


def test_a_file_whose_rows_are_damaged_is_named(wanted: list[DataFile]) -> None:
    path = Path(wanted[2].path)
    size = orc.ORCFile(str(path)).content_length
    path.write_bytes(b"\xff" * size + path.read_bytes()[size:])  # its footer still counts the rows
    found = DeleteFiles.of(Files(), wanted[2:])

    with pytest.raises(OSError, match="bucket_00003 cannot be read as an ORC file"):
        found.read(Files(), str(path), _COLUMNS)
