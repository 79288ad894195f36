"""Dropping, altering and renaming partitions: CAT-206 to CAT-221, of CAT-P6, CAT-P7."""

from pathlib import Path
from typing import Any

import pytest

from metastore.catalog.model import TableType
from metastore.catalog.store import directory_changes, partition_wires
from metastore.catalog.store.directory_changes import Phase
from metastore.errors import InvalidOperationError, InvalidRequestError, MetaError, NoSuchObjectError
from metastore.thrift_gen.hive_metastore import ttypes


@pytest.fixture
def months(rpc: Any) -> Any:
    """Keys year and month: 2017/march, 2017/april, 2018/march, each with a file."""
    directory = rpc.table(keys="year month")
    rpc.add("2017/march", "2017/april", "2018/march")
    for name in rpc.names():
        (directory / name / "data").write_text(name)
    return rpc


def place(rpc: Any, name: str) -> Path:
    return Path(rpc.warehouse) / "d.db" / "t" / name


def request(**fields: Any) -> ttypes.DropPartitionsRequest:
    parts = ttypes.RequestPartsSpec(names=fields.pop("names", None), exprs=[
        ttypes.DropPartitionsExpr(expr) for expr in fields.pop("exprs")] if "exprs" in fields else None)
    return ttypes.DropPartitionsRequest(**{"dbName": "d", "tblName": "t", "parts": parts, "deleteData": True, **fields})


# ---- drop
def test_a_dropped_partition_takes_its_data_along(months: Any) -> None:
    assert months.drop_partition("d", "t", ["2017", "march"], True) is True
    assert not place(months, "year=2017/month=march").exists()
    assert place(months, "year=2017/month=april/data").exists()
    assert months.drop_partition("d", "t", ["2018", "march"], True)
    assert not place(months, "year=2018").exists()
    assert place(months, "").exists()
    assert months.drop_partition("d", "t", ["2017", "april"], True)
    assert months.names() == []
    assert place(months, "").exists()


def test_data_stays_if_nobody_asks_for_its_removal(months: Any) -> None:
    months.drop_partition("d", "t", ["2017", "march"], False)
    assert place(months, "year=2017/month=march/data").exists()


@pytest.mark.parametrize(("parameters", "stays"), [({}, True), ({"external.table.purge": "TRUE"}, False)])
def test_data_of_external_tables(rpc: Any, parameters: dict[str, str], *, stays: bool) -> None:
    directory = rpc.table(keys="k", type=TableType.EXTERNAL, parameters=parameters)
    rpc.add("1")
    rpc.drop_partition("d", "t", ["1"], True)
    assert (directory / "k=1").exists() is stays


def test_an_archived_partition_is_removed_where_it_was(rpc: Any, tmp_path: Path) -> None:
    directory = rpc.table(keys="k")
    original = tmp_path / "original"
    original.mkdir()
    rpc.add_partition(rpc.part(["1"], parameters={"is_archived": "true", "original_location": f"file:{original}"}))
    rpc.drop_partition("d", "t", ["1"], True)
    assert not original.exists()
    assert (directory / "k=1").exists()


def test_no_drop_removes_the_table_or_a_shared_directory(rpc: Any) -> None:
    directory = rpc.table(keys="k")
    rpc.add_partitions([rpc.part(["root"], location=f"file:{directory}"), rpc.part(["above"], location=f"file:{directory.parent}"),
                        rpc.part(["one"], location=f"file:{directory}/both"), rpc.part(["two"], location=f"file:{directory}/both")])
    for value in ("root", "above", "one"):
        rpc.drop_partition("d", "t", [value], True)
        assert (directory / "both").exists()
    rpc.drop_partition("d", "t", ["two"], True)
    assert not (directory / "both").exists()


@pytest.mark.parametrize(("arguments", "error"), [
    (("d", "no", ["2017", "march"]), NoSuchObjectError), (("no", "t", ["2017", "march"]), NoSuchObjectError),
    (("", "t", ["2017", "march"]), NoSuchObjectError), ((None, "t", ["2017", "march"]), MetaError),
    (("d", "t", ["2017", "may"]), NoSuchObjectError), (("d", "t", ["2017", ""]), NoSuchObjectError),
    (("d", "t", ["2017"]), MetaError), (("d", "t", []), MetaError), (("d", "t", None), MetaError), (("d", "t", ["2017", None]), MetaError)])
def test_drops_that_are_refused(months: Any, arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        months.drop_partition(*arguments, True)
    assert len(months.names()) == 3


def test_dropping_by_name(months: Any) -> None:
    for name, error in [("year=2017", NoSuchObjectError), ("foo=bar", NoSuchObjectError), ("year=/month=march", NoSuchObjectError),
                        ("", MetaError), (None, MetaError), ("year=2017/month=may", NoSuchObjectError)]:
        with pytest.raises(error):
            months.drop_partition_by_name("d", "t", name, True)
    assert months.drop_partition_by_name("d", "t", "year=2017/month=march/day=1", True) is True
    assert months.drop_partition_req(ttypes.DropPartitionRequest(
        dbName="d", tblName="t", partName="year=2017/month=april", deleteData=True)) is True
    assert months.drop_partition_req(ttypes.DropPartitionRequest(dbName="d", tblName="t", partVals=["2018", "march"])) is True
    assert months.names() == []
    assert place(months, "year=2018/month=march").exists()


def test_dropping_several_by_name(months: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_wires, "_SOME", 1)
    names = ["year=2017/month=march", "year=2017/month=may", "year=2018/month=march"]
    with pytest.raises(NoSuchObjectError, match="Some partitions to drop are missing"):
        months.drop_partitions_req(request(names=names, ifExists=False))
    assert len(months.names()) == 3
    were = months.get_partitions_by_names("d", "t", names)
    dropped = months.drop_partitions_req(request(names=names)).partitions
    assert [part.values for part in dropped] == [["2017", "march"], ["2018", "march"]]
    assert dropped == were
    assert months.names() == ["year=2017/month=april"]
    assert not place(months, "year=2018").exists()
    assert months.drop_partitions_req(request(names=["year=2017/month=april"], needResult=False)).partitions is None
    assert months.drop_partitions_req(request(names=names)).partitions == []
    with pytest.raises(MetaError, match="Partition spec is not set"):
        months.drop_partitions_req(request())
    with pytest.raises(NoSuchObjectError):
        months.drop_partitions_req(request(names=names, tblName="no"))


def test_dropping_by_expression(months: Any) -> None:
    with pytest.raises(NoSuchObjectError, match="Some partitions to drop are missing"):
        months.drop_partitions_req(request(exprs=[b"month='march'", b"month='may'"], ifExists=False))
    with pytest.raises(InvalidRequestError):
        months.drop_partitions_req(request(exprs=[b"nokey='march'"]))
    assert len(months.names()) == 3
    dropped = months.drop_partitions_req(request(exprs=[b"month='march'", b"year='2017' and month='march'"])).partitions
    assert len(dropped) == 2
    assert months.names() == ["year=2017/month=april"]
    assert place(months, "year=2017/month=april/data").exists()


def test_a_drop_forgets_statistics_and_transactions_of_the_partition(months: Any) -> None:
    _remember(months, "year=2017/month=march")
    _remember(months, "year=2017/month=april")
    months.drop_partition("d", "t", ["2017", "march"], True)
    kept = months.db.once(_REMEMBERED)
    assert kept == [("completed", "year=2017/month=april"), ("lock", "year=2017/month=april"), ("lock", "year=2017/month=march"),
                    ("queue", "year=2017/month=april"), ("statistics", "year=2017/month=april")]


_REMEMBERED = """
    SELECT 'completed', partition FROM completed_txn_components UNION ALL SELECT 'queue', partition FROM compaction_queue
    UNION ALL SELECT 'lock', partition FROM locks UNION ALL SELECT 'statistics', partition FROM column_statistics ORDER BY 1, 2"""


def _remember(rpc: Any, partition: str) -> None:
    rpc.db.once("""
        INSERT INTO completed_txn_components VALUES (1, 'hive', 'd', 't', %(p)s, 1, false, metastore_now());
        INSERT INTO compaction_queue (catalog, db, "table", partition, state, type, enqueued_at)
            VALUES ('hive', 'd', 't', %(p)s, 'initiated', 'minor', metastore_now());
        INSERT INTO locks (ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, requested_at, "user", host)
            VALUES ((SELECT count(*) FROM locks), 1, 9, 'hive', 'd', 't', %(p)s, 'exclusive', 'acquired', metastore_now(), 'u', 'h');
        INSERT INTO column_statistics SELECT id, %(p)s, 'id', 'hive', 'int', '{}' FROM tables WHERE name = 't';
        INSERT INTO column_statistics SELECT id, %(p)s, 'value', 'hive', 'string', '{}' FROM tables WHERE name = 't' AND %(p)s LIKE 'x%%'
        """, {"p": partition})


# ---- alter
def test_altering_replaces_everything_but_the_name(months: Any) -> None:
    changed = months.part(["2017", "march"], parameters={"x": "y", "transient_lastDdlTime": "0", "DO_NOT_UPDATE_STATS": "true"},
                          location=f"file:{months.warehouse}/moved", createTime=7, lastAccessTime=8)
    changed.sd.cols.append(ttypes.FieldSchema("Extra", "date", None))
    months.alter_partition("d", "t", changed)
    found = months.get_partition("d", "t", ["2017", "march"])
    assert (found.createTime, found.lastAccessTime, found.sd.location) == (7, 8, f"file:{months.warehouse}/moved")
    assert found.parameters["x"] == "y"
    assert int(found.parameters.pop("transient_lastDdlTime")) > 1_500_000_000
    assert found.parameters == {"x": "y"}
    assert [column.name for column in found.sd.cols] == ["id", "value", "extra"]
    assert place(months, "year=2017/month=march/data").exists()
    assert not (months.warehouse / "moved").exists()
    assert len(months.get_partition("d", "t", ["2017", "april"]).sd.cols) == 2


def test_a_ddl_time_and_an_absent_location_are_kept(months: Any) -> None:
    before = months.get_partition("d", "t", ["2017", "march"]).sd.location
    months.alter_partition("d", "t", months.part(["2017", "march"], parameters={"transient_lastDdlTime": "5"}))
    found = months.get_partition("d", "t", ["2017", "march"])
    assert (found.parameters, found.sd.location) == ({"transient_lastDdlTime": "5"}, before)


@pytest.mark.parametrize(("arguments", "values", "fields", "error"), [
    (("d", "t"), ["2017", "may"], {}, InvalidOperationError), (("d", "t"), ["2017"], {}, MetaError), (("d", "t"), [], {}, MetaError),
    (("d", "t"), ["2017", "march"], {"table": "other"}, MetaError), (("d", "t"), ["2017", "march"], {"db": "other"}, MetaError),
    (("d", "no"), ["2017", "march"], {"table": "no"}, InvalidOperationError), (("", "t"), ["1", "2"], {"db": ""}, InvalidOperationError),
    ((None, "t"), ["2017", "march"], {}, MetaError), (("d", "t"), ["2017", "march"], {"sd": None}, MetaError)])
def test_alterations_that_are_refused(months: Any, arguments: tuple[Any, ...], values: list[str], fields: dict[str, Any],
                                      error: type[Exception]) -> None:
    with pytest.raises(error):
        months.alter_partition(*arguments, months.part(values, **fields))


def test_several_are_altered_or_none(months: Any) -> None:
    good, bad = (months.part(["2017", month], parameters={"new": "1"}) for month in ("march", "may"))
    with pytest.raises(InvalidOperationError):
        months.alter_partitions("d", "t", [good, bad])
    with pytest.raises(InvalidOperationError):
        months.alter_partitions("d", "t", [])
    assert "new" not in months.get_partition("d", "t", ["2017", "march"]).parameters
    request = ttypes.AlterPartitionsRequest(dbName="@hive#d", tableName="t", partitions=[
        good, months.part(["2017", "april"], parameters={"new": "2"})])
    months.alter_partitions_req(request)
    assert [part.parameters.get("new") for part in months.get_partitions("d", "t", -1)] == ["2", "1", None]


def test_a_write_id_is_not_forgotten_by_older_clients(months: Any) -> None:
    months.alter_partition("d", "t", months.part(["2017", "march"], writeId=7))
    months.alter_partition_with_environment_context("d", "t", months.part(["2017", "march"]), None)
    assert months.get_partition("d", "t", ["2017", "march"]).writeId == 7


def test_statistics_of_changed_columns_go(months: Any) -> None:
    months.db.once("INSERT INTO column_statistics SELECT id, 'year=2017/month=march', unnest(array['id', 'value']), 'hive', 'int', '{}' "
                   "FROM tables WHERE name = 't'")
    changed = months.part(["2017", "march"])
    changed.sd.cols[0].type = "bigint"
    months.alter_partition("d", "t", changed)
    assert months.db.once('SELECT "column" FROM column_statistics') == [("value",)]


# ---- rename
def test_a_renamed_partition_takes_its_directory_along(months: Any) -> None:
    _remember(months, "year=2017/month=march")
    months.rename_partition("d", "t", ["2017", "march"], months.part(["2019", "May"], parameters={"kept": "1"}, createTime=3))
    found = months.get_partition("d", "t", ["2019", "May"])
    assert found.sd.location == f"file:{place(months, 'year=2019/month=May')}"
    assert place(months, "year=2019/month=May/data").read_text() == "year=2017/month=march"
    assert not place(months, "year=2017/month=march").exists()
    assert (found.createTime, found.parameters["kept"]) == (3, "1")
    with pytest.raises(NoSuchObjectError):
        months.get_partition("d", "t", ["2017", "march"])
    assert {partition for _, partition in months.db.once(_REMEMBERED)} == {"year=2019/month=May"}
    assert months.db.once("SELECT count(*) FROM directory_changes") == [(0,)]


def test_a_partition_elsewhere_comes_home_when_renamed(rpc: Any, tmp_path: Path) -> None:
    directory = rpc.table(keys="k")
    rpc.add_partition(rpc.part(["1"], location=f"file:{tmp_path}/part1"))
    (tmp_path / "part1" / "data").touch()
    rpc.rename_partition("d", "t", ["1"], rpc.part(["2"], location=f"file:{tmp_path}/part1"))
    assert rpc.get_partition("d", "t", ["2"]).sd.location == f"file:{directory}/k=2"
    assert (directory / "k=2" / "data").exists()


def test_a_partition_without_directory_is_renamed_on_paper(rpc: Any) -> None:
    directory = rpc.table(keys="k")
    rpc.add("1")
    (directory / "k=1").rmdir()
    rpc.rename_partition("d", "t", ["1"], rpc.part(["2"]))
    assert rpc.names() == ["k=2"]


def test_external_partitions_stay_where_they_are(rpc: Any) -> None:
    directory = rpc.table(keys="k", type=TableType.EXTERNAL)
    rpc.add("1")
    rpc.rename_partition("d", "t", ["1"], rpc.part(["2"]))
    assert rpc.get_partition("d", "t", ["2"]).sd.location == f"file:{directory}/k=1"
    assert (directory / "k=1").exists()


@pytest.mark.parametrize(("old", "new", "fields", "error"), [
    (["2017", "march"], ["2018", "march"], {}, InvalidOperationError), (["2017", "may"], ["1", "2"], {}, InvalidOperationError),
    (["2017"], ["1", "2"], {}, InvalidOperationError), (None, ["2017", "may"], {}, InvalidOperationError),
    ([], ["2017", "may"], {}, InvalidOperationError), (["2017", "march"], ["1"], {}, MetaError),
    (["2017", "march"], ["1", "2"], {"table": "other"}, MetaError), (["2017", "march"], ["1", "2"], {"tableName": None}, MetaError)])
def test_renames_that_are_refused(months: Any, old: Any, new: list[str], fields: dict[str, Any], error: type[Exception]) -> None:
    struct = months.part(new, **{name: value for name, value in fields.items() if name == "table"})
    if "tableName" in fields:
        struct.tableName = None
    with pytest.raises(error):
        months.rename_partition("d", "t", old, struct)
    assert len(list(place(months, "").rglob("data"))) == 3
    assert len(months.names()) == 3


def test_a_rename_of_a_missing_table(months: Any) -> None:
    with pytest.raises(InvalidOperationError):
        months.rename_partition("d", "no", ["2017", "march"], months.part(["1", "2"], "no"))


def test_a_taken_directory_stops_a_rename(months: Any) -> None:
    place(months, "year=2030/month=x").mkdir(parents=True)
    with pytest.raises(InvalidOperationError, match="already exists"):
        months.rename_partition("d", "t", ["2017", "march"], months.part(["2030", "x"]))
    assert place(months, "year=2017/month=march/data").exists()
    assert months.db.once("SELECT count(*) FROM directory_changes") == [(0,)]


def test_renaming_to_itself_is_refused_and_without_old_values_alters(months: Any) -> None:
    """Asked: 4.0.1 and 2.3.10."""
    with pytest.raises(InvalidOperationError, match="already exists"):
        months.rename_partition_req(ttypes.RenamePartitionRequest(
            dbName="d", tableName="t", partVals=["2017", "march"], newPart=months.part(["2017", "march"], parameters={"new": "1"})))
    months.rename_partition("d", "t", [], months.part(["2017", "april"], parameters={"new": "2"}))
    assert [part.parameters.get("new") for part in months.get_partitions("d", "t", -1)] == ["2", None, None]
    assert len(list(place(months, "").rglob("data"))) == 3


def test_a_rename_that_dies_on_the_way_is_undone(months: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory has moved, the catalog has not: a later start brings the files back."""
    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    def die_late(*arguments: Any) -> bool:
        """Neither is the catalog changed, nor is anything taken back."""
        return bool(going_on(*arguments)) if arguments[3] is Phase.ANNOUNCED else die()

    going_on = directory_changes.update_phase
    monkeypatch.setattr(directory_changes, "update_phase", die_late)
    with pytest.raises(KeyboardInterrupt):
        months.rename_partition("d", "t", ["2017", "march"], months.part(["2030", "x"]))
    assert months.db.once("SELECT phase FROM directory_changes") == [("begun",)]
    assert place(months, "year=2030/month=x/data").exists()
    monkeypatch.undo()
    for _ in range(2):
        months.db.once("UPDATE directory_changes SET renewed_at = renewed_at - interval '1 h', abandoned_at = abandoned_at - interval '1 h'")
        months.moves.settle_moves()
    assert place(months, "year=2017/month=march/data").exists()
    assert months.get_partition("d", "t", ["2017", "march"]).sd.location == f"file:{place(months, 'year=2017/month=march')}"
    assert months.db.once("SELECT count(*) FROM directory_changes") == [(0,)]
