"""Exchanging partitions: CAT-222 to CAT-232, of CAT-P8."""

from pathlib import Path
from typing import Any

import pytest

from metastore.errors import MetaError, MetastoreError

ALL = ["year=2017/month=april/day=23", "year=2017/month=march/day=15", "year=2017/month=march/day=22", "year=2017/month=may/day=23",
       "year=2018/month=april/day=23"]


@pytest.fixture
def e5(rpc: Any) -> Any:
    """Fixture E5 (CAT-Y2): a filled source and an empty, equal target."""
    source = rpc.table("source", keys="year month day")
    rpc.table("target", keys="year month day", db="d2")
    rpc.add(*(name.replace("year=", "").replace("month=", "").replace("day=", "") for name in ALL), table="source")
    for name in ALL:
        (source / name / "data").write_text(name)
    return rpc


def exchange(rpc: Any, **spec: str) -> list[str]:
    moved = rpc.exchange_partitions(spec, "d", "source", "d2", "target")
    for part in moved:
        directory = Path(part.sd.location.removeprefix("file:"))
        assert directory.is_relative_to(rpc.warehouse / "d2.db" / "target")
        assert (directory / "data").read_text().endswith(f"day={part.values[2]}")
    assert rpc.get_partition_names("d2", "target", -1) == sorted(rpc.get_partition_names("d2", "target", -1))
    return ["/".join(part.values) for part in moved]


@pytest.mark.parametrize(("spec", "moved"), [
    ({"year": "2017", "month": "march", "day": "22"}, ["2017/march/22"]),
    ({"year": "2017", "month": "", "day": ""}, ["2017/april/23", "2017/march/15", "2017/march/22", "2017/may/23"]),
    ({"year": "2017", "month": "march"}, ["2017/march/15", "2017/march/22"]),
    ({"year": "2017", "month": "march", "day": "22", "hour": "18"}, ["2017/march/22"]),
    ({"year": "2018", "honap": "x"}, ["2018/april/23"])])
def test_leading_keys_say_what_moves(e5: Any, spec: dict[str, str], moved: list[str]) -> None:
    assert exchange(e5, **spec) == moved
    assert len(e5.get_partition_names("d", "source", -1)) == len(ALL) - len(moved)
    assert len(e5.get_partition_names("d2", "target", -1)) == len(moved)
    assert e5.db.once("SELECT count(*) FROM directory_changes") == [(0,)]


def test_the_older_call_answers_nothing(e5: Any) -> None:
    assert e5.exchange_partition({"year": "2018"}, "d", "source", "d2", "target").values is None
    assert e5.get_partition_names("d2", "target", -1) == ["year=2018/month=april/day=23"]


@pytest.mark.parametrize("spec", [{}, None, {"month": "march"}, {"year": "2017", "day": "15"}, {"year": "2000"}, {"year": ""}])
def test_specifications_that_move_nothing(e5: Any, spec: Any) -> None:
    with pytest.raises(MetaError):
        e5.exchange_partitions(spec, "d", "source", "d2", "target")
    assert e5.get_partition_names("d", "source", -1) == ALL


@pytest.mark.parametrize("names", [
    ("d", "no", "d2", "target"), ("no", "source", "d2", "target"), ("d", "source", "d2", "no"), ("", "source", "d2", "target"),
    ("d", "source", "d2", ""), (None, "source", "d2", "target"), ("d", "source", "@other#d2", "target")])
def test_tables_that_are_not_there(e5: Any, names: tuple[str, ...]) -> None:
    with pytest.raises(MetaError):
        e5.exchange_partitions({"year": "2017"}, *names)


def test_a_partition_that_is_in_both_stops_everything(e5: Any) -> None:
    e5.add_partition(e5.part(["2017", "march", "22"], "target", db="d2"))
    with pytest.raises(MetaError, match="exists in d2.target already"):
        exchange(e5, year="2017")
    assert e5.get_partition_names("d", "source", -1) == ALL
    assert (e5.warehouse / "d.db" / "source" / ALL[0] / "data").exists()


def test_tables_must_look_alike(e5: Any) -> None:
    e5.table("keys", keys="year month tag", db="d2")
    e5.table("types", keys="year month day:int", db="d2")
    for table in ("keys", "types"):
        with pytest.raises(MetaError, match="different partition keys"):
            e5.exchange_partitions({"year": "2017"}, "d", "source", "d2", table)


def test_partitions_elsewhere_and_missing_directories(e5: Any) -> None:
    e5.add_partition(e5.part(["2019", "a", "1"], "source", location=f"file:{e5.warehouse}/elsewhere"))
    with pytest.raises(MetaError, match="not below the table's directory"):
        exchange(e5, year="2019")
    e5.add_partition(e5.part(["2020", "a", "1"], "source"))
    for directory in ("year=2020/month=a/day=1", "year=2020/month=a", "year=2020"):
        (e5.warehouse / "d.db" / "source" / directory).rmdir()
    with pytest.raises(MetaError, match="nothing to exchange"):
        exchange(e5, year="2020")
    (e5.warehouse / "d2.db" / "target" / "year=2018").mkdir()
    with pytest.raises(MetastoreError, match="already exists"):
        exchange(e5, year="2018")
    assert len(e5.get_partition_names("d", "source", -1)) == len(ALL) + 2
