"""A cut-over from a Hive metastore's transactions to ours, and back: no id goes backwards."""

from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from click.testing import CliRunner

from metastore.cli.main import cli
from metastore.errors import InvalidInputError, InvalidOperationError, UnavailableError
from metastore.locks.rules import NO_TXN
from metastore.txns.adoption.service import AdoptionService
from tests.support import thrift_server

SCHEMA = (Path(thrift_server.__file__).parent / "hive_transactions.sql").read_text()


def run(url, text):
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def hive_url(postgres):
    with postgres.empty() as url:
        run(url, SCHEMA)
        yield url


@pytest.fixture
def adoption(database):
    return AdoptionService(database)


def test_it_goes_on_where_hive_stopped(adoption, database, hive_url):
    told = adoption.adopt(hive_url, dry_run=False)
    assert told == {"next_txn_id": 43, "next_lock_id": 31, "next_compaction_id": 6, "tables": 1, "open_txns": 1,
                    "aborted_txns": 1, "locks": 1, "done": "taken over"}
    assert database.once("SELECT id, state, \"user\" FROM txns ORDER BY id") == [
        (41, "open", "bob"), (42, "aborted", "eve")]
    assert database.once("SELECT txn_id, write_id FROM txn_write_ids ORDER BY 1") == [(41, 2), (42, 3)]
    assert database.once("SELECT txn_id, partition, operation, write_id FROM txn_components ORDER BY 1") == [
        (41, "day=1", "u", 2), (42, "", "i", 3)]
    assert database.once("SELECT txn_id, partition, update_delete FROM completed_txn_components") == [(40, "day=1", True)]
    assert database.once("SELECT txn_id, commit_id, partition FROM write_sets") == [(40, 41, "day=1")]
    assert database.once("SELECT ext_id, txn_id, type, state FROM locks") == [(30, 41, "shared_write", "acquired")]
    assert database.once("SELECT nextval('lock_ext_id'), nextval('compaction_id')") == [(31, 6)]
    assert NO_TXN == 0


def test_transactions_of_hive_end_here_and_ids_go_on(server, client, hive_url):
    AdoptionService(server.database).adopt(hive_url, dry_run=False)
    types = client.types
    [lists] = client.get_valid_write_ids(types.GetValidWriteIdsRequest(["d.t"])).tblValidWriteIds
    assert (lists.writeIdHighWaterMark, list(lists.invalidWriteIds)) == (2, [2])  # nothing above is visible either
    client.heartbeat(types.HeartbeatRequest(txnid=41))
    assert client.check_lock(types.CheckLockRequest(lockid=30)).state == types.LockState.ACQUIRED
    with pytest.raises(types.TxnAbortedException, match="was committed meanwhile|conflict|Aborting"):
        client.commit_txn(types.CommitTxnRequest(41))  # 40 changed the same partition after 41 had begun
    [new] = client.open_txns(types.OpenTxnRequest(1, "ann", "h")).txn_ids
    assert new == 43
    request = types.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[new])
    assert client.allocate_table_write_ids(request).txnToWriteIds[0].writeId == 4


def test_a_dry_run_changes_nothing_and_a_second_run_does_nothing_new(adoption, database, hive_url):
    assert "dry run" in adoption.adopt(hive_url, dry_run=True)["done"]
    assert database.once("SELECT count(*) FROM txns") == [(0,)]
    adoption.adopt(hive_url, dry_run=False)
    adoption.adopt(hive_url, dry_run=False)
    assert database.once("SELECT count(*) FROM completed_txn_components") == [(1,)]


def test_it_is_refused_when_an_id_would_go_backwards(adoption, database, hive_url):
    adoption.adopt(hive_url, dry_run=False)
    database.once("UPDATE txn_counter SET next_txn_id = 50")
    with pytest.raises(InvalidOperationError, match="the next transaction is 50 here, 43 there"):
        adoption.adopt(hive_url, dry_run=False)


def test_it_is_refused_while_hive_compacts(adoption, database, hive_url):
    run(hive_url, """INSERT INTO "COMPACTION_QUEUE" VALUES (5, 'w')""")
    with pytest.raises(InvalidOperationError, match="1 compactions of the Hive metastore"):
        adoption.adopt(hive_url, dry_run=False)


def test_the_tables_of_3_are_found_in_lower_case(adoption, database, postgres):
    with postgres.empty() as url:
        run(url, SCHEMA.replace('"TXNS_TXN_ID_SEQ"', "txns_seq").replace('"', "") + """
            CREATE TABLE NEXT_TXN_ID (NTXN_NEXT bigint); INSERT INTO NEXT_TXN_ID VALUES (44)""")
        assert adoption.adopt(url, dry_run=True)["next_txn_id"] == 44


def test_what_is_no_hive_metastore_is_refused_with_a_sentence(adoption, postgres):
    with postgres.empty() as url:
        with pytest.raises(InvalidInputError, match="has no table TXNS"):
            adoption.adopt(url, dry_run=True)
        run(url, 'CREATE TABLE "TXNS" (x int)')
        with pytest.raises(InvalidInputError, match="are not those of a Hive metastore"):
            adoption.adopt(url, dry_run=True)
    with pytest.raises(UnavailableError, match="cannot be reached"):
        adoption.adopt("postgresql://nobody@127.0.0.1:1/none", dry_run=True)


def test_hive_goes_on_above_what_was_given_out_here(server, client, hive_url):
    service = AdoptionService(server.database)
    service.adopt(hive_url, dry_run=False)
    with pytest.raises(InvalidOperationError, match="1 transactions are open"):
        service.release()
    types = client.types
    client.abort_txn(types.AbortTxnRequest(41))
    txn, name = client.open_txns(types.OpenTxnRequest(1, "o'hara", "h")).txn_ids[0], "o'table"
    client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(dbName="d", tableName=name, txnIds=[txn]))
    client.add_dynamic_partitions(types.AddDynamicPartitions(
        txnid=txn, writeid=1, dbname="d", tablename=name, partitionnames=["p=1"],
        operationType=types.DataOperationType.INSERT))
    client.commit_txn(types.CommitTxnRequest(txn))

    run(hive_url, service.release())

    assert run(hive_url, 'SELECT "TXN_ID", "TXN_STATE" FROM "TXNS" ORDER BY 1') == [
        (40, "c"), (41, "a"), (42, "a"), (44, "c")]
    assert run(hive_url, """SELECT nextval('"TXNS_TXN_ID_SEQ"')""") == [(45,)]
    assert run(hive_url, 'SELECT * FROM "NEXT_WRITE_ID" ORDER BY 2') == [("d", name, 2), ("d", "t", 4)]
    assert run(hive_url, 'SELECT "T2W_TXNID", "T2W_WRITEID" FROM "TXN_TO_WRITE_ID" ORDER BY 1') == [
        (41, 2), (42, 3), (44, 1)]
    assert run(hive_url, 'SELECT "TC_TXNID", "TC_PARTITION", "TC_WRITEID" FROM "TXN_COMPONENTS" ORDER BY 1') == [
        (41, "day=1", 2), (42, None, 3)]
    assert (txn, name, "p=1", 1) in run(
        hive_url, 'SELECT "CTC_TXNID", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID" FROM "COMPLETED_TXN_COMPONENTS"')
    assert run(hive_url, 'SELECT count(*) FROM "HIVE_LOCKS"') == [(0,)]
    run(hive_url, service.release())  # twice is once


def test_the_commands(database_url, database, hive_url):
    options = ["--database-url", database_url]
    done = CliRunner().invoke(cli, ["upstream", "adopt", "--hive-database-url", hive_url, "--dry-run", *options])
    assert done.exit_code == 0, repr(done.exception)
    assert "43" in done.output
    done = CliRunner().invoke(cli, ["upstream", "release", *options])
    assert done.exit_code == 0
    assert done.output.startswith("-- For the database of a Hive metastore 4.x")
