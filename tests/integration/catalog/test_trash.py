"""Dropped data is in the trash of whoever dropped it, until fs.trash.interval is over."""

from datetime import timedelta

import pytest

from metastore.catalog.rules.trash import checkpoint, is_in_trash, place_in_trash
from metastore.catalog.service.trash import TrashKeeper
from metastore.catalog.store.directory_changes import LEASE
from metastore.config import CatalogSettings
from metastore.files import Files
from metastore.roots import Roots
from metastore.thrift_gen.hive_metastore import ttypes as T

PURGE = T.EnvironmentContext({"ifPurge": "TRUE"})
HOUR = timedelta(hours=1)


@pytest.fixture
def catalog_settings(tmp_path):
    return CatalogSettings(warehouse=str(tmp_path / "wh"), trash_interval=HOUR)


@pytest.fixture
def server_settings():
    return {"fs.trash.interval": "60"}


@pytest.fixture
def files(tmp_path):
    return Files(roots=Roots((str(tmp_path / "other"), str(tmp_path / "wh"))))


@pytest.fixture
def keeper(d):
    return TrashKeeper(d.moves, HOUR)


def filled(hive, location, text="rows"):
    directory = hive.path(location)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "f").write_text(text)
    return directory


def place(hive, directory, user="ann"):
    return hive.warehouse / ".Trash" / user / "Current" / directory.relative_to("/")


def users(hive):
    top = hive.warehouse / ".Trash"
    return sorted(child.name for child in top.iterdir()) if top.exists() else []


def test_a_dropped_table_is_in_the_trash(d):
    directory = filled(d, d.create(parameters={"transactional": "true", "transactional_properties": "insert_only"}).sd.location)
    d.drop_table("d", "t", True)
    assert not directory.exists()
    assert (place(d, directory) / "f").read_text() == "rows"
    filled(d, d.create().sd.location, "more")
    d.drop_table_with_environment_context("d", "t", True, T.EnvironmentContext({"ifPurge": "false"}))
    again = [each for each in place(d, directory).parent.iterdir() if each != place(d, directory)]
    assert [(each / "f").read_text() for each in again] == ["more"]
    assert (place(d, directory) / "f").read_text() == "rows"


def test_purged_data_is_removed(d):
    directory = filled(d, d.create().sd.location)
    d.drop_table_with_environment_context("d", "t", True, PURGE)
    filled(d, d.create(parameters={"auto.purge": "True"}).sd.location)
    d.drop_table("d", "t", True)
    d.create(keys="p:string", parameters={"auto.purge": "true"})
    d.add("1")
    d.drop_partition("d", "t", ["1"], True)
    assert (directory.exists(), users(d)) == (True, [])


def test_partitions_and_databases(d):
    directory = d.path(d.create(keys="p:string").sd.location)
    for value in "123":
        d.add(value)
        (directory / f"p={value}" / "f").write_text(value)
    d.drop_partition_by_name("d", "t", "p=1", True)
    d.drop_partition_with_environment_context("d", "t", ["2"], True, PURGE)
    assert sorted(each.name for each in place(d, directory).iterdir()) == ["p=1"]
    d.drop_database("d", True, True)
    assert not directory.parent.exists()
    [whole] = [each for each in place(d, directory).parents[1].iterdir() if each.name != "d.db"]
    assert (whole / "t" / "p=3" / "f").read_text() == "3"


def test_what_a_dead_process_leaves_goes_to_the_trash(d, database):
    directory = filled(d, d.create().sd.location)
    with database.begin() as pg:
        d.moves.announce_removals(pg, d.get_table("d", "t").id, [d.get_table("d", "t").sd.location], trash_of="bob")
        pg.sql("UPDATE directory_changes SET owner = 'dead', renewed_at = %s", (pg.now - LEASE - LEASE,))
        pg.sql("DELETE FROM tables")
    assert d.moves.settle_moves() == 1
    assert d.moves.settle_moves() == 0
    assert not directory.exists()
    assert (place(d, directory, "bob") / "f").read_text() == "rows"


def test_the_trash_is_emptied(d, keeper, database):
    directory = filled(d, d.create().sd.location)
    d.drop_table("d", "t", True)
    of_ann = d.warehouse / ".Trash" / "ann"
    with database.begin() as pg:
        old, young = checkpoint(pg.now - 2 * HOUR), checkpoint(pg.now - HOUR / 2)
    for name in (old, young, "mine"):
        (of_ann / name).mkdir()
    assert keeper.tidy() == 1
    [new] = {each.name for each in of_ann.iterdir()} - {young, "mine"}
    assert (of_ann / new / directory.relative_to("/") / "f").read_text() == "rows"
    assert (new > young, keeper.tidy()) == (True, 0)


def test_what_is_in_the_trash_and_has_an_owner_stays(d, keeper, database):
    with database.begin() as pg:
        old = checkpoint(pg.now - 2 * HOUR)
    top = f"file:{d.warehouse}/.Trash/ann"
    for name, at in (("a", f"{top}/{old}/a"), ("b", f"{top}/Current/b")):
        filled(d, at)
        d.create_table(d.table(name, sd={"location": at}, tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"}))
    keeper.tidy()
    assert (d.path(f"{top}/{old}/a/f").exists(), d.path(f"{top}/Current/b/f").exists()) == (True, True)


@pytest.mark.parametrize(("user", "name"), [
    ("../../x", "__.._x"), ("..", "_"), ("a/b@C", "a_b_C"), ("hive", "hive")])
def test_no_name_of_a_user_leads_out_of_the_trash(user, name):
    assert place_in_trash("s3a://b/wh/t", "s3a://b/wh", user) == f"s3a://b/wh/.Trash/{name}/Current/wh/t"


def test_the_trash_is_not_moved_to_the_trash():
    inside = "file:/wh/.Trash/a/Current/wh/t"
    assert place_in_trash(inside, "file:/wh", "b") is None
    assert (is_in_trash("file:/wh/t", inside), is_in_trash("file:/wh/t", None), is_in_trash("file:/wh/u", inside)) == (True, False, False)


def test_a_server_has_it_by_its_settings(client, tmp_path):
    client.create_database(T.Database(name="d"))
    client.create_table(T.Table(tableName="t", dbName="d", sd=T.StorageDescriptor(cols=[T.FieldSchema("id", "int")], serdeInfo=T.SerDeInfo())))
    directory = tmp_path / "warehouse" / "d.db" / "t"
    (directory / "f").write_text("rows")
    client.drop_table("d", "t", True)
    [user] = (tmp_path / "warehouse" / ".Trash").iterdir()
    assert (user / "Current" / directory.relative_to("/") / "f").read_text() == "rows"
