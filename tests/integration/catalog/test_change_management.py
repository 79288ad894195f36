"""Files of databases that are replicated go to cmroot, whoever removes them."""

import hashlib
import os
from datetime import timedelta

import pytest

from metastore.catalog.service.change_management import KeptFiles
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.service.partition_exchange import PartitionExchange
from metastore.catalog.store.directory_changes import LEASE
from metastore.errors import MetaError
from metastore.files import Files
from metastore.ids import TableName
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.integration.catalog.conftest import ORC


@pytest.fixture
def files(tmp_path):
    return Files(cmroot=f"file:{tmp_path}/wh/.cmroot")


@pytest.fixture
def source(hive):
    hive.database(parameters={"repl.source.for": "policy"})
    return hive


def put(directory, **contents):
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (directory / name).write_text(text)
    return directory


def kept_name(name, text):
    return f"{name}_{hashlib.md5(text.encode()).hexdigest()}"


def kept(hive):
    root = hive.warehouse / ".cmroot"
    return sorted(child.name for child in root.iterdir()) if root.exists() else []


def names(**contents):
    return sorted(kept_name(name, text) for name, text in contents.items())


def drop(hive):
    hive.drop_table("d", "t", True)


def truncate(hive):
    hive.truncate_table("d", "t", None)


def rename(hive):
    table = hive.get_table("d", "t")
    table.tableName = "new"
    hive.alter_table("d", "t", table)


@pytest.mark.parametrize("statement", [drop, truncate, rename])
@pytest.mark.parametrize("copies", [False, True])
def test_of_a_table(source, statement, copies, monkeypatch):
    if copies:
        monkeypatch.setattr(Files, "moves_in_one_step", lambda *_: False)
    place = put(source.path(source.create().sd.location), a="1", b="2", _c="3")
    put(place / ".hidden", d="4")
    put(place / "deep", a="5")
    statement(source)
    assert kept(source) == sorted([*names(a="1", b="2", _c="3"), kept_name("a", "5")])
    assert not any(path.is_file() for path in place.rglob("*"))
    assert (source.warehouse / ".cmroot" / kept_name("a", "5")).read_text() == "5"


def test_of_partitions(source):
    source.create(keys="p:string")
    for value in "ab":
        put(source.path(source.append_partition("d", "t", [value]).sd.location), f=value)
    moved = source.get_partition("d", "t", ["b"])
    moved.values = ["c"]
    source.rename_partition("d", "t", ["b"], moved)
    assert kept(source) == names(f="b")
    source.drop_partition("d", "t", ["a"], True)
    assert kept(source) == sorted(names(f="b") + names(f="a"))


def test_of_exchanged_partitions(source, database):
    """Events tell of the place that they leave."""
    for name in ("t", "target"):
        source.create(name, keys="p:string")
    put(source.path(source.append_partition("d", "t", ["b"]).sd.location), f="b")
    t, target = (TableName("hive", "d", name) for name in ("t", "target"))
    PartitionExchange(database, source.moves).exchange_partitions({"p": "b"}, t, target)
    assert kept(source) == names(f="b")
    assert (source.path(source.get_partition("d", "target", ["b"]).sd.location) / "f").exists()


@pytest.mark.parametrize(("of_database", "of_table"), [
    ({}, {}), ({"repl.source.for": ""}, {}),
    ({"repl.source.for": "p"}, {"EXTERNAL": "TRUE", "external.table.purge": "true"})])
def test_what_no_replica_needs_goes(hive, of_database, of_table):
    hive.database(parameters=of_database)
    place = put(hive.path(hive.create(parameters=of_table).sd.location), a="1")
    drop(hive)
    assert not place.exists()
    assert kept(hive) == []


def recycle(hive, path):
    hive.cm_recycle(T.CmRecycleRequest(dataPath=str(path), purge=False))


def test_a_session_has_files_kept_that_it_is_about_to_replace(source):
    """CAT-T9: of a table, and of one partition, wherever that is."""
    place = source.path(source.create("whole").sd.location)
    put(place / "deep", a="1")
    recycle(source, f"file:{place}/")
    assert kept(source) == names(a="1")
    assert (place / "deep").is_dir()

    source.create(keys="p:string")
    for value in "bc":
        put(source.path(source.append_partition("d", "t", [value]).sd.location), f=value)
    recycle(source, source.get_partition("d", "t", ["b"]).sd.location)
    elsewhere = put(source.warehouse / "elsewhere", f="d")
    source.add_partition(T.Partition(["d"], "d", "t", sd=source.sd(location=f"file:{elsewhere}")))
    recycle(source, elsewhere)
    assert kept(source) == sorted(names(a="1") + names(f="b") + names(f="d"))


@pytest.mark.parametrize(("path", "said"), [
    ("d.db/acid", "transactional"), ("d.db/acid/delta_1", "transactional"), ("d.db/plain/../acid", "transactional"),
    ("d.db", "in the directory of no table"), ("", "in the directory of no table"), ("nowhere", "in the directory of no table")])
def test_what_a_session_may_not_take_away(source, path, said):
    """CAT-T9"""
    source.create("plain")
    acid = source.create("acid", sd=ORC, parameters={"transactional": "true"})
    place = put(source.path(acid.sd.location) / "delta_1", bucket_00000="1")
    with pytest.raises(T.MetaException, match=said):
        recycle(source, f"{source.warehouse}/{path}")
    assert kept(source) == []
    assert (place / "bucket_00000").exists()


@pytest.mark.parametrize("parameters", [{}, {"EXTERNAL": "TRUE"}], ids=["no source", "external"])
def test_what_no_replica_needs_stays_for_the_session_to_remove(hive, parameters):
    hive.database(parameters={"repl.source.for": "p"} if parameters else {})
    place = put(hive.path(hive.create(parameters=parameters).sd.location), a="1")
    recycle(hive, place)
    assert kept(hive) == []
    assert (place / "a").exists()


def test_switched_off(source):
    object.__setattr__(source.moves.files, "cmroot", "")
    place = put(source.path(source.create().sd.location), a="1")
    drop(source)
    assert not place.exists()
    recycle(source, place)
    assert kept(source) == []


def test_what_cannot_be_kept_stays_until_it_can(source, database, monkeypatch, test_clock):
    """Also who ends what a dead process left keeps what is to be kept."""
    place, put_over = put(source.path(source.create().sd.location), a="1", b="2"), Files.put_over

    def full(self, uri, target, *, move):
        if uri.endswith("/b"):
            raise OSError("no space left")
        put_over(self, uri, target, move=move)
    monkeypatch.setattr(Files, "put_over", full)
    drop(source)
    assert [path.name for path in place.iterdir()] == ["b"]
    monkeypatch.setattr(Files, "put_over", put_over)
    test_clock.advance(2 * LEASE)
    for _ in range(2):
        DirectoryMoves(database, source.moves.files).settle_moves()
        test_clock.advance(timedelta(minutes=6))
    assert not place.exists()
    assert kept(source) == names(a="1", b="2")


def test_a_truncate_that_cannot_keep_says_so(source, monkeypatch):
    place = put(source.path(source.create().sd.location), a="1")
    monkeypatch.setattr(Files, "checksum", lambda *_: (_ for _ in ()).throw(OSError("no checksum")))
    with pytest.raises(T.MetaException, match="no checksum"):
        truncate(source)
    assert (place / "a").exists()


def test_equal_files_are_kept_once_and_from_the_last(source):
    place = put(source.path(source.create().sd.location), a="1")
    truncate(source)
    [file] = (source.warehouse / ".cmroot").iterdir()
    first = file.stat().st_ino
    put(place, a="1")
    drop(source)
    [file] = (source.warehouse / ".cmroot").iterdir()
    assert file.stat().st_ino != first


@pytest.mark.parametrize("place", ["", "/wh", "/wh/.cmroot", "/wh/.cmroot/x"])
def test_what_is_kept_is_not_removed_with_a_table(source, place):
    root = source.warehouse / ".cmroot"
    put(root, old="1")
    with pytest.raises(MetaError, match="replicas may still need"):
        Directories(source.moves.files).empty(f"file:{source.warehouse.parent}{place}", kept=False)
    assert kept(source) == ["old"]


def test_kept_files_go_when_they_are_old(source, database):
    keeper = KeptFiles(database, source.moves.files, timedelta(days=10))
    assert keeper.purge() == 0
    put(source.path(source.create().sd.location), a="1")
    drop(source)
    put(source.warehouse / ".cmroot" / "directory", a="1")
    assert keeper.purge() == 0
    [file] = names(a="1")
    os.utime(source.warehouse / ".cmroot" / file, (0, 0))
    assert keeper.purge() == 1
    assert kept(source) == ["directory"]


def test_a_kept_file_that_cannot_be_removed_holds_up_no_other(source, database, monkeypatch):
    root, remove, asked = source.warehouse / ".cmroot", Files.delete, []

    def denied(files, uri, *, recursive=True):
        asked.append(uri.rpartition("/")[2])
        if len(asked) == 1:
            raise PermissionError(f"{uri}: permission denied")
        remove(files, uri, recursive=recursive)

    monkeypatch.setattr(Files, "delete", denied)
    put(root, a="1", b="1", c="1")
    for file in root.iterdir():
        os.utime(file, (0, 0))
    with pytest.raises(PermissionError):
        KeptFiles(database, source.moves.files, timedelta(days=10)).purge()
    assert (len(asked), kept(source)) == (3, asked[:1])
