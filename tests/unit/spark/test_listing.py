"""How the files of a snapshot are sorted by the way they are read: hand-made directories, no Spark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyorc
import pytest

from metastore.acid.bucket import encode
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import NotEnoughHistoryError
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.listing import Directory, acid_directories
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.sources import CutFile, DataFile, Sources
from metastore.acid_tables.table import AcidTable
from metastore.errors import InvalidOperationError
from metastore.files import FileEntry, Files
from metastore.ids import table_name

_EVENT = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          "row:struct<v:int>>")


def _orc(path: Path, rows: int = 1, schema: str = _EVENT, **notes: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    event: tuple[Any, ...] = (0, 1, encode(0), 0, 1, (1,)) if schema == _EVENT else (1,)
    with path.open("wb") as out, pyorc.Writer(out, schema) as writer:
        writer.writerows([event] * rows)
        writer.set_user_metadata(**notes)


def _directories(root: Path, mark: int = 9, kind: TableKind = TableKind.FULL_ACID, places: Sequence[PartitionPlace] = (),
                 *, files: Files | None = None, is_past: bool = False, is_part: bool = False) -> list[Directory]:
    table = AcidTable(name=table_name("db", "t"), kind=kind, location=str(root), columns=(), partition_keys=(), bucket_columns=(),
                      bucket_count=0, bucketing_version=2, file_format="orc", parameters={})
    return acid_directories(files or Files(), table, places or [PartitionPlace("", (), str(root))], ValidWriteIdList("db.t", mark),
                            ValidTxnList.everything(), is_past=is_past, is_part=is_part)


def _sources(root: Path, **options: Any) -> Sources:
    [found] = _directories(root, **options)
    return found.sources


def _file(path: Path) -> DataFile:
    return DataFile(str(path), path.stat().st_size)


def test_files_of_ordinary_directories_are_not_opened(tmp_path: Path) -> None:
    for name in ("base_0000001", "delta_0000002_0000002_0000"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bucket_00000").write_text("never looked at")
        (tmp_path / name / "_orc_acid_version").write_text("2")
    delete_delta = tmp_path / "delete_delta_0000002_0000002_0000"
    delete_delta.mkdir()
    (delete_delta / "bucket_00000").write_text("nor this")

    [found] = _directories(tmp_path)

    assert found.sources.events == (_file(tmp_path / "base_0000001" / "bucket_00000"),
                                    _file(tmp_path / "delta_0000002_0000002_0000" / "bucket_00000"))
    assert found.sources.deletes == (_file(delete_delta / "bucket_00000"),)


@pytest.mark.parametrize("stray", ["random", "sub/bucket_00007"])
def test_other_files_in_a_delta_are_not_read(tmp_path: Path, stray: str) -> None:
    delta = tmp_path / "delta_0000002_0000002"
    _orc(delta / "bucket_00000")
    _orc(delta / stray)
    (delta / "_orc_acid_version").write_text("2")

    wanted = [_file(delta / "bucket_00000")] + [_file(delta / stray)] * ("bucket" in stray)

    assert list(_sources(tmp_path).events) == wanted


def test_files_without_rows_are_left_out(tmp_path: Path) -> None:
    for name in ("000000_0", "delta_0000001_0000001_0000/bucket_00000", "delete_delta_0000001_0000001_0000/bucket_00000"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert _sources(tmp_path) == Sources()
    assert _sources(tmp_path, kind=TableKind.INSERT_ONLY) == Sources()


def test_insert_only_directories(tmp_path: Path) -> None:
    _orc(tmp_path / "delta_0000001_0000001_0000" / "000000_0", schema="struct<v:int>")
    _orc(tmp_path / "delta_0000002_0000002_0000" / "HIVE_UNION_SUBDIR_1" / "000000_0", schema="struct<v:int>")

    assert _sources(tmp_path, kind=TableKind.INSERT_ONLY).events == (
        _file(tmp_path / "delta_0000001_0000001_0000" / "000000_0"),
        _file(tmp_path / "delta_0000002_0000002_0000" / "HIVE_UNION_SUBDIR_1" / "000000_0"))
    _orc(tmp_path / "000000_0", schema="struct<v:int>")
    with pytest.raises(InvalidOperationError, match="outside of bases and deltas.*000000_0"):
        _directories(tmp_path, kind=TableKind.INSERT_ONLY)


def test_each_partition_of_an_insert_only_table_is_stored_in_its_own_way(tmp_path: Path) -> None:
    for at in range(3):
        _orc(tmp_path / f"p={at}" / "delta_0000001_0000001_0000" / "000000_0", schema="struct<v:int>")
    footed = HiveStorage("Input", "Output", "SerDe", (), (("skip.footer.line.count", "1"),))
    usual, otherwise, unreadable, untold = (
        PartitionPlace(f"p={at}", (str(at),), str(tmp_path / f"p={at}"), way)
        for at, way in enumerate((None, "parquet", footed, "")))

    found = _directories(tmp_path, kind=TableKind.INSERT_ONLY, places=[usual, otherwise])

    assert [(one.stored_as, len(one.sources.events)) for one in found] == [(None, 1), ("parquet", 1)]
    with pytest.raises(InvalidOperationError, match="skip.footer.line.count"):
        _directories(tmp_path, kind=TableKind.INSERT_ONLY, places=[unreadable])
    with pytest.raises(InvalidOperationError, match="p=3 .* in a way that the metastore does not tell"):
        _directories(tmp_path, kind=TableKind.INSERT_ONLY, places=[untold])


def test_each_partition_gets_what_lies_below_it(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    root = tmp_path / "t"
    _orc(root / "p=1" / "000000_0", schema="struct<v:int>")
    _orc(root / "p=1" / "000001_0", rows=2, schema="struct<v:int>")
    _orc(root / "p=3" / "000000_0", schema="struct<v:int>")
    _orc(elsewhere / "000000_0", schema="struct<v:int>")
    places = [PartitionPlace("p=1", ("1",), f"{root}/p=1"), PartitionPlace("p=2", ("2",), str(elsewhere))]

    one, two = _directories(root, places=places)

    assert [(ids.path, ids.bucket) for ids in one.sources.plain] == [
        (f"{root}/p=1/000000_0", encode(0)), (f"{root}/p=1/000001_0", encode(1))]
    assert two.sources.without_events == [f"{elsewhere}/000000_0"]


def test_a_past_that_was_overwritten_and_removed_is_an_error(tmp_path: Path) -> None:
    _orc(tmp_path / "base_0000005" / "bucket_00000")
    _orc(tmp_path / ".hidden" / "base_0000003" / "bucket_00000")

    assert _sources(tmp_path, mark=4) == Sources(), "a reader that held its snapshot would know better"
    with pytest.raises(NotEnoughHistoryError, match="as of write id 4 was overwritten by base_0000005"):
        _directories(tmp_path, mark=4, is_past=True)
    later = PartitionPlace("p=1", ("1",), str(tmp_path))
    assert _directories(tmp_path, places=[later], mark=4, is_past=True)[0].sources == Sources(), "the Cleaner's record says more"
    _orc(tmp_path / "delta_0000004_0000004_0000" / "bucket_00000")
    assert _sources(tmp_path, mark=4, is_past=True).events
    assert _sources(tmp_path, mark=5, is_past=True).events


@pytest.mark.parametrize(("number", "is_part", "listed"), [(3, True, 3), (32, True, 32), (33, True, 1), (3, False, 1)])
def test_a_few_partitions_of_many_are_listed_each_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_part: bool,
                                                        listed: int) -> None:
    calls: list[str] = []
    whole = Files.listing
    monkeypatch.setattr(Files, "listing", lambda files, uri: calls.append(uri) or whole(files, uri))
    files = [tmp_path / f"p={at}" / "base_0000001" / "bucket_00000" for at in range(number)]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("never looked at")

    found = _directories(tmp_path, is_part=is_part, places=[
        PartitionPlace(f"p={at}", (str(at),), str(tmp_path / f"p={at}")) for at in range(number)])

    assert [one.sources.events for one in found] == [(_file(file),) for file in files]
    assert len(calls) == listed


class _Stale(Files):
    """A store that tells no size of a file that is being written (HDFS), and whose writer closes it a moment later."""

    def __init__(self, *, closes: bool) -> None:
        super().__init__()
        self.closes = closes

    def listing(self, uri: str) -> list[FileEntry]:
        found = [one._replace(size=0) if one.path.endswith("bucket_00000") else one for one in super().listing(uri)]
        if self.closes:
            Path(uri, "delta_0000001_0000010", "bucket_00000_flush_length").unlink()
        return found


@pytest.mark.parametrize("closes", [False, True], ids=["open", "closed meanwhile"])
def test_a_file_that_is_being_written_is_as_long_as_its_writer_says(tmp_path: Path, *, closes: bool) -> None:
    file = tmp_path / "delta_0000001_0000010" / "bucket_00000"
    _orc(file)
    file.with_name("bucket_00000_flush_length").write_bytes((100).to_bytes(8, "big"))

    found = _sources(tmp_path, files=_Stale(closes=closes))

    assert found == (Sources(events=(_file(file),)) if closes else Sources(cut=(CutFile(str(file), 100),)))
