"""What is left of a statement that fails, loses, or does not hear how its commit ended: nothing that anybody sees."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.errors import SparkRuntimeException

from metastore.client import TxnManager
from metastore.locks.rules import Operation
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from metastore.planner.calls import CALLS
from metastore.web.http_server import HttpServer
from tests.support.spark_sessions import drop_database

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(catalog, lakehouse):
    """One for all that fail; it stays what it is."""
    catalog.sql("CREATE DATABASE failing")
    catalog.sql("CREATE TABLE failing.t (n INT) PARTITIONED BY (k INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql("INSERT INTO failing.t VALUES (1, 1), (2, 2)")
    yield "failing.t"
    drop_database(lakehouse.uri, "failing")


def files(client, name):
    root = Path(urlsplit(client.get_table(*name.split(".")).sd.location).path)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.name.endswith(".crc")}


def rows(catalog, name):
    return sorted(map(tuple, catalog.table(name).collect()))


@pytest.fixture
def around(monkeypatch):
    """Let a function run before or after a call of the planner, by its name; it gets the call, and the answer."""
    def put(name, *, before=lambda _: None, after=lambda *_: None):
        answer = CALLS[name].answer

        def disturbed(call):
            before(call)
            answered = answer(call)
            after(call, answered)
            return answered

        monkeypatch.setattr(planner_server, "CALLS", {**planner_server.CALLS, name: Method(disturbed)})

    async def answered(server, request, body):
        page = await whole(server, request, body)
        if request.gone.is_set():
            raise ConnectionAbortedError
        return page

    whole = HttpServer.answered
    monkeypatch.setattr(HttpServer, "answered", answered)
    return put


def hang_up(call, _=None):
    """Break the caller's connection before it has an answer."""
    call.gone.set()
    raise ConnectionAbortedError


def refuse(_):
    raise OSError(5, "no more room")


@pytest.fixture
def unchanged(catalog, client, table, around):
    """Yield a list of transactions that statements begin to write in; check in the end that nothing of them is left."""
    before, begun = files(client, table), []

    def note(call, answer):
        if call.body.text("kind") == "DEFAULT":
            begun.append(answer["txn"])

    around("begin", after=note)
    yield begun
    opened = {txn.id for txn in client.get_open_txns_info().open_txns if txn.state == client.types.TxnState.OPEN}
    assert begun
    assert opened.isdisjoint(begun)
    assert files(client, table) == before
    with pytest.MonkeyPatch.context() as undisturbed:
        undisturbed.setattr(planner_server, "CALLS", CALLS)
        assert rows(catalog, table) == [(1, 1), (2, 2)]


def test_a_failing_task(catalog, table, unchanged) -> None:
    with pytest.raises(Exception, match="not this one"):
        catalog.sql(f"INSERT INTO {table} SELECT IF(id = 7, raise_error('not this one'), id), 3 FROM range(8)")


def test_a_publication_that_is_refused(catalog, table, unchanged, around) -> None:
    around("publish", before=refuse)
    with pytest.raises(Exception, match="no more room"):
        catalog.sql(f"UPDATE {table} SET n = 10")


def test_partitions_that_cannot_be_announced_leave_no_files(catalog, table, unchanged, around) -> None:
    around("announce", before=refuse)
    with pytest.raises(Exception, match="no more room"):
        catalog.sql(f"INSERT INTO {table} VALUES (3, 3)")


def test_a_planner_that_dies_before_it_commits(catalog, table, unchanged, around) -> None:
    around("commit", before=hang_up)
    with pytest.raises(Exception, match="did not answer to commit"):
        catalog.sql(f"DELETE FROM {table}")


def test_a_commit_whose_answer_is_lost_is_asked_for_again(catalog, table, around) -> None:
    lost = []
    around("commit", after=lambda *call: lost or lost.append(call[0].body.text("kind")) or hang_up(*call))
    catalog.sql(f"UPDATE {table} SET n = 10 WHERE n = 1")

    assert lost == ["DEFAULT"]
    assert rows(catalog, table) == [(2, 2), (10, 1)]
    catalog.sql(f"UPDATE {table} SET n = 1 WHERE n = 10")


def test_what_was_committed_stays_though_nobody_heard_of_it(catalog, table, around) -> None:
    around("commit", after=hang_up)
    with pytest.raises(Exception, match="did not answer to commit"):
        catalog.sql(f"UPDATE {table} SET n = 10 WHERE n = 1")
    around("commit")

    assert rows(catalog, table) == [(2, 2), (10, 1)]
    catalog.sql(f"UPDATE {table} SET n = 1 WHERE n = 10")


def test_the_loser_of_a_conflict_is_told_by_whom(catalog, client, table, unchanged, around) -> None:
    winners = []

    def overtaken(*_):
        with TxnManager(client, host="elsewhere").transaction(user="trino", agent="q42") as txn:
            txn.add_dynamic_partitions(*table.split("."), ["k=1"], Operation.UPDATE)
        winners.append(txn.id)

    around("announce", after=overtaken)
    with pytest.raises(Exception, match="committed its update of") as lost:
        catalog.sql(f"UPDATE {table} SET n = n + 1")
    assert f"Transaction {winners[0]} of trino@elsewhere (q42)" in str(lost.value)


def test_a_refusal_is_an_exception_of_sparks_with_our_sentence_alone(catalog, table) -> None:
    with pytest.raises(SparkRuntimeException) as refused:
        catalog.sql(f"UPDATE {table} SET k = 5")

    assert str(refused.value) == (
        f"Partition column k of {table} cannot be updated: delete the row and insert it into the other partition.")
    assert refused.value.getCondition() == "InvalidOperationError"


def test_a_transaction_that_was_aborted_meanwhile(catalog, client, table, unchanged, around) -> None:
    abort = client.types.AbortTxnsRequest
    around("publish", before=lambda _: client.abort_txns(abort(unchanged)))
    with pytest.raises(Exception, match="abort"):
        catalog.sql(f"INSERT INTO {table} VALUES (3, 3)")


def test_a_writer_whose_files_were_cleaned_is_told_why(catalog, client, table, unchanged, around) -> None:
    """Suspended between the planner's answer and the renames: its transaction is aborted, and the Cleaner removes what it has staged."""
    def cleaned(*_):
        client.abort_txns(client.types.AbortTxnsRequest(unchanged))
        for staged in Path(urlsplit(client.get_table(*table.split(".")).sd.location).path).glob(".acid_stage_*"):
            shutil.rmtree(staged)

    around("publish", after=cleaned)
    with pytest.raises(Exception, match=r"Transaction txnid:\d+ already aborted: aborted") as told:
        catalog.sql(f"INSERT INTO {table} VALUES (3, 3)")
    assert "acid_stage" not in str(told.value)
