"""Dropping and truncating tables (catalog.md §17.5; numbers are its cases)."""

import threading

import pytest
from thrift.Thrift import TApplicationException

from metastore.catalog.store import moves as move_store
from metastore.errors import UnavailableError
from metastore.thrift_gen.hive_metastore import ttypes as T

EXTERNAL = {"EXTERNAL": "TRUE"}


def with_data(hive, name="t", **fields):
    directory = hive.path(hive.create(name, **fields).sd.location)
    (directory / "data").write_text("x")
    return directory


@pytest.mark.parametrize(("db", "name", "error"), [
    ("d", "nope", T.NoSuchObjectException), ("nope", "t", T.NoSuchObjectException), ("@nope#d", "t", T.NoSuchObjectException),
    (None, "t", T.MetaException), ("d", None, T.MetaException)])  # 128 133
def test_drop_refused(d, db, name, error):
    d.create()
    with pytest.raises(error):
        d.drop_table(db, name, True)


def test_drop(d):  # 128 129
    directory = with_data(d)
    d.drop_table("D", "T", True)
    assert not directory.exists()
    with pytest.raises(T.NoSuchObjectException):
        d.get_table("d", "t")
    directory = with_data(d)
    d.drop_table_with_environment_context("d", "t", False, T.EnvironmentContext({"ifPurge": "TRUE"}))
    assert (directory / "data").exists()
    d.create()
    d.drop_table_req(T.DropTableRequest(dbName="d", tableName="t", deleteData=True))
    assert not directory.exists()


def test_drop_external(d):  # 130
    kept = with_data(d, parameters=EXTERNAL)
    purged = with_data(d, "p", parameters={**EXTERNAL, "external.table.purge": "true"})
    for name in ("t", "p"):
        d.drop_table("d", name, True)
    assert (kept / "data").exists()
    assert not purged.exists()


def test_drop_view(d):
    d.create("v", tableType="VIRTUAL_VIEW")
    d.drop_table("d", "v", True)
    assert d.get_all_tables("d") == []


def test_drop_takes_partitions_elsewhere_along(d, tmp_path):
    d.create(keys="p:string")
    d.add("a")
    outside = d.append_partition("d", "t", ["b"])
    outside.sd.location = str(tmp_path / "outside")
    d.alter_partition("d", "t", outside)
    (tmp_path / "outside").mkdir()
    d.drop_table("d", "t", True)
    assert not (tmp_path / "outside").exists()
    d.create(keys="p:string")
    assert d.get_partition_names("d", "t", -1) == []


def test_drop_without_right_to_delete(d, monkeypatch):
    def refused(*_, **__):
        raise PermissionError("not yours")
    directory = with_data(d)
    monkeypatch.setattr("metastore.files.shutil.rmtree", refused)
    d.drop_table("d", "t", True)
    assert d.get_all_tables("d") == []
    assert (directory / "data").exists()


def test_truncate(d):  # 134 137 138
    directory = with_data(d, parameters={"numRows": "5", "totalSize": "1", "kept": "5", "COLUMN_STATS_ACCURATE": "{}"})
    (directory / "deep" / "er").mkdir(parents=True)
    d.truncate_table("d", "T", None)
    assert list(directory.iterdir()) == []
    parameters = d.get_table("d", "t").parameters
    del parameters["transient_lastDdlTime"]
    assert parameters == {"numRows": "0", "totalSize": "0", "kept": "5"}
    for wrong in ("nope", "d"):
        with pytest.raises((TApplicationException, T.MetaException)):
            d.truncate_table(wrong, "t" if wrong == "nope" else "nope", None)


@pytest.mark.parametrize(("names", "emptied"), [(["p=a"], "a"), (None, "ab"), ([], ""), (["p=nope"], "")])  # 135 136
def test_truncate_partitions(d, names, emptied):
    d.create(keys="p:string")
    for value in "ab":
        part = d.append_partition("d", "t", [value])
        (d.path(part.sd.location) / "data").write_text("x")
        part.parameters["numFiles"] = "1"
        d.alter_partition("d", "t", part)
    d.truncate_table_req(T.TruncateTableRequest("d", "t", names))
    for value in "ab":
        part = d.get_partition("d", "t", [value])
        assert (d.path(part.sd.location) / "data").exists() == (value not in emptied)
        assert part.parameters["numFiles"] == ("0" if value in emptied else "1")


def acid(d, **fields):
    return with_data(d, parameters={"transactional": "true", "transactional_properties": "insert_only"}, **fields)


def test_truncate_of_a_transactional_table_needs_a_write_id(d):
    directory = acid(d)
    with pytest.raises(T.MetaException, match="write id"):
        d.truncate_table("d", "t", None)
    assert [path.name for path in directory.iterdir()] == ["data"]


def test_truncate_of_metadata_only(d):
    directory = with_data(d)
    d.truncate_table_req(T.TruncateTableRequest(
        "d", "t", environmentContext=T.EnvironmentContext({"truncateSkipDataDeletion": "true"})))
    assert (directory / "data").exists()


# Renames that a crash interrupts: the state that it leaves is made by hand, then repaired.

def announced(hive, database, source="t", target="new"):
    root = f"file:{hive.warehouse}/d.db"
    with database.begin() as pg:
        return move_store.insert_move(pg, hive.get_table("d", "t").id, f"{root}/{source}", f"{root}/{target}")


def moves(database):
    return database.once("SELECT source FROM directory_moves")


def test_crash_before_the_directory_moved(d, database):
    directory = with_data(d)
    announced(d, database)
    assert d.moves.settle_moves() == 1
    assert (directory / "data").exists()
    assert moves(database) == []


def test_crash_after_the_directory_moved(d, database):
    directory = with_data(d)
    announced(d, database)
    directory.rename(directory.parent / "new")
    assert d.moves.settle_moves() == 1
    assert (directory / "data").read_text() == "x"
    assert not (directory.parent / "new").exists()
    assert d.get_table("d", "t").sd.location == f"file:{directory}"


def test_crash_in_the_middle_of_a_copy(d, database):
    directory = with_data(d)
    announced(d, database)
    (directory.parent / "new" / "p=1").mkdir(parents=True)
    (directory.parent / "new" / "p=1" / "moved").write_text("y")
    (directory.parent / "new" / "data").write_text("x")
    assert d.moves.settle_moves() == 1
    assert sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()) == ["data", "p=1/moved"]
    assert not (directory.parent / "new").exists()


def test_nobody_settles_a_move_in_progress(d, database):
    with_data(d)
    move = announced(d, database)
    with d.moves.moving(move):
        finder = threading.Thread(target=lambda: counts.append(d.moves.settle_moves()))
        counts = []
        finder.start()
        finder.join()
        assert counts == [0]
    assert moves(database) == []


def test_a_settled_move_is_not_begun(d, database):
    directory = with_data(d)
    move = announced(d, database)
    assert d.moves.settle_moves() == 1
    with pytest.raises(UnavailableError), d.moves.moving(move):
        pass
    assert (directory / "data").exists()


def test_a_failing_rename_leaves_everything(d, database, monkeypatch):
    directory = with_data(d)

    def refused(*_, **__):
        raise PermissionError("not yours")
    monkeypatch.setattr("metastore.files.shutil.move", refused)
    table = d.get_table("d", "t")
    table.tableName = "new"
    with pytest.raises(T.InvalidOperationException, match="not yours"):
        d.alter_table("d", "t", table)
    assert d.get_all_tables("d") == ["t"]
    assert (directory / "data").exists()
    assert moves(database) == []


def test_a_failure_after_the_directory_moved_brings_it_back(d, database, monkeypatch):
    directory = with_data(d)
    calls = []

    def failing_once(pg, move):
        calls.append(move)
        if len(calls) == 1:
            assert (directory.parent / "new" / "data").exists()
            raise RuntimeError("PostgreSQL is gone")
        delete_move(pg, move)

    delete_move = move_store.delete_move
    monkeypatch.setattr(move_store, "delete_move", failing_once)
    table = d.get_table("d", "t")
    table.tableName = "new"
    with pytest.raises((TApplicationException, T.MetaException, T.InvalidOperationException)):
        d.alter_table("d", "t", table)
    assert d.get_all_tables("d") == ["t"]
    assert (directory / "data").read_text() == "x"
    assert not (directory.parent / "new").exists()
    assert moves(database) == []


def test_no_table_is_created_where_one_is_moving_to(d, database):
    with_data(d)
    announced(d, database)
    with pytest.raises(T.MetaException, match="being renamed"):
        d.create("new")
    d.moves.settle_moves()
    d.create("new")
