"""When the loops run: intervals, one run of a loop at a time, leadership, stopping.

Rule: a loop is a ``tick()``; only this module waits, and whoever has news for a loop wakes it. Loops that need one
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
"""Between ticks that are wanted before their time."""
_LOOK_AT_CLOCK_S = 1.0
_log = get_logger(__name__)


class Leader(Protocol):
    """Who runs the cluster's loops."""

    def is_leader(self, role: str) -> bool:
        """Return True if this process runs the loop of that name, as far as it can tell now; never raises."""


class Observer(Protocol):
    """Who wants to know what the loops do."""

    def ticked(self, loop: str, seconds: float, report: object, *, failed: bool) -> None:
        """A tick has ended; ``report``: what it returned."""


@dataclass(frozen=True)
class Loop:
    """A tick and how often. ``everywhere``: needs no leader. ``busy``: whether to go on at once after such a report.

    ``sooner``: how soon the next tick is wanted after such a report, where that is before its time; None: it is not.
    ``on_request``: whether there is news for it when a compaction is queued.
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
    """Runs loops until it is stopped."""

    def __init__(
        self, loops: Sequence[Loop], leader: Leader, stopping: Event, observer: Observer | None = None
    ) -> None:
        """``stopping``: the event that ticks look at; ``stop`` sets it. ``observer`` hears of every tick."""
        self._loops = loops
        self._observer = observer
        self._leader = leader
        self._stopping = stopping
        self._idle = Condition()
        self._ticking: set[str] = set()
        self._again: set[str] = set()
        """Loops that have to look once more, because there was news in the middle of their tick."""
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # a tick may take long
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
        """Move what is planned with a clock that is set back; a clock that is set forward only hastens it.

        ``ahead``: of the moment in which the first ticks were planned.
        """
        while not self._stopping.wait(_LOOK_AT_CLOCK_S):
            back = ahead - _ahead()
            ahead -= back
            if back > _LOOK_AT_CLOCK_S:
                self.follow_clock(timedelta(seconds=back))

    def follow_clock(self, back: timedelta) -> None:
        """The clock was set back by so much."""
        _log.warning("loops_clock_set_back", seconds=round(back.total_seconds()))
        for job in self._scheduler.get_jobs():
            with suppress(JobLookupError):  # the scheduler is being stopped
                job.modify(next_run_time=job.next_run_time - back)

    def wake(self, loops: Sequence[Loop]) -> None:
        """There is news for these loops: each looks now, or once more when its tick is over."""
        with self._idle:
            self._again.update(loop.name for loop in loops)
            resting = [loop for loop in loops if loop.name not in self._ticking]
        for loop in resting:
            Thread(target=self.run, args=[loop], name=f"woken-{loop.name}", daemon=True).start()

    def run(self, loop: Loop) -> None:
        """Run one loop now: while it has more to do, and unless another process leads or it is running already."""
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
            # The loop's next tick starts from what the database says; nothing is lost but time.
            _log.exception("loop_failed", loop=loop.name)
        finally:
            with self._idle:
                if not rests:
                    self._ticking.discard(loop.name)
                self._idle.notify_all()

    def _may_rest(self, loop: Loop) -> bool:
        """Whether nobody has woken it since its tick began; if so, it rests from now on, and anybody may run it."""
        with self._idle:
            if loop.name not in self._again:
                self._ticking.discard(loop.name)
            return loop.name not in self._again

    def _hasten(self, loop: Loop, pause: timedelta | None) -> None:
        """Have the next tick of a loop after this pause, if that is sooner than planned."""
        job = self._scheduler.get_job(loop.name)
        if pause is None or job is None:
            return
        wanted = _now() + max(pause, _SHORTEST)
        if job.next_run_time is None or wanted < job.next_run_time:
            with suppress(JobLookupError):  # the scheduler is being stopped
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
        """Let running ticks end, for so long; False when some did not.

        APScheduler does not wait for them: it would hold its locks meanwhile, and a tick's end asks it for its job.
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
    """Return how far this machine's clock is ahead of a clock that only goes forward, in seconds."""
    return _now().timestamp() - monotonic()


def _now() -> datetime:
    """APScheduler plans with this machine's clock; nothing that is stored comes from it."""
    from datetime import UTC

    return datetime.now(UTC)  # noqa: TID251
