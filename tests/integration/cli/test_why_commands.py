"""`metastore lock why`, `txn outcome` and `txn explain`: asked as an operator asks, on a whole server."""

import re
from datetime import timedelta

import pytest
import yaml

from metastore.config import TxnSettings
from metastore.housekeeping.service import PurgeService
from metastore.loops.reaper import Reaper


class Client:
    """A client with short words."""

    def __init__(self, client):
        self.client, self.types = client, client.types

    def open(self, user="ann", agent="nightly load"):
        return self.client.open_txns(self.types.OpenTxnRequest(1, user, "h1", agentInfo=agent)).txn_ids[0]

    def lock(self, table, txn_id=0, kind="EXCLUSIVE", user="ann", agent="nightly load"):
        types = self.types
        return self.client.lock(types.LockRequest(
            [types.LockComponent(getattr(types.LockType, kind), types.LockLevel.TABLE, "db", table, isTransactional=True,
                                 operationType=types.DataOperationType.UPDATE)],
            txnid=txn_id, user=user, hostname="h1", agentInfo=agent)).lockid

    def write(self, txn_id, table, partition):
        types = self.types
        self.client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest("db", table, [txn_id]))
        self.client.add_dynamic_partitions(types.AddDynamicPartitions(txn_id, 1, "db", table, [partition]))

    def commit(self, txn_id):
        self.client.commit_txn(self.types.CommitTxnRequest(txn_id))


@pytest.fixture
def c(client):
    return Client(client)


@pytest.fixture
def reaper(database):
    return Reaper(PurgeService(database, TxnSettings()))


def test_a_pile_of_waiting_locks_leads_to_its_holder(c, run, asking, test_clock):
    holder = c.open("eve", "forgotten shell")
    c.lock("orders", holder, "SHARED_READ")
    test_clock.advance(timedelta(seconds=100))
    alter = c.lock("orders", user="bob", agent="alter table")
    reader = c.open("ann", "dashboard")
    waiting = c.lock("orders", reader, "SHARED_READ")
    test_clock.advance(timedelta(seconds=30))

    code, answer = asking("lock", "why", waiting)

    assert code == 0
    assert (answer["found"], answer["blocked"]) == (True, True)
    assert [(one["owner"], one["waits_for"], one["root"], one["asked"], one["in_deadlock"]) for one in answer["owners"]] == [
        (f"txn {reader}", [f"lock {alter}"], False, True, False),
        (f"lock {alter}", [f"txn {holder}"], False, False, False), (f"txn {holder}", [], True, False, False)]
    root = answer["owners"][-1]
    assert (root["user"], root["host"], root["agent_info"]) == ("eve", "h1", "forgotten shell")
    assert 130 <= root["age_s"] < 160
    assert 130 <= root["silent_s"] < 160
    assert 140 < root["expires_in_s"] <= 170
    assert root["ends_with"] == f"metastore txn abort {holder}"
    assert [(one["state"], one["type"], one["table"]) for one in root["claims"]] == [("acquired", "shared_read", "orders")]
    assert re.fullmatch(
        rf"Lock {waiting} waits for transaction {holder} of eve@h1 \(forgotten shell\), which holds SHARED_READ on db.orders "
        rf"since .* UTC and expires in 1\d\d s unless it is heard of \(`metastore txn abort {holder}` ends it now\)\.",
        answer["explanation"])
    assert asking("lock", "why", f"txn:{reader}")[1]["owners"][-1]["owner"] == f"txn {holder}"
    assert yaml.safe_load(run("lock", "why", f"{waiting}.1", "-o", "yaml")[1])["blocked"] is True

    code, out, _ = run("lock", "why", "db.orders")
    lines = out.splitlines()
    assert (code, lines[1]) == (0, "")
    assert re.split(r"\s{2,}", lines[2]) == ["WHO", "LOCKS", "WAITS FOR", "AGE", "HEARTBEAT", "EXPIRES", "ENDS WITH"]
    assert len(lines) == 6

    assert run(*root["ends_with"].split()[1:])[0] == 0
    code, answer = asking("lock", "why", alter)
    assert (code, answer["blocked"]) == (1, False) if answer["owners"][0]["root"] else (0, True)


def test_when_there_is_nothing_to_explain(c, run):
    txn_id = c.open()
    held = c.lock("orders", txn_id)

    assert run("lock", "why", held)[0] == 1
    assert run("lock", "why", held)[1].startswith(f"Lock {held} waits for nobody.")
    gone = "There is no lock 4711: it was released, or it ended with its transaction, or it expired.\n"
    assert run("lock", "why", 4711)[:2] == (1, gone)
    assert run("lock", "why", "txn:4711")[0] == 1
    assert run("lock", "why", "db.nobody")[:2] == (1, "Nobody holds a lock on table db.nobody or waits for one.\n")
    assert run("lock", "why", "db.orders")[1].startswith(f"Table db.orders is held by transaction {txn_id} of ann@h1")


@pytest.mark.parametrize("wrong", ["orders", "a.b.c.d", "db.", "txn:x", "lock:x", "lock:7.x", "db:t.u", ""])
def test_questions_that_nobody_understands(run, wrong):
    assert run("lock", "why", wrong)[:2] == (2, "")


def test_the_wire_refuses_questions_about_several_things(client):
    types = client.operators_types
    for question in (types.LockWhyRequest(), types.LockWhyRequest(lockid=1, txnid=1)):
        with pytest.raises(client.types.MetaException, match="Ask about"):
            client.metastore_lock_why(question)


def test_the_life_of_one_that_lost_a_conflict(c, asking, run):
    loser, winner = c.open(), c.open("bob", "hourly load")
    for txn_id in (loser, winner):
        c.write(txn_id, "orders", "day=1")
    c.commit(winner)
    with pytest.raises(c.types.TxnAbortedException):
        c.commit(loser)

    code, life = asking("txn", "explain", loser)

    assert code == 0
    assert (life["outcome"], life["user"], life["abort_code"]) == ("aborted", "ann", 50003)
    assert life["conflict"] == (f"update of db/orders/day=1 after the update of transaction {winner} of bob@h1 (hourly load), "
                                f"which committed at {winner}")
    assert [(one["table"], one["partition"], one["operation"]) for one in life["writes"]] == [("orders", "day=1", "update")]
    assert [asking("txn", "outcome", one)[0] for one in (winner, loser)] == [0, 1]
    out = run("txn", "explain", loser)[1]
    assert "WROTE" in out
    assert "db.orders/day=1" in out


def test_a_lock_that_went_with_its_transaction_tells_about_that(c, run):
    """Hive's clients ask for their lock without saying whose it is."""
    types, client = c.types, c.client
    txn_id, alone = c.open(), c.lock("other")
    lock_id = c.lock("orders", txn_id)
    run("txn", "abort", txn_id)
    client.unlock(types.UnlockRequest(alone))

    with pytest.raises(types.NoSuchLockException) as raised:
        client.check_lock(types.CheckLockRequest(lock_id))
    assert raised.value.message.startswith(f"No such lock lockid:{lock_id}: aborted by an ABORT TRANSACTIONS command (")
    with pytest.raises(types.NoSuchLockException) as raised:
        client.check_lock(types.CheckLockRequest(alone))
    assert raised.value.message == f"No such lock lockid:{alone}"


def test_deadlocks(c, asking):
    first, second = c.open(), c.open("bob")
    c.lock("a", first)
    c.lock("b", second)
    c.lock("b", first)
    with pytest.raises(c.types.TxnAbortedException):
        c.lock("a", second, user="bob")

    code, [found] = asking("show", "deadlocks")

    assert (code, found["victim_txn_id"]) == (0, second)
    assert found["explanation"].startswith(f"Transaction txnid:{second} was aborted to end a deadlock")
    assert asking("txn", "explain", second)[1]["reason"].startswith(found["explanation"])


def test_the_reaped_one_is_told_in_errors_commands_and_when_it_is_gone(c, asking, run, reaper, test_clock, database):
    txn_id = c.open()
    c.lock("orders", txn_id)
    for _ in range(2):
        test_clock.advance(timedelta(seconds=120))
        c.client.heartbeat(c.types.HeartbeatRequest(txnid=txn_id))
    test_clock.advance(timedelta(seconds=301))
    reaper.tick()

    with pytest.raises(c.types.TxnAbortedException) as raised:
        c.client.heartbeat(c.types.HeartbeatRequest(txnid=txn_id))
    assert re.match(rf"Transaction txnid:{txn_id} already aborted: aborted because no heartbeat of ann@h1 arrived for 3\d\d s, "
                    r"the last one at .*, at \d{4}-.* UTC$", raised.value.message)
    _, kept = asking("txn", "explain", txn_id)
    database.once("DELETE FROM txn_components")
    test_clock.advance(timedelta(hours=2))
    for _ in range(2):
        reaper.tick()
    assert database.once("SELECT count(*) FROM txns") == [(0,)]

    code, life = asking("txn", "explain", txn_id)
    assert code == 0
    assert life.pop("record") == "removed, this is what was kept of it"
    assert kept.pop("record") is None
    kept["reason"], named = kept["reason"].split("; snapshots name it until ")
    assert "hive.db.orders" in named
    assert life == kept
    assert (life["heartbeats"], life["abort_code"]) == (2, 50004)
    assert 301 <= life["longest_silence_s"] < 330
    assert [(one["table"], one["state"]) for one in life["locks"]] == [("orders", "acquired")]
    assert "EXCLUSIVE" in run("txn", "explain", txn_id)[1]


def test_outcomes(c, asking, run):
    opened = c.open()

    code, answer = asking("txn", "outcome", opened)
    assert (code, answer["outcome"]) == (1, "open")
    c.commit(opened)
    code, answer = asking("txn", "outcome", opened)
    assert (code, answer["outcome"]) == (0, "committed")
    assert answer["ended_at"]
    assert asking("txn", "outcome", opened + 1)[1]["outcome"] == "never_opened"
    assert run("txn", "explain", opened + 1)[0] == 1


def test_errors_of_every_call_that_needs_an_open_transaction_tell_why_it_is_not(c, run):
    txn_id = c.open()
    run("txn", "abort", txn_id)
    types, client = c.types, c.client
    calls = [lambda: c.commit(txn_id), lambda: c.lock("t", txn_id), lambda: c.write(txn_id, "t", "p=1"),
             lambda: client.heartbeat(types.HeartbeatRequest(txnid=txn_id))]
    texts = []
    for call in calls:
        with pytest.raises(types.TxnAbortedException) as raised:
            call()
        texts.append(raised.value.message)

    assert all(text.startswith(f"Transaction txnid:{txn_id} already aborted: aborted by an ABORT TRANSACTIONS command")
               for text in texts), texts
    with pytest.raises(types.NoSuchTxnException, match="highest that was given out is 1"):
        client.abort_txn(types.AbortTxnRequest(99))
