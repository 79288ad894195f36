"""PyIceberg's HiveCatalog, unmodified: what it stores, and commits that only the metastore's locks keep apart."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pyarrow as pa
import pytest
from hive_metastore import ttypes as theirs
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DecimalType, ListType, LongType, NestedField, StringType, StructType

from metastore.config.settings import TxnSettings
from metastore.housekeeping.service import PurgeService
from metastore.loops.reaper import Reaper

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def connect(server):
    """``connect(**properties)``: one more HiveCatalog, as another process would have it."""

    def new(**properties):
        return load_catalog("hive", type="hive", uri=server.thrift_uri,
                            **{"lock-check-min-wait-time": "0.05", "lock-check-max-wait-time": "0.2", **properties})

    return new


@pytest.fixture
def catalog(connect):
    """Return a catalog with the namespace ``ns``."""
    opened = connect()
    opened.create_namespace("ns")
    return opened


def batch(*ids):
    return pa.table({"id": list(ids), "name": [f"row {one}" for one in ids]}, schema=SCHEMA)


def ids(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def locks(client):
    return client.show_locks(client.types.ShowLocksRequest()).locks


def test_namespaces(connect, tmp_path):
    catalog = connect()
    assert catalog.list_namespaces() == [("default",)]

    catalog.create_namespace("Sales", {"comment": "all sales", "team": "one"})
    assert catalog.list_namespaces() == [("default",), ("sales",)]
    loaded = catalog.load_namespace_properties("sales")
    assert loaded["comment"] == "all sales"
    assert loaded["team"] == "one"
    assert loaded["location"] == f"file:{tmp_path}/warehouse/sales.db"
    with pytest.raises(NamespaceAlreadyExistsError, match="sales"):
        catalog.create_namespace("sales")

    summary = catalog.update_namespace_properties("sales", {"team", "nothing"}, {"tier": "gold", "é": "ü"})
    assert (summary.removed, summary.missing, sorted(summary.updated)) == (["team"], ["nothing"], ["tier", "é"])
    after = catalog.load_namespace_properties("sales")
    assert {key: after.get(key) for key in ("tier", "é", "team", "location")} == {
        "tier": "gold", "é": "ü", "team": None, "location": loaded["location"]}

    catalog.create_table("sales.t", SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("sales")
    assert catalog.namespace_exists("sales")
    catalog.drop_table("sales.t")
    catalog.drop_namespace("sales")
    assert not catalog.namespace_exists("sales")
    for call in (catalog.drop_namespace, catalog.load_namespace_properties):
        with pytest.raises(NoSuchNamespaceError):
            call("sales")


def test_rows_in_rows_out(catalog, connect):
    table = catalog.create_table("ns.t", SCHEMA, properties={"owner": "amal", "custom": "Grüße"})
    table.append(batch(1, 2, 3))
    table.append(batch(4))
    # every read goes through a second catalog: nothing may live in the writer's memory only
    elsewhere = connect()
    assert ids(elsewhere.load_table("ns.t")) == [1, 2, 3, 4]
    table.delete("id = 2")
    assert ids(elsewhere.load_table("ns.t")) == [1, 3, 4]
    table.overwrite(batch(9), overwrite_filter="id = 3")
    assert ids(elsewhere.load_table("ns.t")) == [1, 4, 9]
    table.overwrite(batch(7))
    seen = elsewhere.load_table("ns.t")
    assert seen.scan().to_arrow() == batch(7)
    assert seen.properties["custom"] == "Grüße"
    first = seen.history()[0].snapshot_id
    assert sorted(seen.scan(snapshot_id=first).to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_what_other_clients_see_of_a_table(catalog, client):
    table = catalog.create_table("ns.t", SCHEMA, properties={"owner": "amal", "custom": "x"})
    created = client.get_table("ns", "t")
    table.append(batch(1, 2))
    table = catalog.load_table("ns.t")
    stored = client.get_table("ns", "t")

    assert stored.tableType == "EXTERNAL_TABLE"
    assert stored.owner == "amal"
    assert stored.createTime == created.createTime
    assert [(column.name, column.type) for column in stored.sd.cols] == [("id", "bigint"), ("name", "string")]
    assert stored.sd.location == table.location()
    assert stored.parameters["table_type"] == "ICEBERG"
    assert stored.parameters["EXTERNAL"] == "TRUE"
    assert stored.parameters["custom"] == "x"
    assert stored.parameters["metadata_location"] == table.metadata_location
    assert stored.parameters["previous_metadata_location"] == created.parameters["metadata_location"]
    assert client.get_table_names_by_filter("ns", 'hive_filter_field_params__table_type = "ICEBERG"', -1) == ["t"]


def test_properties_that_others_set_survive_a_commit(catalog, client):
    table = catalog.create_table("ns.t", SCHEMA, properties={"mine": "1", "gone": "1"})
    stored = client.get_table("ns", "t")
    stored.parameters["theirs"] = "2"
    client.alter_table("ns", "t", stored)
    with table.transaction() as change:
        change.set_properties(mine="3")
        change.remove_properties("gone")
    parameters = client.get_table("ns", "t").parameters
    assert {key: parameters.get(key) for key in ("mine", "theirs", "gone")} == {"mine": "3", "theirs": "2", "gone": None}
    assert catalog.load_table("ns.t").properties["mine"] == "3"


def test_a_schema_changes(catalog, connect, client):
    table = catalog.create_table("ns.t", Schema(
        NestedField(1, "id", LongType(), required=True), NestedField(2, "Name", StringType()),
        NestedField(3, "price", DecimalType(10, 2))))
    with table.update_schema() as change:
        change.add_column("tags", ListType(10, StringType(), element_required=False))
        change.add_column("place", StructType(NestedField(20, "city", StringType())))
        change.rename_column("Name", "title")
        change.update_column("price", DecimalType(18, 2))
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("title")
        change.move_first("tags")
    assert [field.name for field in connect().load_table("ns.t").schema().fields] == ["tags", "id", "price", "place"]
    # the columns in the metastore are those of the newest schema, in its order and in Hive's types
    assert [(column.name, column.type) for column in client.get_table("ns", "t").sd.cols] == [
        ("tags", "array<string>"), ("id", "bigint"), ("price", "decimal(18,2)"), ("place", "struct<city:string>")]


def test_a_wide_table_keeps_its_long_parameters(catalog, connect):
    wide = pa.schema([(f"column_{n:04}_of_a_very_wide_table", pa.string()) for n in range(1500)])
    table = catalog.create_table("ns.wide", wide, properties={"long": "ä" * 40_000})
    assert connect().load_table("ns.wide").metadata == table.metadata
    assert connect().load_table("ns.wide").properties["long"] == "ä" * 40_000


def test_a_partitioned_table(catalog, client):
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = catalog.create_table("ns.t", Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType())),
                                 partition_spec=spec)
    table.append(pa.table({"id": [1, 2, 3], "name": ["a/b", "a/b", None]}, schema=SCHEMA))
    reread = catalog.load_table("ns.t")
    assert reread.scan("name = 'a/b'").to_arrow()["id"].to_pylist() == [1, 2]
    assert reread.scan("name is null").to_arrow()["id"].to_pylist() == [3]
    # Iceberg's partitions are Iceberg's own: to Hive this is one external table without keys
    assert client.get_table("ns", "t").partitionKeys == []


def test_names_of_tables(catalog, connect, client):
    catalog.create_namespace("other")
    table = catalog.create_table("ns.one", SCHEMA)
    table.append(batch(1))
    types = client.types
    client.create_table(types.Table(
        dbName="ns", tableName="hives_own", owner="x", parameters={}, partitionKeys=[], sd=types.StorageDescriptor(
            cols=[types.FieldSchema("a", "int", None)], inputFormat="i", outputFormat="o",
            serdeInfo=types.SerDeInfo(name="s", serializationLib="l", parameters={}))))
    assert catalog.list_tables("ns") == [("ns", "one")]
    assert catalog.list_tables("other") == []
    assert catalog.table_exists("ns.one")
    assert catalog.table_exists("NS.One")
    assert not catalog.table_exists("ns.two")
    assert not catalog.table_exists("nowhere.two")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("ns.one", SCHEMA)

    location = table.location()
    renamed = catalog.rename_table("ns.one", "other.two")
    assert renamed.location() == location       # an external table's files stay where they are
    assert ids(connect().load_table("other.two")) == [1]
    assert (catalog.list_tables("ns"), catalog.list_tables("other")) == ([], [("other", "two")])
    with pytest.raises(NoSuchTableError):
        catalog.load_table("ns.one")
    with pytest.raises(NoSuchTableError):
        catalog.rename_table("ns.one", "ns.three")
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table("other.two", "nowhere.two")
    catalog.create_table("ns.taken", SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table("other.two", "ns.taken")
    renamed.append(batch(2))
    assert ids(connect().load_table("other.two")) == [1, 2]


def test_dropping_keeps_the_files_and_registering_brings_them_back(catalog, connect):
    table = catalog.create_table("ns.t", SCHEMA)
    table.append(batch(1, 2))
    catalog.drop_table("ns.t")
    assert not catalog.table_exists("ns.t")
    for name in ("ns.t", "nowhere.t"):
        with pytest.raises(NoSuchTableError):
            catalog.drop_table(name)

    back = connect().register_table("ns.back", table.metadata_location)
    back.append(batch(3))
    assert ids(catalog.load_table("ns.back")) == [1, 2, 3]
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("ns.back", table.metadata_location)


def test_a_table_is_created_by_a_transaction(catalog, client):
    with catalog.create_table_transaction("ns.t", SCHEMA) as change:
        change.set_properties(a="b")
        # its lock is taken on a table that does not exist yet
        assert not catalog.table_exists("ns.t")
    assert client.get_table("ns", "t").parameters["a"] == "b"
    assert locks(client) == []


def test_a_conflicting_commit_fails_and_leaves_no_lock(catalog, connect, client):
    mine = catalog.create_table("ns.t", SCHEMA, properties={"commit.retry.num-retries": "0"})
    theirs_too = connect().load_table("ns.t")
    mine.append(batch(1))
    winner = client.get_table("ns", "t").parameters["metadata_location"]

    with pytest.raises(CommitFailedException, match="branch main"):
        theirs_too.append(batch(2))
    assert locks(client) == []
    assert client.get_table("ns", "t").parameters["metadata_location"] == winner
    with pytest.raises(CommitFailedException, match=r"current schema.* has changed|schema id"):
        _two_schema_changes(catalog, connect)
    assert locks(client) == []

    theirs_too.refresh().append(batch(2))
    assert ids(catalog.load_table("ns.t")) == [1, 2]


def _two_schema_changes(catalog, connect):
    first, second = catalog.load_table("ns.t"), connect().load_table("ns.t")
    with first.update_schema() as change:
        change.add_column("first", StringType())
    with second.update_schema() as change:
        change.add_column("second", StringType())


def test_appends_of_many_threads_are_all_kept(catalog, connect, client):
    catalog.create_table("ns.t", SCHEMA, properties={
        "commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "5", "commit.retry.max-wait-ms": "50",
        "commit.retry.total-timeout-ms": "120000"})
    start = threading.Barrier(4)

    def writer(number):
        table = connect(**{"lock-check-retries": "200"}).load_table("ns.t")
        start.wait()
        for step in range(4):
            table.append(batch(number * 100 + step))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(writer, range(4)))
    table = catalog.load_table("ns.t")
    assert ids(table) == sorted(number * 100 + step for number in range(4) for step in range(4))
    # one line of history: every snapshot's parent is the one before it, so no commit replaced another
    snapshots = sorted(table.snapshots(), key=lambda one: one.sequence_number)
    assert [one.sequence_number for one in snapshots] == list(range(1, 17))
    assert [one.parent_snapshot_id for one in snapshots] == [None, *(one.snapshot_id for one in snapshots[:-1])]
    assert locks(client) == []


def test_a_held_lock_makes_a_commit_wait_until_it_is_free(catalog, connect, client):
    table = catalog.create_table("ns.t", SCHEMA)
    holder = connect()
    with holder._client as connection:
        held = connection.lock(holder._create_lock_request("ns", "t"))
        assert held.state == theirs.LockState.ACQUIRED
        with ThreadPoolExecutor(1) as pool:
            commit = pool.submit(connect(**{"lock-check-retries": "1000"}).load_table("ns.t").append, batch(1))
            while not any(one.state == client.types.LockState.WAITING for one in locks(client)):
                assert not commit.done(), commit.result()
            [waiting] = [one for one in locks(client) if one.state == client.types.LockState.WAITING]
            assert waiting.blockedByExtId == held.lockid
            assert waiting.agentInfo == "Unknown"
            assert not commit.done()
            assert ids(catalog.load_table("ns.t")) == []    # reading takes no lock
            connection.unlock(theirs.UnlockRequest(lockid=held.lockid))
            commit.result(timeout=60)
    assert ids(table.refresh()) == [1]
    assert locks(client) == []


def test_a_commit_that_waits_too_long_gives_up_and_takes_its_request_away(catalog, connect, client):
    impatient = connect(**{"lock-check-retries": "2"}).create_table("ns.t", SCHEMA, properties={
        "commit.retry.num-retries": "0"})
    holder = connect()
    with holder._client as connection:
        held = connection.lock(holder._create_lock_request("ns", "t"))
        with pytest.raises(CommitFailedException, match="Failed to acquire lock"):
            impatient.append(batch(1))
        assert [one.lockid for one in locks(client)] == [held.lockid]
        connection.unlock(theirs.UnlockRequest(lockid=held.lockid))
    impatient.append(batch(1))
    assert ids(catalog.load_table("ns.t")) == [1]


def test_the_lock_of_a_writer_that_died_expires(catalog, connect, client, database, test_clock):
    """PyIceberg never sends heartbeats: the lock must outlive a slow commit, but not its process by more than the timeout."""
    table = catalog.create_table("ns.t", SCHEMA, properties={"commit.retry.num-retries": "0"})
    settings = TxnSettings()
    reaper = Reaper(PurgeService(database, settings))
    with catalog._client as connection:
        connection.lock(catalog._create_lock_request("ns", "t"))
    # the connection is closed, as that of a killed process is; the lock stays
    test_clock.advance(settings.timeout - timedelta(seconds=60))
    reaper.tick()
    with pytest.raises(CommitFailedException):
        connect(**{"lock-check-retries": "1"}).load_table("ns.t").append(batch(1))
    test_clock.advance(timedelta(seconds=61))
    assert reaper.tick().expired_locks == 1
    table.append(batch(2))
    assert ids(catalog.load_table("ns.t")) == [2]
