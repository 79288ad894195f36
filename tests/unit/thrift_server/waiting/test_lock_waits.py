"""Who is woken, when, and exactly once; without a database."""

import fcntl
import os
import resource
from datetime import timedelta
from types import SimpleNamespace

import pytest

from metastore.errors import UnavailableError
from metastore.locks.rules import Lock, LockObject, LockState, LockType
from metastore.locks.service import LockResult
from metastore.telemetry.locks import LockStats
from metastore.thrift_server.dispatch.call import LATER, Call
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.thrift_server.waiting.lock_waits import _REMEMBERED, Waiting
from tests.support.thrift_server import until

LONG, SHORT = timedelta(hours=1), timedelta(0)


class Ear:
    """A listener that hears what a test says, or loses its connection."""

    def __init__(self):
        self.said, self.down, self.bell = [], False, os.eventfd(0)

    def connect(self):
        if self.down:
            raise UnavailableError("no database")

    def fileno(self):
        return self.bell

    def heard(self):
        os.eventfd_read(self.bell)
        if self.down:
            raise UnavailableError("connection lost")
        said, self.said = self.said, []
        return said

    def say(self, *said):
        self.said += said
        os.eventfd_write(self.bell, 1)

    def close(self):
        pass


@pytest.fixture
def ear():
    listener = Ear()
    yield listener
    os.close(listener.bell)


@pytest.fixture
def place(ear):
    """Yield a function that makes a waiting place; what it does with waiters is in .woken and .late."""
    made = []

    def make(patience=LONG, *, start=True):
        woken, late, stats = [], [], LockStats()
        waiting = Waiting(patience, woken.append, late.append, ear, stats)
        waiting.woken, waiting.late, waiting.stats = woken, late, stats
        if start:
            waiting.start()
            made.append(waiting)
        return waiting
    make.made = made
    yield make
    for waiting in made:
        waiting.stop()


def now():
    import time

    return time.perf_counter()


def test_a_release_wakes_those_who_wait_for_it_once(place):
    waiting = place()
    for waiter, lock_id in (("a", 1), ("b", 1), ("c", 2)):
        assert waiting.add(waiter, lock_id, now(), waiting.heard)

    waiting.released([1, 7])
    waiting.released([1])

    assert (sorted(waiting.woken), len(waiting)) == (["a", "b"], 1)
    assert not waiting.remove("a")
    assert waiting.remove("c")
    waiting.released([2])
    assert sorted(waiting.woken) == ["a", "b"]
    assert {metric.name: metric.samples[0].value for metric in waiting.stats.collect()} == {
        "metastore_lock_waiters": 0, "metastore_lock_wakes": 2, "metastore_deadlocks": 0, "metastore_locks_withdrawn": 0,
        "metastore_locks_repeated": 0, "metastore_locks_orphaned": 0}


def test_other_processes_are_heard(place, ear):
    waiting = place()
    waiting.add("a", 1, now(), waiting.heard)
    waiting.add("b", 2, now(), waiting.heard)

    ear.say("2", "9")

    until(lambda: waiting.woken == ["b"])


def test_what_our_own_sessions_are_told_is_read(place):
    waiting = place()
    for lock_id in (1, 2, 3):
        waiting.add(lock_id, lock_id, now(), waiting.heard)

    waiting.told(["INFO:  metastore_lock_released 2\n", "NOTICE:  relation 1 does not exist\n", "INFO:  metastore_lock_released 3\n"])

    assert waiting.woken == [2, 3]


def test_patience_ends(place):
    waiting = place(SHORT)
    waiting.add("a", 1, now(), waiting.heard)

    until(lambda: waiting.late == ["a"])
    assert (waiting.woken, len(waiting)) == ([], 0)


def test_patience_counts_from_the_beginning(place):
    waiting = place(timedelta(minutes=1))
    waiting.add("new", 1, now(), waiting.heard)
    waiting.add("old", 1, now() - 61, waiting.heard)

    until(lambda: waiting.late == ["old"])
    assert len(waiting) == 1


def test_nobody_waits_for_what_cannot_be_heard(place, ear):
    waiting = place()
    waiting.add("a", 1, now(), waiting.heard)
    ear.down = True
    ear.say()

    until(lambda: waiting.woken == ["a"])
    assert not waiting.add("b", 1, now(), waiting.heard)
    assert len(waiting) == 0

    ear.down = False
    until(lambda: waiting.add("b", 1, now(), waiting.heard))


def test_descriptors_may_have_any_number(place, ear):
    """Above 1,023 select() raises, which ended the thread and left every parked call without an answer."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit[1] < 1200:
        pytest.skip(f"this process may have {limit[1]} descriptors, and the test needs 1,200")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit[0], 1200), limit[1]))
    low = ear.bell
    try:
        ear.bell = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 1100)
        waiting = place()
        waiting.add("a", 1, now(), waiting.heard)
        waiting.add("b", 2, now(), waiting.heard)
        ear.say("1")
        until(lambda: waiting.woken or not waiting._thread.is_alive())
        assert (waiting.woken, len(waiting)) == (["a"], 1)  # an error would have woken everybody
        assert waiting._thread.is_alive()
        waiting.stop()
        place.made.clear()
        os.close(ear.bell)
    finally:
        ear.bell = low
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def test_what_nobody_should_say_ends_nothing(place, ear):
    """Anybody who may use the database may NOTIFY."""
    waiting = place()
    waiting.add("a", 1, now(), waiting.heard)
    ear.say("", "x", "1.5", "-1", "1")

    until(lambda: waiting.woken == ["a"] or not waiting._thread.is_alive())
    assert waiting._thread.is_alive()


def test_an_error_wakes_everybody_and_the_thread_goes_on(place, ear, capsys):
    waiting = place()
    waiting.add("a", 1, now(), waiting.heard)
    heard, ear.heard = ear.heard, lambda: os.eventfd_read(ear.bell) and {}["a bug"]
    ear.say("9")

    until(lambda: waiting.woken == ["a"] or not waiting._thread.is_alive())
    ear.heard = heard
    until(lambda: waiting.add("b", 2, now(), waiting.heard) or not waiting._thread.is_alive())
    ear.say("2")
    until(lambda: waiting.woken == ["a", "b"] or not waiting._thread.is_alive())
    assert waiting._thread.is_alive()


def test_nobody_waits_before_the_start_and_everybody_goes_at_the_end(place):
    waiting = place(start=False)
    assert not waiting.add("a", 1, now(), waiting.heard)
    waiting.start()
    waiting.add("a", 1, now(), waiting.heard)

    waiting.stop()

    assert waiting.woken == ["a"]
    assert not waiting.add("b", 1, now(), waiting.heard)


HELD = Lock(3, 1, 0, LockObject("hive", "db", "t"), LockType.EXCLUSIVE, LockState.ACQUIRED)


class Locks:
    """A service in which lock 5 waits for lock 3 until that goes."""

    def __init__(self):
        self.free, self.there, self.watched, self.is_watched = False, {3}, 0, False

    def check_lock(self, lock_ids):
        return [LockResult(5, LockState.ACQUIRED) if self.free else LockResult(
                    5, LockState.WAITING, waits_for=HELD, is_watched=self.is_watched) for _ in lock_ids]

    def hand_over(self, lock_ids, waiting):
        if isinstance(self.free, Exception):
            raise self.free
        return [None for _ in lock_ids], {lock_id: LockResult(lock_id, LockState.ACQUIRED) for lock_id in waiting if self.free}

    def watch(self, locks):
        self.watched += 1
        if isinstance(self.there, Exception):
            raise self.there
        return self.there


@pytest.fixture
def locks():
    return Locks()


@pytest.fixture
def check(place, locks):
    """Build a handler and a call of it whose lane is a list."""
    waiting = place(start=False)
    waiting._hears = True
    waiting._wake = Call.again
    handler = LockHandlers(locks, waiting)
    lane = []
    call = Call("check_lock", (SimpleNamespace(lockid=5),), SimpleNamespace(closed=False, hurry=None), started=now())
    call.lane = SimpleNamespace(put=lane.append, settle=lambda call, answer: lane.append(answer.state))
    return SimpleNamespace(handler=handler, call=call, lane=lane, waiting=waiting)


def run(check):
    [answer] = check.handler.check_lock([check.call])
    return answer if answer is LATER else answer.state


def test_a_parked_call_is_run_again_and_answered(check, locks):
    assert run(check) is LATER
    assert check.lane == []

    check.waiting.released([3])

    assert check.lane == [check.call]
    locks.free = True
    assert run(check) == 1
    assert check.call.parked > 0


def test_a_lock_that_is_gone_when_we_begin_to_watch_it_is_not_missed(check, locks):
    locks.there = set()

    assert run(check) is LATER

    assert check.lane == [check.call]


def test_whatever_happens_to_the_watch_the_call_is_answered(check, locks):
    locks.there = ValueError("a bug")

    assert run(check) is LATER
    assert check.lane == [check.call]
    assert run(check) == 2
    assert locks.watched == 1


def test_a_client_that_left_meanwhile_does_not_wait(check):
    check.handler.locks.watch = lambda _: setattr(check.call.connection, "closed", True) or {3}

    assert run(check) is LATER

    assert check.lane == [check.call]
    assert len(check.waiting) == 0


def test_hurry_ends_the_wait_once(check):
    run(check)

    check.call.connection.hurry()
    check.call.connection.hurry()

    assert check.lane == [check.call]
    assert run(check) == 2
    assert len(check.waiting) == 0


def test_a_call_without_an_answer_does_not_wait(check):
    check.call.expected = False

    assert run(check) == 2


def release(check, lock_id=3):
    return check.handler.unlock([Call("unlock", (SimpleNamespace(lockid=lock_id),), SimpleNamespace(closed=False))])


def test_a_release_answers_who_is_parked_behind_it(check, locks):
    run(check)
    locks.free = True

    assert release(check) == [None]

    assert check.lane == [1]
    assert check.call.parked > 0
    check.waiting.released([3])
    check.call.connection.hurry()
    assert check.lane == [1], "answered once"


def test_a_release_of_another_lock_answers_nobody(check, locks):
    run(check)
    locks.free, locks.unlock = True, lambda lock_ids: [None for _ in lock_ids]

    release(check, lock_id=4)

    assert (check.lane, len(check.waiting)) == ([], 1)


def test_who_is_not_granted_by_a_release_looks_for_itself(check):
    run(check)

    assert release(check) == [None]

    assert check.lane == [check.call]


def test_nobody_stays_parked_behind_a_release_that_fails(check, locks):
    run(check)
    locks.free = UnavailableError("no database")

    with pytest.raises(UnavailableError):
        release(check)

    assert check.lane == [check.call]


def test_no_more_are_taken_than_wanted(place):
    waiting = place()
    for waiter in "abc":
        waiting.add(waiter, 1, now(), waiting.heard)

    assert len(waiting.take([1, 2], 2)) == 2

    assert (len(waiting), waiting.woken) == (1, [])


def test_a_release_since_the_look_is_not_missed(place):
    """Who has seen the mark does not look again whether the row is there."""
    waiting = place()
    before = waiting.heard
    waiting.released([7])

    assert waiting.add("late", 7, now(), before)
    assert waiting.add("another", 8, now(), before)
    assert waiting.add("afterwards", 7, now(), waiting.heard)

    assert (waiting.woken, len(waiting)) == (["late"], 2)


def test_who_has_looked_before_more_than_is_remembered_looks_again(place):
    waiting = place()
    before = waiting.heard
    waiting.released(range(100, 100 + _REMEMBERED + 1))

    waiting.add("a", 1, now(), before)

    assert waiting.woken == ["a"]
    assert len(waiting._released) == _REMEMBERED


def test_who_has_looked_before_we_could_hear_again_looks_again(place, ear):
    waiting = place()
    before = waiting.heard
    ear.down = True
    ear.say()
    until(lambda: not waiting._hears)
    ear.down = False
    until(lambda: waiting._hears)

    waiting.add("a", 1, now(), before)

    assert waiting.woken == ["a"]


def test_what_is_watched_already_is_not_asked_for(check, locks):
    locks.is_watched = True

    assert run(check) is LATER

    assert (locks.watched, len(check.waiting)) == (0, 1)


def test_a_watched_lock_that_goes_during_the_look_is_not_missed(check, locks):
    locks.is_watched = True
    look = locks.check_lock
    locks.check_lock = lambda lock_ids: (look(lock_ids), check.waiting.released([3]))[0]

    assert run(check) is LATER

    assert check.lane == [check.call]
