"""The scheduler of the loops: intervals, one run of a loop at a time, leadership, stopping.

Rule: a loop is a ``tick()``; only this module waits, and other parts wake a loop that has news. Loops that need one
runner in the cluster ask for the leadership of the loop before each tick: of servers with different settings each may
lead only what it runs (ADR 26). That saves duplicate work and is never relied upon: every tick is safe beside another.
APScheduler plans by this machine's clock; when that is set back, everything planned moves with it (ADR 0041).
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Condition, Event, Thread
from time import monotonic, perf_counter
from typing import Protocol

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from metastore.telemetry.logs import get_logger

_JITTER = 0.1
_SHORTEST = timedelta(seconds=1)
"""The shortest pause before ticks that are wanted early."""
_LOOK_AT_CLOCK_S = 1.0
_log = get_logger(__name__)


class Leader(Protocol):
    """The election of a process that runs the cluster's loops."""

    def is_leader(self, role: str) -> bool:
        """Return True if this process leads the loop of that name, as far as it can tell now; never raise."""


class Observer(Protocol):
    """An observer of loops."""

    def ticked(self, loop: str, seconds: float, report: object, *, failed: bool) -> None:
        """Receive the end of a tick; ``report``: its result."""


@dataclass(frozen=True)
class Loop:
    """A tick and its interval. ``everywhere``: needs no leader.

    ``busy``: True if the loop continues at once after a report.
    ``sooner``: the pause before the next tick after a report, if that is before its time; None: the usual time.
    ``on_request``: a queued compaction is news for the loop.
    """

    name: str
    tick: Callable[[], object]
    interval: timedelta
    everywhere: bool = False
    start_after: timedelta = timedelta(0)
    busy: Callable[[object], bool] = field(default=lambda _report: False)
    sooner: Callable[[object], timedelta | None] = field(default=lambda _report: None)
    on_request: bool = False


class Scheduler:
    """A scheduler that runs loops until it is stopped."""

    def __init__(
        self, loops: Sequence[Loop], leader: Leader, stopping: Event, observer: Observer | None = None
    ) -> None:
        """Prepare a scheduler. ``stopping``: the event that ticks check; ``stop`` sets it.

        ``observer`` gets the end of every tick.
        """
        self._loops = loops
        self._observer = observer
        self._leader = leader
        self._stopping = stopping
        self._idle = Condition()
        self._ticking: set[str] = set()
        self._again: set[str] = set()
        """The loops that have to run once more, because there was news during their tick."""
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # It warns about long ticks.
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(max(len(loops), 1))},
            job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None},
            timezone="UTC",
        )

    def start(self) -> None:
        """Start every loop, each a little apart from the others."""
        ahead = _ahead()
        for loop in self._loops:
            seconds = max(loop.interval.total_seconds(), 0.1)
            self._scheduler.add_job(
                self.run,
                "interval",
                [loop],
                seconds=seconds,
                jitter=seconds * _JITTER,
                id=loop.name,
                next_run_time=_now() + loop.start_after,
            )
        self._scheduler.start()
        Thread(target=self._watch_clock, args=[ahead], name="loops-clock", daemon=True).start()
        _log.info("loops_started", loops=[loop.name for loop in self._loops], pid=os.getpid())

    def _watch_clock(self, ahead: float) -> None:
        """Move planned ticks when the clock is set back; a clock that is set forward only hastens them.

        ``ahead``: the clock's lead when the first ticks were planned.
        """
        while not self._stopping.wait(_LOOK_AT_CLOCK_S):
            back = ahead - _ahead()
            ahead -= back
            if back > _LOOK_AT_CLOCK_S:
                self.follow_clock(timedelta(seconds=back))

    def follow_clock(self, back: timedelta) -> None:
        """Move all planned ticks after the clock was set back by ``back``."""
        _log.warning("loops_clock_set_back", seconds=round(back.total_seconds()))
        for job in self._scheduler.get_jobs():
            with suppress(JobLookupError):  # The scheduler is being stopped.
                job.modify(next_run_time=job.next_run_time - back)

    def wake(self, loops: Sequence[Loop]) -> None:
        """Run these loops now, or once more when their present tick is over."""
        with self._idle:
            self._again.update(loop.name for loop in loops)
            resting = [loop for loop in loops if loop.name not in self._ticking]
        for loop in resting:
            Thread(target=self.run, args=[loop], name=f"woken-{loop.name}", daemon=True).start()

    def run(self, loop: Loop) -> None:
        """Run one loop now, as long as it has more to do, unless another process leads or it is running already."""
        with self._idle:
            if loop.name in self._ticking:
                return
            self._ticking.add(loop.name)
        rests = False
        try:
            while not rests and not self._stopping.is_set() and (loop.everywhere or self._leader.is_leader(loop.name)):
                with self._idle:
                    self._again.discard(loop.name)
                report = self._tick(loop)
                if not loop.busy(report):
                    self._hasten(loop, loop.sooner(report))
                    rests = self._may_rest(loop)
        except Exception:  # noqa: BLE001 - a loop must outlive any error of a tick
            # The loop's next tick starts from the database's state, so only time is lost.
            _log.exception("loop_failed", loop=loop.name)
        finally:
            with self._idle:
                if not rests:
                    self._ticking.discard(loop.name)
                self._idle.notify_all()

    def _may_rest(self, loop: Loop) -> bool:
        """Return True if no wake-up came since the loop's tick began.

        If so, the loop rests from now on, and any thread may run it.
        """
        with self._idle:
            if loop.name not in self._again:
                self._ticking.discard(loop.name)
            return loop.name not in self._again

    def _hasten(self, loop: Loop, pause: timedelta | None) -> None:
        """Move the next tick of a loop to the end of this pause, if that is sooner than planned."""
        job = self._scheduler.get_job(loop.name)
        if pause is None or job is None:
            return
        wanted = _now() + max(pause, _SHORTEST)
        if job.next_run_time is None or wanted < job.next_run_time:
            with suppress(JobLookupError):  # The scheduler is being stopped.
                job.modify(next_run_time=wanted)

    def _tick(self, loop: Loop) -> object:
        began, report, failed = perf_counter(), None, True
        try:
            report, failed = loop.tick(), False
            return report
        finally:
            if self._observer is not None:
                self._observer.ticked(loop.name, perf_counter() - began, report, failed=failed)

    def stop(self, patience: timedelta) -> bool:
        """Wait for running ticks for up to ``patience``; False if some did not end.

        APScheduler itself must not wait: it would hold its locks meanwhile, and a tick asks it for its job at the end.
        """
        self._stopping.set()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        with self._idle:
            is_idle = self._idle.wait_for(lambda: not self._ticking, patience.total_seconds())
            late = sorted(self._ticking)
        if not is_idle:
            _log.warning("loops_not_drained", loops=late, patience_s=patience.total_seconds())
        return is_idle


def _ahead() -> float:
    """Return the lead of this machine's clock over a monotonic clock, in seconds."""
    return _now().timestamp() - monotonic()


def _now() -> datetime:
    """Return this machine's time, by which APScheduler plans; it is never stored."""
    from datetime import UTC

    return datetime.now(UTC)  # noqa: TID251
