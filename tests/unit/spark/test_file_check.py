"""What the inside of an ACID file tells: files made by a writer that is not ours, each with one thing wrong."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyorc
import pytest
from pyarrow import orc
from pyspark.sql.types import StructType

from metastore.acid.bucket import encode
from metastore.acid.snapshots import RangeState, ValidTxnList, ValidWriteIdList
from metastore.acid.state import BaseDirectory, DeltaDirectory, acid_state
from metastore.acid.violations import LayoutRule
from metastore.acid_tables.footers import orc_tail
from metastore.acid_tables.sources import CutFile
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.check.file_check import check_file
from metastore.spark.read.cut_files import _events

_EVENT = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          "row:struct<v:string>>")
B0, B1 = encode(0), encode(1)
ROWS = [(0, 3, B0, row, 3, (f"v{row}",)) for row in range(4)]
DELETES = [(2, 1, B0, 0, 3, None), (2, 1, B0, 0, 2, None), (2, 1, B1, 0, 3, None)]


def _notes(rows: Sequence[tuple[Any, ...]], index: str | None = None, stats: str | None = None, version: str = "2") -> dict[str, bytes]:
    last = ",".join(map(str, rows[-1][1:4])) if rows else ""
    deleted = sum(row[0] == 2 for row in rows)
    return {"hive.acid.key.index": (f"{last};" if index is None else index).encode(),
            "hive.acid.stats": (stats or f"{len(rows) - deleted},0,{deleted}").encode(), "hive.acid.version": version.encode()}


def _check(tmp_path: Path, rows: Sequence[tuple[Any, ...]], notes: dict[str, bytes] | None = None, *, name: str = "bucket_00000",
           directory: str = "delta_0000003_0000003_0000", schema: str = _EVENT) -> list[LayoutRule]:
    path = tmp_path / directory / name
    path.parent.mkdir(parents=True)
    with path.open("wb") as out, pyorc.Writer(out, schema, batch_size=500, stripe_size=1) as writer:
        writer.writerows(rows)
        writer.set_user_metadata(**(_notes(rows) if notes is None else notes))
    (path.parent / "_orc_acid_version").write_text("2")
    return _rules(tmp_path, f"{directory}/{name}")


def _rules(location: Path, path: str) -> list[LayoutRule]:
    files = Files()
    state = acid_state(files.listing(str(location)), ValidWriteIdList("db.t", 9), ValidTxnList.everything(), lambda _: "{}")
    directory: BaseDirectory | DeltaDirectory = state.base or state.deltas[0]
    if isinstance(directory, DeltaDirectory):
        assert directory.visible is RangeState.ALL
    return [finding.rule for finding in check_file(files, str(location), path, directory)]


def test_sound_files(tmp_path: Path) -> None:
    assert _check(tmp_path / "i", ROWS) == []
    assert _check(tmp_path / "n", [], _notes([], index="")) == []
    assert _check(tmp_path / "b", [(0, 1, 0, 5, 2, ("old codec",)), *ROWS], directory="base_0000003") == []
    assert _check(tmp_path / "w", [(0, 0, B0, 7, 0, ("from before the conversion",)), (0, 1, B0, 5, 1, ("a",)), (0, 2, B0, 0, 2, ("b",))],
                  directory="base_0000003") == []
    assert _check(tmp_path / "d", DELETES[:2], directory="delete_delta_0000002_0000003") == []
    assert _check(tmp_path / "r", [("v",)], {}, name="000000_0", schema="struct<v:string>") == []


def _swapped(first: int, second: int) -> list[tuple[Any, ...]]:
    rows = list(ROWS)
    rows[first], rows[second] = rows[second], rows[first]
    return rows


@pytest.mark.parametrize(("rows", "notes", "expected"), [
    (_swapped(0, 1), None, [LayoutRule.UNSORTED]),
    ([ROWS[0], ROWS[0]], None, [LayoutRule.DOUBLED_ROW]),
    ([*ROWS, (0, 3, B1, 9, 3, ("x",))], None, [LayoutRule.WRONG_BUCKET]),
    ([(0, 3, 5, 0, 3, ("x",))], None, [LayoutRule.WRONG_BUCKET]),
    ([(0, 3, 2 << 29, 0, 3, ("x",))], None, [LayoutRule.WRONG_BUCKET]),
    ([(1, 3, B0, 0, 3, ("x",))], {**_notes(ROWS[:1]), "hive.acid.stats": b"0,1,0"}, [LayoutRule.WRONG_OPERATION]),
    ([(0, 4, B0, 0, 4, ("x",))], None, [LayoutRule.WRONG_WRITE_ID]),
    ([(0, 2, B0, 0, 2, ("x",))], None, [LayoutRule.WRONG_WRITE_ID]),
    (ROWS, {key: value for key, value in _notes(ROWS).items() if "index" not in key}, [LayoutRule.NO_KEY_INDEX]),
    (ROWS, _notes(ROWS, index=""), [LayoutRule.SHORT_KEY_INDEX]),
    (ROWS, _notes(ROWS, index=f"3,{B0},2;"), [LayoutRule.WRONG_KEY_INDEX]),
    (ROWS, _notes(ROWS, stats="3,0,0"), [LayoutRule.WRONG_STATISTICS]),
    (ROWS, _notes(ROWS, stats="5,0,0"), [LayoutRule.WRONG_STATISTICS]),
    (ROWS, {key: value for key, value in _notes(ROWS).items() if "stats" not in key}, [LayoutRule.WRONG_STATISTICS]),
    (ROWS, _notes(ROWS, version="1"), [LayoutRule.OLD_VERSION]),
])
def test_each_violation_is_named(tmp_path: Path, rows: list[tuple[Any, ...]], notes: dict[str, bytes] | None,
                                 expected: list[LayoutRule]) -> None:
    assert _check(tmp_path / "t", rows, notes) == expected


def test_bases(tmp_path: Path) -> None:
    assert _check(tmp_path / "w", [(0, 4, B0, 0, 4, ("x",))], directory="base_0000003") == [LayoutRule.WRONG_WRITE_ID]
    assert _check(tmp_path / "o", [(0, 2, B0, 0, 2, ("b",)), (0, 1, B0, 5, 1, ("a",))], directory="base_0000003") == [LayoutRule.UNSORTED]


def test_every_stripe_is_looked_at(tmp_path: Path) -> None:
    many = [(0, 3, B0, row, 3, (f"v{row * 0x9E3779B1:032x}",)) for row in range(4000)]
    _check(tmp_path / "s", many, {})
    with (tmp_path / "s" / "delta_0000003_0000003_0000" / "bucket_00000").open("rb") as file:
        ends = [end - 1 for end in accumulate(len(stripe) for stripe in pyorc.Reader(file).iter_stripes())]
    assert len(ends) > 1
    keys = [f"3,{B0},{end};" for end in ends]
    last = ends[-2]
    swapped = [*many[:last], many[last + 1], many[last], *many[last + 2:]]

    assert _check(tmp_path / "b", many, _notes(many, "".join(keys))) == []
    assert _check(tmp_path / "f", many, _notes(many, "".join(keys[1:]))) == [LayoutRule.SHORT_KEY_INDEX]
    assert _check(tmp_path / "m", many, _notes(many, "".join([*keys, keys[-1]]))) == [LayoutRule.SHORT_KEY_INDEX]
    assert _check(tmp_path / "w", many, _notes(many, "".join([*keys[:-1], f"3,{B0},{ends[-1] - 1};"]))) == [LayoutRule.WRONG_KEY_INDEX]
    assert _check(tmp_path / "o", swapped, _notes(swapped, "".join([*keys[:-2], f"3,{B0},{last + 1};", keys[-1]]))) == [LayoutRule.UNSORTED]


def test_delete_files(tmp_path: Path) -> None:
    assert _check(tmp_path / "b", DELETES, directory="delete_delta_0000002_0000003") == [LayoutRule.WRONG_BUCKET]
    assert _check(tmp_path / "o", [DELETES[1], DELETES[0]], directory="delete_delta_0000002_0000003") == [LayoutRule.UNSORTED]
    assert _check(tmp_path / "i", ROWS, directory="delete_delta_0000002_0000003") == [LayoutRule.WRONG_OPERATION]


def test_files_of_another_shape(tmp_path: Path) -> None:
    assert _check(tmp_path / "c", [("v",)], {}, schema="struct<v:string>") == [LayoutRule.WRONG_COLUMNS]
    broken = tmp_path / "u" / "delta_0000003_0000003_0000" / "bucket_00000"
    broken.parent.mkdir(parents=True)
    broken.write_text("not ORC at all")
    assert _rules(tmp_path / "u", "delta_0000003_0000003_0000/bucket_00000") == [LayoutRule.UNREADABLE_FILE]


def test_a_damaged_file_is_a_finding(tmp_path: Path) -> None:
    assert _check(tmp_path / "v", ROWS, {**_notes(ROWS), "hive.acid.version": b"\xff"}) == [LayoutRule.OLD_VERSION]
    assert _check(tmp_path / "s", ROWS) == []
    sound = tmp_path / "s" / "delta_0000003_0000003_0000" / "bucket_00000"
    size = orc.ORCFile(str(sound)).content_length
    sound.write_bytes(b"\xff" * size + sound.read_bytes()[size:])
    assert _rules(tmp_path / "s", "delta_0000003_0000003_0000/bucket_00000") == [LayoutRule.UNREADABLE_FILE]


def test_a_name_that_is_no_text_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "bucket_00000"
    with path.open("wb") as out, pyorc.Writer(out, "struct<ab:int>", compression=pyorc.CompressionKind.NONE) as writer:
        writer.write((1,))
    path.write_bytes(path.read_bytes().replace(b"ab", b"a\xff"))
    with pytest.raises(OSError, match="bucket_00000 cannot be read as an ORC file"):
        orc_tail(Files(), str(path))


def test_a_length_that_no_file_has_is_not_asked_for_as_memory(tmp_path: Path) -> None:
    path = tmp_path / "bucket_00000"
    path.write_bytes(b"ORC")
    with pytest.raises(InvalidOperationError, match="has 3 bytes, and its side file says that"):
        list(_events(CutFile(str(path), 2**64 - 1), StructType()))
