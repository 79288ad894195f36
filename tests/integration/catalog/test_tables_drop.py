"""Dropping and truncating tables (CAT-T5, CAT-T6)."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes as T

EXTERNAL = {"EXTERNAL": "TRUE"}


def with_data(hive, name="t", **fields):
    directory = hive.path(hive.create(name, **fields).sd.location)
    (directory / "data").write_text("x")
    return directory


@pytest.mark.parametrize(("db", "name", "error"), [
    ("d", "nope", T.NoSuchObjectException), ("nope", "t", T.NoSuchObjectException), ("@nope#d", "t", T.NoSuchObjectException),
    (None, "t", T.MetaException), ("d", None, T.MetaException)])  # CAT-128, CAT-133
def test_drop_refused(d, db, name, error):
    d.create()
    with pytest.raises(error):
        d.drop_table(db, name, True)


def test_drop(d):  # CAT-128, CAT-129
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


def test_drop_external(d):  # CAT-130
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


@pytest.mark.parametrize("drop", ["table", "partition", "database"])
def test_a_partition_of_another_table_in_a_directory_keeps_it(d, drop):
    """Whoever drops a table, a partition or a database, does not remove what belongs to a table that stays."""
    if drop != "partition":
        directory = with_data(d)
    else:
        d.create(keys="p:string")
        directory = d.path(d.append_partition("d", "t", ["a"]).sd.location)
    (directory / "theirs").mkdir(parents=True)
    (directory / "theirs" / "data").write_text("x")
    d.create_database(T.Database("other", locationUri=d.warehouse.joinpath("elsewhere").as_uri()))
    d.create("u", db="other", keys="p:string")
    d.append_partition("other", "u", ["b"])
    with d.moves.db.begin() as pg:  # as it could be given before
        pg.sql("UPDATE partitions SET location = %s WHERE name = 'p=b'", (f"file:{directory}/theirs",))
    if drop == "table":
        d.drop_table("d", "t", True)
    elif drop == "partition":
        d.drop_partition("d", "t", ["a"], True)
    else:
        d.drop_database("d", True, True)
    assert (directory / "theirs" / "data").exists()


def test_drop_without_right_to_delete(d, monkeypatch):
    def refused(*_, **__):
        raise PermissionError("not yours")
    directory = with_data(d)
    monkeypatch.setattr("metastore.files.shutil.rmtree", refused)
    d.drop_table("d", "t", True)
    assert d.get_all_tables("d") == []
    assert (directory / "data").exists()


def test_truncate(d):  # CAT-134, CAT-137, CAT-138
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


@pytest.mark.parametrize(("names", "emptied"), [(["p=a"], "a"), (None, "ab"), ([], ""), (["p=nope"], "")])  # CAT-135, CAT-136
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
