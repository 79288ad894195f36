"""``metastore table check`` against a real server: answer, exit code, and what is moved."""

import json
import shutil
from datetime import datetime
from pathlib import Path

import pyorc
import pytest
import yaml

from metastore.acid.bucket import encode
from metastore.cli.main import main
from metastore.client import DomainClient, TxnManager
from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table, quarantine
from metastore.streaming import connect, orc_writer

_EVENT = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          "row:struct<a:int>>")


@pytest.fixture
def run(server, monkeypatch, capsys):
    """Run a command line in this process; (exit code, stdout, stderr)."""
    monkeypatch.setenv("METASTORE_URI", server.thrift_uri)

    def ran(*arguments):
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
            raise SystemExit(0)
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, printed.err
    return ran


@pytest.fixture
def table(client, tmp_path):
    """Create a table ``db.t`` with the partition ``p=1``, and return the partition's place."""
    types = client.types
    client.create_database(types.Database("db", locationUri=(tmp_path / "db").as_uri()))
    keys = [types.FieldSchema("p", "string")]
    place = _created(client, "t", {"transactional": "true"}, keys) / "p=1"
    _created(client, "plain", {}, keys)
    sd = client.get_table("db", "t").sd
    sd.location = f"file://{place}"
    client.add_partition(types.Partition(values=["1"], dbName="db", tableName="t", sd=sd, parameters={}))
    return place


def _created(client, name, parameters, keys=(), buckets=()):
    """Create a table ``db.<name>``, and return its place; ``buckets``: their number, then their columns."""
    types = client.types
    count, *columns = buckets or (-1,)
    client.create_table(types.Table(
        tableName=name, dbName="db", owner="ann", tableType="MANAGED_TABLE", parameters=parameters, partitionKeys=list(keys),
        sd=types.StorageDescriptor(
            cols=[types.FieldSchema("a", "int")], inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat", numBuckets=count, bucketCols=columns,
            serdeInfo=types.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"))))
    return Path(client.get_table("db", name).sd.location.removeprefix("file:").replace("///", "/"))


def _delta(client, place, *, commit=True, rows=((0, 0), (1, 1)), table="t", name="delta_{0:07d}_{0:07d}_0000", file="bucket_00000"):
    """Write a delta, or the directory that ``name`` says, in a transaction, with rows of these (row id, value); return its path."""
    txn = TxnManager(client).open()
    write_id = txn.write_id("db", table)
    path = place / name.format(write_id)
    path.mkdir(parents=True)
    with (path / file).open("wb") as out, pyorc.Writer(out, _EVENT) as writer:
        writer.writerows((0, write_id, encode(0), row_id, write_id, (value,)) for row_id, value in rows)
        writer.set_user_metadata(**{"hive.acid.key.index": f"{write_id},{encode(0)},{rows[-1][0]};".encode(),
                                    "hive.acid.stats": f"{len(rows)},0,0".encode(), "hive.acid.version": b"2"})
    (path / "_orc_acid_version").write_text("2")
    txn.commit() if commit else txn.abort()
    return path


def test_nothing_is_wrong(run, client, table):
    _delta(client, table, commit=True)

    assert run("table", "check", "db.t") == (0, "Nothing is wrong.\n", "")
    assert run("table", "check", "db.t", "-o", "json")[:2] == (0, "[]\n")


def test_findings_in_every_form(run, client, table):
    _delta(client, table, commit=True, rows=((1, 1), (0, 0)))
    orphan = _delta(client, table, commit=False)
    (table / ".acid_stage_1_0_i").mkdir()

    code, text, _ = run("table", "check", "db.t")
    _, as_json, _ = run("table", "check", "db.t", "-o", "json")
    _, as_yaml, _ = run("table", "check", "db.t", "-o", "yaml")
    _, quick, _ = run("table", "check", "db.t", "-o", "json", "--listing-only")

    assert code == 1
    assert "unsorted file" in text
    assert [(one["partition"], one["path"], one["violation"]) for one in json.loads(as_json)] == [
        ("p=1", ".acid_stage_1_0_i", "orphan of a dead writer"),
        ("p=1", orphan.name, "orphan of an aborted writer"),
        ("p=1", "delta_0000001_0000001_0000/bucket_00000", "unsorted file")]
    assert yaml.safe_load(as_yaml) == json.loads(as_json)
    assert json.loads(quick) == json.loads(as_json)[:2]


def test_files_of_every_kind_of_directory_are_looked_into(run, client, table):
    """But not those that a streaming writer has not closed."""
    _delta(client, table, name="base_{0:07d}", rows=((1, 1), (0, 0)))
    _delta(client, table, name="delete_delta_{0:07d}_{0:07d}_0000")
    batch = _delta(client, table)
    (batch / "bucket_00000").write_bytes(b"half a file")
    (batch / "bucket_00000_flush_length").write_bytes((5).to_bytes(8, "big"))

    found = json.loads(run("table", "check", "db.t", "-o", "json")[1])

    assert sorted((one["path"], one["violation"]) for one in found) == [
        ("base_0000001/bucket_00000", "unsorted file"),
        ("delete_delta_0000002_0000002_0000/bucket_00000", "wrong operation"),
        ("delta_0000003_0000003_0000/bucket_00000_flush_length", "side file")]


def test_rows_that_stand_twice(run, client, table):
    """Within a file, and in two results of compactions of which neither contains the other."""
    _delta(client, table, rows=((0, 0), (1, 1), (1, 1), (2, 2)))
    _delta(client, table)
    shutil.move(_delta(client, table, rows=((0, 0), (1, 1), (2, 2))), table / "delta_0000002_0000003_v0000001")
    shutil.copytree(table / "delta_0000002_0000003_v0000001", table / "delta_0000003_0000004_v0000002")
    _delta(client, table)

    found = json.loads(run("table", "check", "db.t", "-o", "json")[1])

    twice = {one["path"]: one["detail"] for one in found if one["violation"] == "row that stands twice"}
    assert sorted(twice) == ["delta_0000001_0000001_0000/bucket_00000", "delta_0000003_0000004_v0000002/bucket_00000"]
    assert "Rows 1 and 2 have one id" in twice["delta_0000001_0000001_0000/bucket_00000"]
    assert ("3 of its rows stand in delta_0000002_0000003_v0000001/bucket_00000 as well"
            in twice["delta_0000003_0000004_v0000002/bucket_00000"])


def test_what_is_wrong_depends_on_the_kind_of_table(run, client, table):
    """A bucketed one has so many buckets; the files of an insert-only one are of any format."""
    bucketed = _created(client, "b", {"transactional": "true"}, buckets=(1, "a"))
    _delta(client, bucketed, table="b", file="bucket_00001")
    plain = _created(client, "i", {"transactional": "true", "transactional_properties": "insert_only"})
    (_delta(client, plain, table="i", file="000000_0") / "000000_0").write_text("1,no ORC\n")

    found = json.loads(run("table", "check", "db.b", "-o", "json")[1])

    path = "delta_0000001_0000001_0000/bucket_00001"
    assert [(one["path"], one["violation"]) for one in found] == [(path, "bucket out of range"), (path, "wrong bucket")]
    assert run("table", "check", "db.i")[0] == 0


def test_quarantine_moves_what_nobody_needs_and_removes_nothing(run, client, table):
    kept = _delta(client, table, commit=True, rows=((1, 1), (0, 0)))
    orphan = _delta(client, table, commit=False)
    before = (orphan / "bucket_00000").read_bytes()

    code, out, _ = run("table", "check", "db.t", "--quarantine", "-o", "json")
    again = json.loads(run("table", "check", "db.t", "-o", "json")[1])

    assert code == 1
    [moved] = [one for one in json.loads(out) if one["moved_to"]]
    assert moved["moved_to"] .endswith(f"{table}/.quarantine/{orphan.name}")
    assert (table / ".quarantine" / orphan.name / "bucket_00000").read_bytes() == before
    assert kept.is_dir()
    assert [one["violation"] for one in again] == ["unsorted file"]
    orphan.mkdir()
    run("table", "check", "db.t", "--quarantine")
    assert sorted(path.name for path in (table / ".quarantine").iterdir()) == [orphan.name, f"{orphan.name}.2"]


def test_rows_that_were_written_past_the_transactions_are_found_and_moved_out(run, client, table):
    """As Spark's own INSERT does. The Cleaner leaves such a file, since no base was made of it."""
    _delta(client, table, name="base_{0:07d}")
    name = "part-00000-3c1ff2ae-7a3b-4a0e-9a51-0f6f8f3c2b11-c000"
    with (table / name).open("wb") as out, pyorc.Writer(out, "struct<a:int>") as writer:
        writer.writerows([(1,), (2,)])
        writer.set_user_metadata(**{"org.apache.spark.version": b"4.3.0"})
    (table / "000000_0").write_bytes(b"of before the base")
    plain = _created(client, "i", {"transactional": "true", "transactional_properties": "insert_only"})
    (plain / name).write_text("no ORC")
    (plain / "other").write_text("no ORC")

    [found] = json.loads(run("table", "check", "db.t", "-o", "json")[1])
    assert (found["partition"], found["path"], found["violation"]) == ("p=1", name, "stranded rows")
    assert "Spark 4.3.0 wrote 2 rows in job 3c1ff2ae-7a3b-4a0e-9a51-0f6f8f3c2b11. --repair" in found["detail"]
    told = {one["path"]: one["detail"] for one in json.loads(run("table", "check", "db.i", "-o", "json")[1])}
    assert "Spark wrote it in job 3c1ff2ae" in told[name]
    assert "Its writer is not known" in told["other"]

    code, out, _ = run("table", "check", "db.t", "--repair", "-o", "json")
    [moved] = json.loads(out)
    assert code == 1
    assert moved["moved_to"].endswith(f"{table}/.quarantine/{name}")
    assert (table / ".quarantine" / name).is_file()
    run("table", "check", "db.i", "--repair")
    assert run("table", "check", "db.t")[0] == run("table", "check", "db.i")[0] == 0


def test_what_lies_beside_the_partitions(run, client, table):
    """Staging of a partitioned table is beside its partitions; a writer may die before it has registered a new one."""
    root = table.parent
    orphan = _delta(client, root / "p=2", commit=False)
    _delta(client, root / "p=3", commit=True)
    (root / ".acid_stage_1_0_i").mkdir()
    (root / "notes").mkdir()
    alive = TxnManager(client).open()
    (root / f".acid_stage_{alive.id}_0_i").mkdir()

    found = json.loads(run("table", "check", "db.t", "--quarantine", "-o", "json")[1])
    again = json.loads(run("table", "check", "db.t", "-o", "json")[1])
    alive.abort()

    assert sorted((one["partition"] or "", one["path"], one["violation"]) for one in found) == [
        ("", ".acid_stage_1_0_i", "orphan of a dead writer"),
        ("p=2", orphan.name, "orphan of an aborted writer"),
        ("p=3", "", "unregistered partition")]
    assert [one["partition"] for one in again] == ["p=3"]
    assert (root / ".quarantine" / "acid_stage_1_0_i").is_dir()
    assert (root / "p=2" / ".quarantine" / orphan.name / "bucket_00000").is_file()


@pytest.mark.parametrize("properties", [{}, {"transactional_properties": "insert_only"}])
def test_values_that_a_null_struct_has_moved_are_found(run, client, table, properties, monkeypatch):
    """As the writers without Spark wrote them once; not in what they write now, nor where there is no NULL."""
    types = client.types
    for name in ("old", "new"):
        _created(client, name, {"transactional": "true", **properties})
        described = client.get_table("db", name)
        described.sd.cols = [types.FieldSchema("id", "int"), types.FieldSchema("good", "struct<o:struct<a:int>>"), types.FieldSchema(
            "c", "array<struct<o:struct<a:int>,m:map<string,struct<t:string>>>>"), types.FieldSchema("last", "struct<a:struct<x:int>>"),
            types.FieldSchema("far", "struct<at:timestamp>")]
        client.alter_table("db", name, described)
    rows = [{"id": 1, "good": {"o": {"a": 1}}, "c": [{"o": {"a": 5}}, {"o": {"a": 1}, "m": {"k": None, "l": {"t": "v"}}}],
             "last": {"a": {"x": 1}}, "far": {"at": datetime(1500, 1, 1)}},
            {"id": 2, "good": {"o": {"a": 2}}, "c": [{"o": None, "m": {}}, {"o": {"a": 2}}], "last": {"a": None}}]

    def write(name):
        for _ in range(2):
            with connect(f"db.{name}", client=client) as connection, connection.transaction():
                connection.write([*rows, *reversed(rows)])
    write("new")
    monkeypatch.setattr(orc_writer, "pushed_down", lambda array: array)
    write("old")

    found = json.loads(run("table", "check", "db.old", "-o", "json")[1])
    assert {(one["violation"], one["detail"].split(" has ")[0]) for one in found} == {
        ("shifted values", "Column c"), ("shifted values", "Column last")}
    assert len(found) == 4
    assert run("table", "check", "db.new")[:2] == (0, "Nothing is wrong.\n")


@pytest.mark.parametrize("properties", [{}, {"transactional_properties": "insert_only"}])
def test_fractions_that_are_stored_below_zero_are_found(run, client, table, properties, monkeypatch):
    """As Arrow's own writer stores those before 1970; not in what is written now, nor where times are late or whole."""
    types = client.types
    early, whole, late = datetime(1965, 9, 12, 1, 2, 3, 500_000), datetime(1965, 9, 12), datetime(2020, 1, 1, 1, 2, 3, 4)
    kinds = {"id": "int", "whole": "timestamp", "late": "timestamp", "none": "timestamp", "a": "timestamp", "s": "struct<x:int,at:timestamp>",
             "l": "array<timestamp>", "m": "map<string,struct<at:timestamp>>", "far": "timestamp"}
    sound = {"whole": whole, "late": late, "a": whole, "s": {"x": 1, "at": late}, "l": [whole, None], "m": {"k": {"at": whole}}, "far": late}
    bad = sound | {"a": early, "s": {"x": 1, "at": early}, "l": [late, early], "m": {"k": {"at": early}}, "far": datetime(1500, 1, 1, 0, 0, 0, 1)}
    for name in ("old", "new"):
        _created(client, name, {"transactional": "true", **properties})
        described = client.get_table("db", name)
        described.sd.cols = [types.FieldSchema(*pair) for pair in kinds.items()]
        client.alter_table("db", name, described)

    def write(name, *batches):
        with connect(f"db.{name}", client=client) as connection, connection.transaction():
            for rows in batches:
                connection.write([{"id": number, **row} for number, row in enumerate(rows)])
    for rows in ([bad, sound], [sound], [sound, {}], [{}]):
        write("new", rows, rows)
    monkeypatch.setattr(orc_writer, "_is_early", lambda _times: False)
    write("old", [sound, bad])
    write("old", [sound, {}])

    found = json.loads(run("table", "check", "db.old", "-o", "json")[1])
    assert [(one["violation"], one["detail"].split(" has ")[0]) for one in found] == [
        ("negative fraction", f"Column {name}") for name in ("a", "s", "l", "m", "far")]
    assert len({one["path"] for one in found}) == 1
    assert run("table", "check", "db.new")[:2] == (0, "Nothing is wrong.\n")


class _Disturbed(Files):
    """Files where something happens once, after so many calls of one method."""

    def after(self, calls, method, change):
        original = getattr(Files, method)

        def called(uri, *more):
            nonlocal calls
            calls -= 1
            if calls == -1:
                change()
            return original(self, uri, *more)
        object.__setattr__(self, method, called)
        return self


def _checked(client, files, **options):
    with DomainClient.like(client) as domain:
        return [(found.finding.path, found.finding.rule.value)
                for found in check_table(domain, files, table_name("db", "t"), **options)]


@pytest.mark.parametrize(("calls", "method"), [(0, "open"), (2, "open"), (0, "read"), (2, "listing")])
def test_what_is_cleaned_meanwhile_is_looked_at_again(client, table, calls, method):
    """A base is made of all deltas, which go while the first of them, or a note beside it, is about to be read."""
    deltas = [_delta(client, table), _delta(client, table, rows=((1, 1), (0, 0)))]
    old = _delta(client, table, name="base_{0:07d}")
    (old / "_metadata_acid").write_text('{"thisFileVersion": "0", "dataFormat": "compacted"}')
    if method != "read":
        shutil.rmtree(old)

    def cleaned():
        _delta(client, table, name="base_{0:07d}")
        for gone in (*deltas, old):
            shutil.rmtree(gone, ignore_errors=True)

    assert _checked(client, _Disturbed().after(calls, method, cleaned)) == []
    assert not deltas[0].exists()


def test_leftovers_that_are_cleaned_meanwhile_are_no_finding(client, table):
    orphans = [_delta(client, table, commit=False), _delta(client, table.parent / "p=2", commit=False)]

    def cleaned():
        for orphan in orphans:
            shutil.rmtree(orphan)

    assert _checked(client, _Disturbed().after(2, "listing", cleaned), with_files=False) == []


def test_what_goes_on_changing_is_told_in_the_end(client, table):
    """As a stream makes and closes files all the time, beside a file that is broken."""
    (_delta(client, table) / "bucket_00000").write_bytes(b"no ORC")
    files, number = Files(), iter(range(100))

    class Busy(Files):
        def listing(self, uri):
            (table / f"_tmp_{next(number)}").touch()
            found = files.listing(uri)
            for path in table.glob("_tmp_*"):
                path.unlink()
            return found

    assert _checked(client, Busy()) == [("delta_0000001_0000001_0000/bucket_00000", "unreadable file")]
    assert next(number) < 10


def test_what_is_cleaned_before_it_is_moved_is_left(client, table):
    orphan = _delta(client, table, commit=False)
    with DomainClient.like(client) as domain:
        found = check_table(domain, Files(), table_name("db", "t"))
    shutil.rmtree(orphan)

    assert [one.moved_to for one in quarantine(Files(), found)] == [None]


def test_tables_that_cannot_be_checked(run, table):
    code, _, error = run("table", "check", "db.plain")
    assert (code, "not transactional" in error) == (2, True)
    assert run("table", "check", "db.nothing")[0] == 1
