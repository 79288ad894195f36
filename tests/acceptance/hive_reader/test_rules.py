"""Our pure rules beside Hive's own classes: directory selection, write-id lists, names, hashes."""

import base64
import json
import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metastore.acid.hashes import murmur3, row_hash
from metastore.acid.names import BaseName, DeltaName, bucket_file, parse_directory
from metastore.acid.snapshots import CompactorWriteIdList, RangeState, ValidTxnList, ValidWriteIdList
from metastore.acid.state import NotEnoughHistoryError, acid_state
from metastore.acid.types import parse_type
from metastore.files import Files
from tests.support.acid.shared_vectors import HASHES
from tests.support.acid.vectors import DirectoryVector, directory_vectors
from tests.support.hive_oracle.oracle import HiveOracle, OracleError

pytestmark = pytest.mark.spark

_SLOW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_OLD_VECTORS = [vector for vector in directory_vectors() if vector.in_hive_2]


def _make(directory: Path, vector: DirectoryVector) -> None:
    for child in vector.children:
        path = directory / child
        if child.startswith(("base_", "delta_", "delete_", "HIVE_", "_tmp", ".hive")):
            path.mkdir(parents=True)
            (path / "bucket_00000").touch()
        else:
            path.parent.mkdir(exist_ok=True)
            path.touch()


@pytest.mark.parametrize("vector", _OLD_VECTORS, ids=lambda vector: vector.name)
def test_hive_selects_the_same_directories(vector: DirectoryVector, oracle: HiveOracle, tmp_path: Path) -> None:
    directory = tmp_path / "t"
    _make(directory, vector)

    if vector.error:
        with pytest.raises(OracleError, match="Not enough history"):
            oracle.state(directory, vector.write_ids)
        return
    found = oracle.state(directory, vector.write_ids)

    assert found["base"] == vector.base
    assert tuple(found["deltas"]) == vector.deltas
    assert sorted(found["originals"]) == list(vector.originals)
    assert set(found["obsolete"]) == vector.obsolete


def test_most_vectors_are_compared_with_hive() -> None:
    assert len(_OLD_VECTORS) == 42


@st.composite
def _directories(draw: st.DrawFn) -> tuple[list[str], ValidWriteIdList]:
    """Deltas of one or several write ids as writers and compactors leave them, bases of compactors, a snapshot."""
    names: set[str] = set()
    for _ in range(draw(st.integers(0, 8))):
        low = draw(st.integers(1, 9))
        high = draw(st.integers(low, 9))
        is_delete = draw(st.booleans())
        statement = draw(st.integers(0, 2)) if low == high else None
        names.add(str(DeltaName(low, high, statement, is_delete=is_delete)))
    names |= {str(BaseName(one)) for one in draw(st.sets(st.integers(1, 9), max_size=2))}
    mark = draw(st.integers(0, 10))
    opened = tuple(sorted(one for one in draw(st.sets(st.integers(1, 9), max_size=3)) if one <= mark))
    return sorted(names), ValidWriteIdList("db.t", mark, min(opened, default=None), opened)


@given(case=_directories(), as_compactor=st.booleans())
@_SLOW
def test_hive_selects_the_same_of_random_directories(
    case: tuple[list[str], ValidWriteIdList], as_compactor: bool, oracle: HiveOracle,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    names, snapshot = case
    if as_compactor:
        snapshot = snapshot.for_compactor()
    directory = tmp_path_factory.mktemp("t")
    for name in names:
        (directory / name).mkdir()
        (directory / name / "bucket_00000").touch()
        if name.startswith("base_"):  # Hive 2.3 takes every base as a compactor's
            marker = {"thisFileVersion": "0", "dataFormat": "compacted"}
            (directory / name / "_metadata_acid").write_text(json.dumps(marker))

    try:
        state = acid_state(Files().listing(str(directory)), snapshot, ValidTxnList.everything(),
                           lambda path: (directory / path).read_text())
    except NotEnoughHistoryError:
        with pytest.raises(OracleError, match="Not enough history"):
            oracle.state(directory, snapshot)
        return
    found = oracle.state(directory, snapshot)

    assert found["base"] == (state.base.path if state.base else None)
    assert found["deltas"] == [delta.path for delta in state.deltas]
    obsolete = set(found["obsolete"])
    assert {name for name in obsolete if "delta" in name} == {name for name in state.obsolete if "delta" in name}
    if state.base:
        assert obsolete == set(state.obsolete)


@given(data=st.data(), mark=st.integers(0, 12), is_compactor=st.booleans())
@_SLOW
def test_hive_judges_write_ids_alike(data: st.DataObject, mark: int, is_compactor: bool, oracle: HiveOracle) -> None:
    invalid = tuple(sorted(data.draw(st.sets(st.integers(1, mark), max_size=6)))) if mark else ()
    aborted = frozenset(one for one in invalid if is_compactor or data.draw(st.booleans()))
    opened = [one for one in invalid if one not in aborted]
    kind = CompactorWriteIdList if is_compactor else ValidWriteIdList
    ids = kind("db.t", mark, min(opened, default=None), invalid, aborted)
    ranges = [(low, high) for low in range(1, 14) for high in range(low, 15)]

    hive = oracle.ask("write_ids", list=ids.format(), is_compactor=is_compactor, up_to=14, ranges=ranges)

    assert hive["text"] == ids.format()
    assert hive["valid"] == [ids.is_valid(one) for one in range(15)]
    assert hive["aborted"] == [ids.is_aborted(one) for one in range(15)]
    assert hive["bases"] == [ids.is_valid_base(one) for one in range(15)]
    assert [RangeState(one.lower()) for one in hive["ranges"]] == [ids.range_state(*one) for one in ranges]
    assert [RangeState(one.lower()) for one in hive["aborted_ranges"]] == [
        ids.aborted_range_state(*one) for one in ranges
    ]


@pytest.mark.parametrize(("low", "high", "bucket", "statement"), [(1, 1, 0, 0), (100, 200, 23, 7), (10**9, 2 * 10**9, 4095, 4095)])
def test_hive_makes_the_same_names(low: int, high: int, bucket: int, statement: int, oracle: HiveOracle) -> None:
    delete = DeltaName(low, high, statement, is_delete=True)

    hive = oracle.ask("names", min=low, max=high, bucket=bucket, statement=statement, parse=str(delete))

    assert hive["base"] == str(BaseName(high))
    assert hive["delta"] == str(DeltaName(low, high))
    assert hive["statement_delta"] == str(DeltaName(low, high, statement))
    assert hive["bucket"] == bucket_file(bucket)
    assert hive["parsed"] == [*delete[:3], True]
    assert parse_directory(str(delete)) == delete


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(value) if isinstance(value, date | Decimal) else value


@pytest.mark.parametrize(("kind", "value", "expected"), [(kind, value, first) for kind, value, first, _ in HASHES])
def test_the_hash_vectors_are_hives(kind: str, value: Any, expected: int, oracle: HiveOracle) -> None:
    assert oracle.ask("hash", types=kind, values=[_plain(value)]) == expected


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_infinity=False, allow_nan=False),
    "double": st.floats(allow_infinity=False, allow_nan=False),
    "string": st.text(),
    "varchar(200)": st.text(max_size=100),
    "binary": st.binary(),
    "date": st.dates(min_value=date(1900, 1, 1), max_value=date(2100, 1, 1)),
    "timestamp": st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1)),
    "decimal(38,10)": st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**27), max_value=10**27),
    "array<int>": st.lists(st.integers(-(2**31), 2**31 - 1)),
    "struct<a:int,b:string>": st.tuples(st.integers(-(2**31), 2**31 - 1), st.text()),
}


@pytest.mark.parametrize("kind", _VALUES)
@given(data=st.data())
@_SLOW
def test_hive_hashes_every_value_alike(kind: str, data: st.DataObject, oracle: HiveOracle) -> None:
    value = data.draw(_VALUES[kind])
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        value = 0.0

    assert oracle.ask("hash", types=kind, values=[_plain(value)]) == row_hash([value], [parse_type(kind)], 1)


@given(data=st.binary())
@_SLOW
def test_hives_murmur_agrees(data: bytes, oracle: HiveOracle) -> None:
    assert oracle.ask("murmur", bytes=base64.b64encode(data).decode()) == murmur3(data)
