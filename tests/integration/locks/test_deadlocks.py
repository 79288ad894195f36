"""Deadlocks on a real PostgreSQL: found when a request closes one, ended by one death, remembered; ids of tests/scripts/CASES."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from metastore.config import LockSettings
from metastore.errors import TxnAbortedError, UnavailableError
from metastore.locks.rules import LockRequest
from metastore.locks.service import LockResult, LockService
from metastore.locks.waits import store as wait_store
from metastore.txns.core.service import AbortRequest
from tests.integration.locks.conftest import wanted


@pytest.fixture
def state(database):
    def of(txn_id):
        [row] = database.once("SELECT state, abort_reason FROM txns WHERE id = %s", [txn_id])
        return row
    return of


def test_the_younger_of_two_dies_and_the_older_goes_on(ask, check, open_txn, locks, state):  # D01
    older, younger = open_txn(), open_txn()
    ask("E db.a", older)
    ask("E db.b", younger)
    waiter, _ = ask("E db.b", older)

    with pytest.raises(TxnAbortedError) as told:
        ask("E db.a", younger)

    assert str(told.value) == (
        f"Transaction txnid:{younger} was aborted to end a deadlock, as the youngest of it: "
        f"txnid:{younger} (ann@h1) wants EXCL_WRITE on db/a (lockid:4.1) and waits for EXCL_WRITE on db/a (lockid:1.1) of "
        f"txnid:{older} (ann@h1); "
        f"txnid:{older} (ann@h1) wants EXCL_WRITE on db/b (lockid:3.1) and waits for EXCL_WRITE on db/b (lockid:2.1) of "
        f"txnid:{younger} (ann@h1)")
    assert check(waiter) == "acquired"
    assert state(older) == ("open", None)
    assert state(younger) == ("aborted", str(told.value))
    [kept] = locks.select_deadlocks()
    assert (kept.victim_txn_id, kept.message) == (younger, str(told.value))
    assert [(wait["wanted"]["lock_id"], wait["blocker"]["lock_id"]) for wait in kept.cycle] == [(4, 1), (3, 2)]


def test_the_youngest_dies_whoever_asks_last(ask, check, open_txn, state):
    older, younger = open_txn(), open_txn()
    ask("E db.b", younger)
    ask("E db.a", older)
    lost, _ = ask("E db.a", younger)

    answer = ask("E db.b", older)

    assert state(younger)[0] == "aborted"
    assert answer[1] == "waiting"
    assert check(answer[0]) == "acquired"
    with pytest.raises(TxnAbortedError, match=f"txnid:{younger} was aborted to end a deadlock"):
        check(lost)


def test_three_in_a_ring_cost_one(ask, check, open_txn, state):  # D02
    one, two, three, outside = (open_txn() for _ in range(4))
    for txn_id, name in ((one, "a"), (two, "b"), (three, "c"), (outside, "d")):
        ask(f"E db.{name}", txn_id)
    ask("E db.a", outside)
    ask("E db.b", one)
    second, _ = ask("E db.c", two)

    with pytest.raises(TxnAbortedError, match=f"txnid:{three} was aborted.*txnid:{one}.*txnid:{two}"):
        ask("E db.a", three)

    assert [state(txn_id)[0] for txn_id in (one, two, three, outside)] == ["open", "open", "aborted", "open"]
    assert check(second) == "acquired"


def test_a_queue_costs_nobody(ask, open_txn, locks):
    one, two, three = open_txn(), open_txn(), open_txn()
    ask("E db.a", one)
    ask("S db.z", two)
    ask("E db.a", two)
    ask("S db.z", three)
    ask("E db.a", three)

    assert locks.select_deadlocks() == []


def test_two_circles_of_one_batch_cost_one_each(ask, open_txn, locks):  # D03
    pairs = [(open_txn(), open_txn()) for _ in range(2)]
    for number, (older, younger) in enumerate(pairs):
        ask(f"E db.a{number}", older)
        ask(f"E db.b{number}", younger)
        ask(f"E db.b{number}", older)

    answers = locks.lock([LockRequest(tuple(wanted(f"E db.a{number}")), younger)
                          for number, (_, younger) in enumerate(pairs)])

    assert [type(answer) for answer in answers] == [TxnAbortedError] * 2
    assert {row.victim_txn_id for row in locks.select_deadlocks()} == {younger for _, younger in pairs}
    assert locks.end_deadlocks() == {}


def test_one_request_can_close_several_circles(ask, open_txn, state):
    hub, *others = (open_txn() for _ in range(3))
    ask("E db.hub", hub)
    for number, other in enumerate(others):
        ask(f"E db.o{number}", other)
        ask("S db.hub", other) if number else ask("E db.hub", other)
    ask("E db.x", hub)

    answer = ask("E db.o0 + E db.o1", hub)

    assert answer[1] == "waiting"
    assert [state(txn_id)[0] for txn_id in (hub, *others)][:2] == ["open", "aborted"]


def test_switched_off_nobody_dies(database, open_txn, abort, check):  # D03, L25
    service = LockService(database, LockSettings(detect_deadlocks=False))
    one, two = open_txn(), open_txn()
    texts = [("S db.t", one), ("S db.t", two), ("X db.t", one), ("X db.t", two)]

    answers = [service.lock([LockRequest(tuple(wanted(text)), txn_id)])[0] for text, txn_id in texts]

    assert [answer.state.value for answer in answers] == ["acquired", "acquired", "waiting", "waiting"]
    assert service.select_deadlocks() == []
    abort(one)
    assert check(answers[3].lock_id) == "acquired"


def test_who_made_a_single_request_does_not_die(ask, open_txn, state):  # D04
    many, single = open_txn(), open_txn()
    ask("E db.a", many)
    ask("X db.a + X db.b", single)

    with pytest.raises(TxnAbortedError, match=f"txnid:{many} was aborted"):
        ask("E db.b", many)

    assert state(single)[0] == "open"


def test_locks_without_a_transaction_are_part_of_a_circle_and_survive_it(ask, check, open_txn):
    txn_id = open_txn()
    ask("E db.a", txn_id)
    between, _ = ask("X db.a + X db.b")

    with pytest.raises(TxnAbortedError, match=rf"lockid:{between} without a transaction \(ann@h1\) wants"):
        ask("E db.b", txn_id)

    assert check(between) == "acquired"


@pytest.mark.parametrize("spread", ["one database", "two databases"])
def test_closed_from_two_sides_at_once(database, locks, open_txn, txns, spread):
    """Neither sees the other's request when it asks; whoever looks last sees both, and one dies."""
    other = "db" if spread == "one database" else "other"
    for _ in range(25):
        older, younger = open_txn(), open_txn()
        locks.lock([LockRequest(tuple(wanted("E db.a")), older)])
        locks.lock([LockRequest(tuple(wanted(f"E {other}.b")), younger)])
        start = threading.Barrier(2)

        def ask(txn_id, name, start=start):
            start.wait()
            return locks.lock([LockRequest(tuple(wanted(name)), txn_id)])[0]

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.submit(ask, older, f"E {other}.b"), pool.submit(ask, younger, "E db.a")
            survivor, _ = first.result(), second.result()

        assert database.once("SELECT id, state FROM txns WHERE id IN (%s, %s) ORDER BY id", [older, younger]) == [
            (older, "open"), (younger, "aborted")]
        assert isinstance(survivor, LockResult)
        assert locks.check_lock([survivor.lock_id])[0].state.value == "acquired"
        assert locks.select_deadlocks(1)[0].victim_txn_id == younger
        txns.abort_txn([AbortRequest(older)])


def test_what_a_dying_server_left_is_found_later(database, ask, open_txn, locks, state):
    blind = LockService(database, LockSettings(detect_deadlocks=False))
    one, two = open_txn(), open_txn()
    for text, txn_id in (("S db.t", one), ("S db.t", two), ("X db.t", one), ("X db.t", two)):
        blind.lock([LockRequest(tuple(wanted(text)), txn_id)])

    assert set(locks.end_deadlocks()) == {two}

    assert (state(one)[0], state(two)[0]) == ("open", "aborted")


def test_a_search_that_fails_changes_no_answer(ask, open_txn, monkeypatch):
    one, two = open_txn(), open_txn()
    ask("S db.t", one)
    ask("S db.t", two)
    ask("X db.t", one)

    def broken(*_):
        raise UnavailableError("no database")
    monkeypatch.setattr(wait_store, "select_asked_twice", broken)

    assert ask("X db.t", two)[1] == "waiting"


def test_only_the_latest_are_kept(ask, open_txn, locks, monkeypatch, database):
    monkeypatch.setattr(wait_store, "KEPT_DEADLOCKS", 2)
    victims = []
    for number in range(4):
        older, younger = open_txn(), open_txn()
        ask(f"S db.t{number}", older)
        ask(f"S db.t{number}", younger)
        ask(f"X db.t{number}", older)
        with pytest.raises(TxnAbortedError):
            ask(f"X db.t{number}", younger)
        victims.append(younger)

    assert [row.victim_txn_id for row in locks.select_deadlocks()] == victims[:1:-1]
    assert [row.victim_txn_id for row in locks.select_deadlocks(1)] == victims[-1:]
