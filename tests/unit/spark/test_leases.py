"""Read transactions end when nothing can read their frames any more, and never behind the session that has their connection."""

import threading
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError

from metastore.spark.txn import leases


class Held:
    """Frames that a test lets go of, which nobody hears of before somebody looks."""

    def __init__(self) -> None:
        self.is_worth_a_look = False
        self.looks = 0
        self.gone: list[int] = []
        self.found: list[int] = []
        self.is_there = True

    def hold(self, frame, number):
        return frame

    def ended(self):
        if not self.is_there:
            raise Py4JNetworkError("the JVM is gone")
        found, self.found = self.found, []
        return found

    def look(self):
        self.looks += 1
        self.found, self.gone = self.found + self.gone, []


@pytest.fixture
def held():
    return Held()


@pytest.fixture
def reads(held, monkeypatch):
    monkeypatch.setattr(leases, "_PATIENCE", (0, 0))
    monkeypatch.setattr(leases, "_POLL", 0.001)
    opened = leases.ReadLeases(held)
    yield opened
    opened.close()


def read(reads, *tables, frames=1, end=lambda: None):
    lease = reads.begin(end)
    reads.lock(lease, tables)
    for _ in range(frames):
        lease.hold(SimpleNamespace())
    reads.complete(lease)
    return lease.number


def test_a_table_is_locked_while_a_frame_of_its_transaction_is_there(reads, held):
    first, second = read(reads, ("db", "t"), frames=2), read(reads, ("db", "u"))
    assert reads.keep_locked(("db", "t"))
    assert not reads.keep_locked(("db", "v"))

    held.gone += [first]
    assert reads.keep_locked(("db", "t")), "another frame is left"

    held.gone += [second, first]
    assert not reads.keep_locked(("db", "t"))
    assert not reads.keep_locked(("db", "u"))


def test_a_frame_that_goes_while_others_are_being_read_ends_nothing(reads, held):
    ended = threading.Event()
    lease = reads.begin(ended.set)
    lease.hold(SimpleNamespace())
    held.found += [lease.number]
    reads.lock(lease, [("db", "t")])

    assert reads.keep_locked(("db", "t"))
    assert not ended.is_set()
    reads.complete(lease)
    assert ended.is_set()


def test_a_read_without_a_frame_ends_at_once(reads):
    ended = threading.Event()
    read(reads, ("db", "t"), frames=0, end=ended.set)

    assert ended.is_set()


def test_what_python_lets_go_of_is_looked_for_soon(reads, held, monkeypatch):
    monkeypatch.setattr(leases, "_SOON", 0)
    ended = threading.Event()
    number = read(reads, end=ended.set)

    held.gone += [number]
    held.is_worth_a_look = True

    assert ended.wait(60)
    assert held.looks


def test_what_nobody_tells_of_is_looked_for_seldom_and_for_a_fiftieth_of_the_time(reads, held, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(leases, "monotonic", lambda: now[0])
    monkeypatch.setattr(leases, "_POLL", 60)

    def looking():
        held.looks += 1
        now[0] += cost

    monkeypatch.setattr(held, "look", looking)
    cost = 0.0
    read(reads)
    times = []
    for now[0] in range(100, 500):
        before = held.looks
        reads._look()
        times += [now[0] - 100] if held.looks > before else []
    assert times == [5, 10, 20, 40, 80, 140, 200, 260, 320, 380]

    cost, now[0], held.is_worth_a_look = 0.5, 600.0, True
    reads._look()
    assert now[0] == 600.5
    now[0], held.is_worth_a_look = 625.0, True
    reads._look()
    assert now[0] == 625.0, "a look takes half a second, so the next one comes 25 s after it"
    now[0] = 626.0
    reads._look()
    assert now[0] == 626.5


def test_without_a_jvm_nothing_reads(reads, held):
    ended = threading.Event()
    held.is_there = False
    read(reads, end=ended.set)

    assert ended.wait(60)


def test_what_was_ended_otherwise_is_not_ended_again(reads, held):
    ended = threading.Event()
    lease = reads.begin(ended.set)
    lease.hold(SimpleNamespace())
    reads.withdraw(lease)
    reads.complete(lease)
    held.found += [lease.number]
    reads.close()

    assert not ended.is_set()


def test_closing_waits_for_transactions_that_are_ending(reads, held):
    is_ending, may_end, order = threading.Event(), threading.Event(), []

    def end():
        is_ending.set()
        may_end.wait(60)
        order.append("ended")

    held.found += [read(reads, end=end)]
    assert is_ending.wait(60)
    closing = threading.Thread(target=lambda: (reads.close(), order.append("closed")))
    closing.start()
    may_end.set()
    closing.join()

    assert order == ["ended", "closed"]


def test_closing_ends_what_is_still_read(reads):
    ended = threading.Event()
    read(reads, end=ended.set)
    reads.close()

    assert ended.is_set()
