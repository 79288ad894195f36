"""What the how-tos of operators show: programs run, and commands print what the page says, but for numbers, times and widths of columns."""

import re
from datetime import timedelta

import pyarrow as pa
import pytest

from metastore.client import MetastoreClient, TxnManager
from metastore.client.lock_manager import LockNotAcquiredError, LockWait
from metastore.client.lock_plan import Target, statement_locks
from metastore.compaction.initiating.service import InitiatorService
from metastore.config import CompactionSettings, TxnSettings
from metastore.files import Files
from metastore.housekeeping.service import PurgeService
from metastore.loops.initiator import Initiator
from metastore.loops.reaper import Reaper
from metastore.streaming import connect
from metastore.thrift_server.dispatch import middleware
from tests.support.acid.creating import create_database, create_table
from tests.support.how_to import blocks, follow


@pytest.fixture
def server_settings():
    return {"hive.txn.timeout": "60s", "hive.metastore.transactional.event.listeners": "org.apache.hive.hcatalog.listener.DbNotificationListener"}


def shape(text):
    """Return a text without its parts that differ from one run to the next."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+( UTC|Z)", "T", text)
    text = re.sub(r"[\d.,]+ (B|[kMGT]B)\b", "SIZE", text)
    return re.sub(r"\s+", " ", re.sub(r"\b\d[\d.,:e-]*\b", "N", text)).strip()


def compare(shown, printed):
    """Check that a page shows what is printed; the page may leave out lines, where it has dots."""
    parts = [shape(part) for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)]
    at = 0
    for part in parts:
        at = shape(printed).find(part, at)
        assert at >= 0, f"{part}\n\nis not in\n\n{shape(printed)}"


class Users:
    """Users of one server, each with the words of the page."""

    def __init__(self, client):
        self.client, self.types = client, client.types

    def open(self, user, host, agent):
        return self.client.open_txns(self.types.OpenTxnRequest(1, user, host, agentInfo=agent)).txn_ids[0]

    def lock(self, kind, user, host, agent, txn_id=0):
        types = self.types
        component = types.LockComponent(getattr(types.LockType, kind), types.LockLevel.TABLE, "sales", "orders", isTransactional=bool(txn_id),
                                        operationType=types.DataOperationType.SELECT)
        return self.client.lock(types.LockRequest([component], txnid=txn_id, user=user, hostname=host, agentInfo=agent)).lockid

    def refused(self, call, *arguments):
        with pytest.raises(Exception) as error:
            call(*arguments)
        return f"{type(error.value).__name__}: {error.value.message}"


def test_who_holds_the_lock(client, run, database, test_clock, monkeypatch):
    """In the order of the page, but for the transaction that falls silent: that takes a minute of all the others."""
    monkeypatch.setattr(middleware, "PAUSES", 0)  # DROP TABLE is refused at once
    why, drop, ended, lost, silent, outcome, messages = blocks("who-holds-the-lock.md", "text")
    users, types = Users(client), client.types
    create_database(client, "sales")
    monkeypatch.setattr("tests.support.acid.creating.DATABASE", "sales")
    create_table(client, "orders", {"id": "int"})
    create_table(client, "stock", {"id": "int"}, keys={"day": "string"})

    def command(block, *arguments):
        prompt, words = block.splitlines()[0].split(maxsplit=1)
        assert prompt == "$"
        compare(block.partition("\n")[2], run(*words.split()[1:3], *arguments)[1])

    eve = users.open("eve", "laptop-17", "beeline: SELECT * FROM orders")
    users.lock("SHARED_READ", "eve", "laptop-17", "", eve)
    iceberg = users.lock("EXCLUSIVE", "bob", "etl-3", "iceberg commit 9f2c")
    ann = users.open("ann", "bi-1", "dashboard")
    waiting = users.lock("SHARED_READ", "ann", "bi-1", "", ann)
    test_clock.advance(timedelta(seconds=10))
    command(why, waiting)
    with pytest.raises(LockNotAcquiredError) as impatient, TxnManager(client, wait=LockWait(retries=1)).transaction() as txn:
        txn.lock(statement_locks([Target("sales", "orders")]))
    client.unlock(types.UnlockRequest(iceberg))
    client.abort_txns(types.AbortTxnsRequest([ann]))
    compare(drop, users.refused(client.drop_table, "sales", "orders", True).partition(": ")[2])
    run("txn", "abort", eve)
    compare(ended, users.refused(client.heartbeat, types.HeartbeatRequest(txnid=eve)))

    loser, winner = users.open("ann", "etl-1", "nightly load"), users.open("bob", "etl-2", "hourly load")
    for txn_id in (loser, winner):
        client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest("sales", "stock", [txn_id]))
        client.add_dynamic_partitions(types.AddDynamicPartitions(txn_id, 1, "sales", "stock", ["day=2026-11-21"], types.DataOperationType.UPDATE))
    client.commit_txn(types.CommitTxnRequest(winner))
    users.refused(client.commit_txn, types.CommitTxnRequest(loser))
    command(lost, loser)

    committed = users.open("ann", "etl-1", "x")
    client.commit_txn(types.CommitTxnRequest(committed))
    command(outcome, committed)

    quiet = users.open("eve", "laptop-17", "")
    lock_id = users.lock("SHARED_READ", "eve", "laptop-17", "", quiet)
    test_clock.advance(timedelta(seconds=63))
    Reaper(PurgeService(database, TxnSettings(timeout=timedelta(seconds=60)))).tick()
    command(silent, quiet)
    told = [users.refused(client.heartbeat, types.HeartbeatRequest(txnid=loser)), users.refused(client.abort_txn, types.AbortTxnRequest(committed)), users.refused(client.abort_txn, types.AbortTxnRequest(99)),
            users.refused(client.check_lock, types.CheckLockRequest(lock_id)), str(impatient.value)]
    for line, printed in zip(messages.splitlines(), told, strict=True):
        compare(line, printed)


def test_why_is_it_not_compacted(client, run, database, monkeypatch):
    """The columns of what is printed; what they say is told in test_compaction_answers.py."""
    create_database(client, "sales")
    monkeypatch.setattr("tests.support.acid.creating.DATABASE", "sales")
    create_table(client, "orders", {"id": "int"})
    with connect("sales.orders", client=client) as stream:
        for number in range(2):
            with stream.transaction():
                stream.write(pa.table({"id": [number]}))
    Users(client).open("eve", "laptop-17", "beeline: SELECT ...")
    Initiator(InitiatorService(database, CompactionSettings()), Files(), "host-1", "test").tick()

    for block in blocks("why-is-it-not-compacted.md", "text"):
        _, _, *words = block.splitlines()[0].split()
        _, printed, _ = run(*words)
        headers = [line for line in block.splitlines() if re.match(r"[A-Z]{3,} ", line)]
        assert headers
        for line in headers:
            compare(line, printed)


def test_follow_what_happens(client, server, capsys, monkeypatch):
    create_database(client, "sales")
    monkeypatch.setattr("tests.support.acid.creating.DATABASE", "sales")
    create_table(client, "orders", {"id": "int"})
    txn_id = client.open_txns(client.types.OpenTxnRequest(1, "ann", "h1")).txn_ids[0]
    client.commit_txn(client.types.CommitTxnRequest(txn_id))
    names = {"txn_id": txn_id}
    follow("follow-what-happens.md", {"thrift://localhost:9083": server.thrift_uri}, text=lambda _: None, python=lambda text: exec(text, names))
    assert "CREATE_TABLE sales orders" in capsys.readouterr().out


def test_clients_of_acid_tables(server):
    def sql(text):
        """Send what Hive sends for SET metaconf."""
        key, _, value = text.strip().removeprefix("SET metaconf:").removesuffix(";").partition("=")
        with MetastoreClient(server.thrift_uri) as client:
            client.setMetaConf(key, value)
            assert client.getMetaConf(key) == value

    follow("clients-of-acid-tables.md", {}, sh=lambda _: None, sql=sql)
