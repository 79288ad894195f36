"""The scheduler: leadership, one run at a time, survival of failures, drain."""

from datetime import timedelta
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from metastore.loops import scheduler as scheduler_module
from metastore.loops.scheduler import Loop, Scheduler
from tests.support.thrift_server import until

LONG = timedelta(hours=1)
PATIENCE = timedelta(seconds=60)


class Leading:
    def __init__(self, leads=True):
        self.leads = leads

    def is_leader(self, role):
        return self.leads if isinstance(self.leads, bool) else role in self.leads


@pytest.fixture
def stopping():
    return Event()


def test_a_loop_for_the_leader_rests_elsewhere(stopping):
    ticks = []
    loops = [Loop("led", lambda: ticks.append("led"), LONG),
             Loop("free", lambda: ticks.append("free"), LONG, everywhere=True)]
    scheduler = Scheduler(loops, Leading(leads=False), stopping)

    for loop in loops:
        scheduler.run(loop)

    assert ticks == ["free"]


def test_each_loop_has_a_leader_of_its_own(stopping):
    """Another server may lead a loop, and not have the Initiator at all."""
    ticks = []
    loops = [Loop(name, lambda name=name: ticks.append(name), LONG) for name in ("reaper", "initiator")]
    scheduler = Scheduler(loops, Leading(leads={"initiator"}), stopping)

    for loop in loops:
        scheduler.run(loop)

    assert ticks == ["initiator"]


def test_a_busy_loop_goes_on_at_once(stopping):
    left = [3]

    def tick():
        left[0] -= 1
        return left[0]

    Scheduler([], Leading(), stopping).run(Loop("w", tick, LONG, busy=lambda report: report > 0))

    assert left == [0]


def test_a_loop_that_has_something_due_does_not_wait_for_its_interval(stopping):
    again, ticks = Event(), []

    def tick():
        ticks.append(len(ticks))
        if len(ticks) == 2:
            again.set()
        return ticks[-1]

    scheduler = Scheduler([Loop("w", tick, LONG, sooner=lambda report: None if report else timedelta(0))],
                          Leading(), stopping)
    scheduler.start()

    assert again.wait(60)
    assert scheduler.stop(PATIENCE)
    assert ticks == [0, 1]


def test_a_loop_with_news_looks_at_once(stopping):
    looked = Event()
    loop = Loop("w", looked.set, LONG, start_after=LONG)
    scheduler = Scheduler([loop], Leading(), stopping)

    scheduler.wake([loop])

    assert looked.wait(60)
    assert scheduler.stop(PATIENCE)


def test_news_in_the_middle_of_a_tick_make_it_look_once_more(stopping):
    """It may have looked before there was anything. It never runs beside itself."""
    ticks = []

    def tick():
        ticks.append(len(ticks))
        if len(ticks) == 1:
            scheduler.wake([loop])
            scheduler.run(loop)

    loop = Loop("w", tick, LONG, start_after=LONG)
    scheduler = Scheduler([loop], Leading(), stopping)
    scheduler.run(loop)

    assert ticks == [0, 1]
    assert scheduler.stop(PATIENCE)


def test_a_loop_that_was_woken_can_be_woken_again(stopping):
    ticks = []
    loop = Loop("w", lambda: ticks.append(len(ticks)), LONG, start_after=LONG)
    scheduler = Scheduler([loop], Leading(), stopping)
    for _ in range(3):
        scheduler.run(loop)

    assert ticks == [0, 1, 2]


def test_what_is_due_later_changes_nothing(stopping):
    scheduler = Scheduler([Loop("w", lambda: 0, LONG, sooner=lambda _: 2 * LONG, start_after=LONG)], Leading(), stopping)
    scheduler.start()
    planned = scheduler._scheduler.get_job("w").next_run_time

    scheduler.run(scheduler._loops[0])

    assert scheduler._scheduler.get_job("w").next_run_time == planned
    assert scheduler.stop(PATIENCE)


def test_a_clock_that_is_set_back_stops_no_loop(stopping, monkeypatch):
    """Ticks that are planned in an hour of a clock that has just lost that hour are planned for now."""
    clock = SimpleNamespace(back=timedelta(0))
    monkeypatch.setattr(scheduler_module, "_now", lambda now=scheduler_module._now: now() - clock.back)
    monkeypatch.setattr(scheduler_module, "_LOOK_AT_CLOCK_S", 0.01)
    scheduler = Scheduler([Loop("w", lambda: 0, LONG, start_after=LONG)], Leading(), stopping)
    scheduler.start()
    planned = scheduler._scheduler.get_job("w").next_run_time

    clock.back = timedelta(minutes=30)

    def moved():
        return planned - scheduler._scheduler.get_job("w").next_run_time

    until(lambda: moved() > timedelta(minutes=1))  # a pause between the two clocks' readings moves it a little as well
    assert timedelta(minutes=29) < moved() < timedelta(minutes=31)
    assert scheduler.stop(PATIENCE)


def test_a_failing_tick_stops_nothing(stopping, capsys):
    def tick():
        raise RuntimeError("disk full")

    Scheduler([], Leading(), stopping).run(Loop("w", tick, LONG))

    assert "loop_failed" in "".join(capsys.readouterr())


def test_stop_waits_for_the_running_tick_and_starts_no_other(stopping):
    started, ended = Event(), []

    def tick():
        started.set()
        stopping.wait(60)
        ended.append(True)
        return True

    scheduler = Scheduler([Loop("w", tick, LONG, busy=lambda _: True)], Leading(), stopping)
    scheduler.start()
    assert started.wait(60)

    assert scheduler.stop(PATIENCE)
    assert ended == [True]


def test_stop_gives_up_on_a_tick_that_does_not_end(stopping):
    started, release = Event(), Event()

    def tick():
        started.set()
        release.wait(60)

    scheduler = Scheduler([Loop("w", tick, LONG)], Leading(), stopping)
    scheduler.start()
    assert started.wait(60)

    assert not scheduler.stop(timedelta(seconds=0.05))
    release.set()


def test_stopping_before_anything_ran(stopping):
    scheduler = Scheduler([Loop("w", lambda: None, LONG, start_after=LONG)], Leading(), stopping)
    scheduler.start()
    done = []
    thread = Thread(target=lambda: done.append(scheduler.stop(PATIENCE)))
    thread.start()
    thread.join(60)

    assert done == [True]


def test_every_tick_is_told_of_also_one_that_fails(stopping):
    told = []

    class Told:
        def ticked(self, loop, seconds, report, *, failed):
            told.append((loop, seconds >= 0, report, failed))

    def broken():
        raise RuntimeError("no database")

    scheduler = Scheduler([], Leading(), stopping, Told())
    scheduler.run(Loop("w", lambda: 5, LONG))
    scheduler.run(Loop("b", broken, LONG))

    assert told == [("w", True, 5, False), ("b", True, None, True)]
