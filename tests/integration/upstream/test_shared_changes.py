"""Drop, rename and alter of transactional tables keep both sides right, also when either dies in between."""

from dataclasses import replace
from datetime import timedelta

import psycopg2
import pytest
from thrift.Thrift import TApplicationException

from metastore.catalog.service.upstream_changes import Forwarded, OutcomeLostError
from metastore.compaction.queue.rules.requests import Entity
from metastore.db import failpoints
from metastore.errors import NoSuchObjectError, UnavailableError
from metastore.files import Files
from metastore.ids import TableName
from metastore.loops.cleaner import Cleaner
from metastore.loops.initiator import Initiator
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.dispatch import middleware
from metastore.thrift_server.upstream.client import UpstreamClient
from tests.integration.upstream.conftest import ACID, table

NAME = TableName("hive", "d", "t")


def rows(database, name, column="count(*)", db="d", of="t"):
    with database.begin() as pg:
        return pg.sql(f'SELECT {column} FROM {name} WHERE db = %s AND "table" = %s', (db, of))[0][0]


def history(database, of="t"):
    return {name: rows(database, name, of=of) for name in (
        "txn_write_ids", "txn_components", "completed_txn_components", "compaction_queue")}


def notes(database):
    with database.begin() as pg:
        return pg.sql("SELECT count(*) FROM upstream_changes")[0][0]


EMPTY = {"txn_write_ids": 0, "txn_components": 0, "completed_txn_components": 0, "compaction_queue": 0}


@pytest.fixture
def written(client, acid, writing):
    """``d.t`` with write ids 1 (committed) and 2 (aborted), and a request to compact it."""
    writing.write()
    txn, _ = writing.write(commit=False)
    client.abort_txn(T.AbortTxnRequest(txn))
    client.compact2(T.CompactionRequest(dbname="d", tablename="t", type=T.CompactionType.MAJOR))
    assert writing.valid() == (2, [2])


@pytest.fixture
def dies(monkeypatch):
    """``dies(point)``: whoever gets there goes no further, as if the process had died; ``dies(None)``: not any more."""
    def arm(point):
        monkeypatch.setattr(failpoints, "hit", failpoints.Failpoints(f"{point}=error" if point else "").hit)
    return arm


@pytest.fixture
def keeper(front):
    return front.services.upstream.changes


def renamed(client, new="u", db="d"):
    found = client.get_table("d", "t")
    found.tableName, found.dbName = new, db
    client.alter_table("d", "t", found)


def test_a_dropped_table_takes_its_history_along_and_ids_go_on(client, catalog, database, written, writing):
    client.drop_table("d", "t", True)
    assert catalog.get_all_tables("d") == []
    assert history(database) == EMPTY
    assert notes(database) == 0
    client.create_table(table())
    assert writing.write()[1] == 3
    assert writing.valid() == (3, [])


def test_a_drop_that_the_upstream_refuses_changes_nothing(client, behind, catalog, database, written):
    catalog.create_table(T.Table(
        tableName="v", dbName="d", tableType="MATERIALIZED_VIEW", viewOriginalText="x", viewExpandedText="x",
        sd=table().sd, creationMetadata=T.CreationMetadata("hive", "d", "v", {"d.t"}), parameters={}))
    before = history(database)
    with pytest.raises(T.MetaException, match="materialized views"):
        client.drop_table("d", "t", True)
    assert history(database) == before
    assert notes(database) == 0


def test_a_drop_waits_for_others_locks(client, catalog, writing, acid, monkeypatch):
    monkeypatch.setattr(middleware, "PAUSES", 0)
    writing.write(commit=False)
    with pytest.raises(T.MetaException, match="DROP TABLE hive.d.t has to wait|DROP TABLE d.t has to wait"):
        client.drop_table("d", "t", True)
    assert catalog.get_all_tables("d") == ["t"]


def test_a_table_without_history_is_dropped_without_a_note(client, catalog, database, acid, dies):
    dies("upstream.noted")
    client.drop_table("d", "t", True)
    assert catalog.get_all_tables("d") == []


def test_who_dies_before_the_upstream_heard_of_a_drop_leaves_a_table(
        client, catalog, database, written, dies, keeper, test_clock):
    before = history(database)
    dies("upstream.noted")
    with pytest.raises(T.MetaException):
        client.drop_table("d", "t", True)
    assert (catalog.get_all_tables("d"), notes(database)) == (["t"], 1)
    assert keeper.settle() == 0  # the upstream may still be at it
    test_clock.advance(timedelta(minutes=11))
    assert keeper.settle() == 1
    assert history(database) == before
    assert notes(database) == 0


def test_who_dies_after_the_upstream_dropped_leaves_it_to_the_keeper(
        client, catalog, database, written, writing, dies, keeper):
    dies("upstream.answered")
    client.drop_table("d", "t", True)  # what the upstream said
    dies(None)
    assert history(database) != EMPTY
    client.create_table(table())  # of the same name, with writes of its own, before anybody follows
    txn, write_id = writing.write(commit=False)
    assert write_id == 3
    assert keeper.settle() == 1
    assert history(database) == {**EMPTY, "txn_write_ids": 1, "txn_components": 1}
    assert writing.valid() == (3, [3])
    client.abort_txn(T.AbortTxnRequest(txn))
    assert writing.valid() == (3, [3])
    assert keeper.settle() == 0


def test_compaction_leaves_a_table_alone_while_a_change_is_on_its_way(client, front, database, written, dies):
    dies("upstream.noted")
    with pytest.raises(T.MetaException):
        client.drop_table("d", "t", True)
    dies(None)
    with pytest.raises(TApplicationException, match="being dropped or renamed by the upstream"):
        client.compact2(T.CompactionRequest(dbname="d", tablename="t", type=T.CompactionType.MINOR))
    with database.begin() as pg, pytest.raises(UnavailableError):
        front.services.upstream.changes.require_settled(pg, NAME)
    compaction = front.services.compaction
    report = Initiator(compaction.initiator, Files(), "host-1", "test").tick()
    assert ([str(finding.entity) for finding in report.findings if finding.failed], report.queued) == (["d.t"], [])
    eager = replace(compaction.cleaner, settings=replace(compaction.cleaner.settings, aborted_txn_threshold=0))
    [cleaned] = Cleaner(eager, Files()).tick()
    assert (cleaned.is_failure, "being dropped" in cleaned.reason) == (True, True)


def test_a_table_whose_database_goes_between_two_questions_is_not_there(front, database, written, monkeypatch):
    def ask(client, method, *arguments):
        if method == "get_database":
            raise NoSuchObjectError("d")
        return asked(client, method, *arguments)

    asked = UpstreamClient.ask
    monkeypatch.setattr(UpstreamClient, "ask", ask)
    with database.begin() as pg:
        assert front.services.upstream.catalog.described(pg, Entity(NAME)) is None


def test_a_renamed_tables_history_follows(client, catalog, database, written, writing):
    before = history(database)
    renamed(client)
    assert catalog.get_all_tables("d") == ["u"]
    assert writing.valid("u") == (2, [2])
    assert history(database, "u") == before
    assert history(database) == EMPTY
    assert writing.write("u")[1] == 3
    assert notes(database) == 0


def test_a_rename_into_another_database(client, written, writing):
    client.create_database(T.Database(name="e"))
    renamed(client, "u", "e")
    assert writing.valid("u", "e") == (2, [2])


def test_a_rename_that_the_upstream_refuses_leaves_no_copies(client, database, written, writing):
    found = client.get_table("d", "t")
    found.tableName, found.dbName = "u", "nowhere"
    with pytest.raises(T.InvalidOperationException):
        client.alter_table("d", "t", found)
    assert rows(database, "txn_write_ids", db="nowhere", of="u") == 0
    assert writing.valid() == (2, [2])
    assert notes(database) == 0


def test_a_rename_to_a_name_that_is_taken_touches_neither_history(client, database, written, writing):
    client.create_table(table("u"))
    writing.write("u", commit=False)
    with pytest.raises(T.InvalidOperationException):
        renamed(client)
    assert writing.valid("u") == (1, [1])
    assert writing.valid() == (2, [2])


def test_after_a_rename_readers_are_right_before_anybody_follows(
        client, catalog, database, written, writing, dies, keeper):
    before = history(database)
    dies("upstream.answered")
    renamed(client)
    dies(None)
    assert (catalog.get_all_tables("d"), notes(database)) == (["u"], 1)
    assert writing.valid("u") == (2, [2])  # the aborted write is not taken for a committed one
    txn, write_id = writing.write("u", commit=False)
    assert write_id == 3  # and no id is given out twice
    assert keeper.settle() == 1
    assert writing.valid("u") == (3, [2, 3])
    client.commit_txn(T.CommitTxnRequest(txn))
    assert writing.valid("u") == (3, [2])
    assert history(database) == EMPTY
    assert history(database, "u") == {**before, "completed_txn_components": before["completed_txn_components"] + 1,
                                      "txn_write_ids": before["txn_write_ids"] + 1}


def test_who_dies_before_the_upstream_heard_of_a_rename_leaves_the_old_name(
        client, catalog, database, written, writing, dies, keeper, test_clock):
    dies("upstream.noted")
    with pytest.raises(T.MetaException):
        renamed(client)
    dies(None)
    assert catalog.get_all_tables("d") == ["t"]
    assert writing.write()[1] == 3
    test_clock.advance(timedelta(minutes=11))
    assert keeper.settle() == 1
    assert writing.valid() == (3, [2])
    assert rows(database, "txn_write_ids", of="u") == 0


def test_an_id_that_was_given_out_under_the_old_name_follows_as_well(client, database, written, writing, dies, keeper):
    dies("upstream.answered")
    renamed(client)
    dies(None)
    txn = writing.open()
    assert writing.allocate(txn) == 3  # a writer who does not know of the rename
    assert writing.write("u")[1] == 3
    assert writing.write("u")[1] == 4
    assert keeper.settle() == 1
    assert writing.valid("u") == (4, [2])
    client.abort_txn(T.AbortTxnRequest(txn))
    assert writing.write("u")[1] == 5


def test_nobody_is_given_an_id_while_the_upstream_renames(front, database, written, keeper):
    def forward():
        with psycopg2.connect(database.url) as other, other.cursor() as cursor:
            for name in ("t", "u"):
                with pytest.raises(psycopg2.errors.LockNotAvailable):
                    cursor.execute('SELECT 1 FROM next_write_ids WHERE "table" = %s FOR UPDATE NOWAIT', (name,))
                other.rollback()
        other.close()
        return Forwarded(b"", "ok")

    assert keeper.rename_table(NAME, TableName("hive", "d", "u"), forward).was_done


def test_a_lost_answer_is_told_and_left_to_the_keeper(database, written, keeper, catalog):
    def forward():
        catalog.drop_table("d", "t", True)
        raise OutcomeLostError("the connection broke off")

    with pytest.raises(OutcomeLostError):
        keeper.drop_table(NAME, forward)
    assert notes(database) == 1
    assert keeper.settle() == 1
    assert history(database) == EMPTY


def test_a_change_that_cannot_be_judged_holds_up_no_other(client, database, written, keeper, catalog, monkeypatch):
    client.create_table(table("u"))
    database.once("INSERT INTO next_write_ids SELECT catalog, db, 'u', next_write_id FROM next_write_ids")

    def forward():
        raise OutcomeLostError("the connection broke off")

    for name in ("t", "u"):
        with pytest.raises(OutcomeLostError):
            keeper.drop_table(TableName("hive", "d", name), forward)
        catalog.drop_table("d", name, True)
    identity = type(keeper.tables).identity

    def denied(tables, name):
        if name.table == "t":
            raise UnavailableError("the upstream did not answer in time")
        return identity(tables, name)

    with monkeypatch.context() as patched:
        patched.setattr(type(keeper.tables), "identity", denied)
        assert (keeper.settle(), notes(database)) == (1, 1)
    assert keeper.settle() == 1


def test_an_upstream_that_was_not_asked_leaves_no_note(database, written, keeper):
    def forward():
        raise UnavailableError("upstream thrift://x does not answer")

    before = history(database)
    with pytest.raises(UnavailableError, match="does not answer"):
        keeper.drop_table(NAME, forward)
    assert (history(database), notes(database)) == (before, 0)


def test_a_note_that_somebody_settled_is_not_carried_out(database, written, keeper, monkeypatch):
    def settled(point):
        if point == "upstream.noted":
            database.once("DELETE FROM upstream_changes")

    monkeypatch.setattr(failpoints, "hit", settled)
    with pytest.raises(UnavailableError, match="settled by somebody else"):
        keeper.drop_table(NAME, lambda: pytest.fail("the upstream was asked"))


def test_a_dropped_database_takes_the_history_of_its_tables_along(client, catalog, database, written):
    client.drop_database("d", True, True)
    assert catalog.get_all_databases() == []
    assert history(database) == EMPTY


@pytest.fixture
def parts(client, writing):
    """``d.p`` with two partitions that were written to."""
    client.create_database(T.Database(name="d"))
    client.create_table(table("p", keys="day:string"))
    for day in ("1", "2"):
        client.append_partition("d", "p", [day])
        txn, write_id = writing.open(), None
        write_id = writing.allocate(txn, "p")
        writing.client.add_dynamic_partitions(T.AddDynamicPartitions(
            txnid=txn, writeid=write_id, dbname="d", tablename="p", partitionnames=[f"day={day}"],
            operationType=T.DataOperationType.INSERT))
        client.commit_txn(T.CommitTxnRequest(txn))


def partitions_of(database):
    with database.begin() as pg:
        return [one for (one,) in pg.sql(
            "SELECT partition FROM completed_txn_components WHERE \"table\" = 'p' ORDER BY 1")]


@pytest.mark.parametrize("drop", [
    lambda c: c.drop_partition("d", "p", ["1"], True),
    lambda c: c.drop_partition_by_name("d", "p", "day=1", True),
    lambda c: c.drop_partitions_req(T.DropPartitionsRequest(
        "d", "p", T.RequestPartsSpec(names=["day=1"]), deleteData=True)),
    lambda c: c.drop_partition_req(T.DropPartitionRequest(dbName="d", tblName="p", partName="day=1", deleteData=True)),
], ids=["values", "name", "names", "request"])
def test_a_dropped_partition_takes_its_history_along(client, catalog, database, parts, drop):
    drop(client)
    assert catalog.get_partition_names("d", "p", -1) == ["day=2"]
    assert partitions_of(database) == ["day=2"]
    assert notes(database) == 0


def test_partitions_that_an_expression_dropped_are_those_that_are_gone(database, catalog, parts, keeper):
    def forward():
        catalog.drop_partition_by_name("d", "p", "day=2", True)
        return Forwarded(b"", "ok")

    keeper.drop_partitions(TableName("hive", "d", "p"), None, forward)
    assert partitions_of(database) == ["day=1"]
    assert notes(database) == 0


def test_a_renamed_partitions_history_follows_also_late(client, catalog, database, parts, dies, keeper):
    part = client.get_partition("d", "p", ["1"])
    part.values = ["3"]
    client.rename_partition("d", "p", ["1"], part)
    assert partitions_of(database) == ["day=2", "day=3"]
    part = client.get_partition("d", "p", ["2"])
    part.values = ["4"]
    dies("upstream.answered")
    client.rename_partition("d", "p", ["2"], part)
    assert partitions_of(database) == ["day=2", "day=3"]
    assert keeper.settle() == 1
    assert partitions_of(database) == ["day=3", "day=4"]


def test_a_table_that_becomes_transactional_begins_above_its_files(client, writing):
    client.create_database(T.Database(name="d"))
    client.create_table(table(plain="yes"))
    found = client.get_table("d", "t")
    found.parameters = {**found.parameters, **ACID}
    client.alter_table("d", "t", found)
    assert writing.write()[1] > 10_000_000


def test_a_truncations_transaction_knows_what_it_writes(acid, database, writing, keeper):
    txn = writing.open()
    write_id = writing.allocate(txn)

    def forward():
        assert rows(database, "txn_components", "max(write_id)") == write_id
        return Forwarded(b"", "ok")

    assert keeper.truncate(NAME, None, write_id, forward).was_done
    assert keeper.truncate(NAME, ["p=1"], write_id + 1, lambda: Forwarded(b"", "MetaException")).outcome != "ok"


def test_a_truncation_goes_on_to_the_upstream(client, acid):
    with pytest.raises(T.MetaException, match="no transaction has it"):  # the upstream's own words
        client.truncate_table_req(T.TruncateTableRequest(dbName="d", tableName="t", writeId=7))
    with pytest.raises(T.MetaException, match="needs a write id"):
        client.truncate_table_req(T.TruncateTableRequest(dbName="d", tableName="t"))
