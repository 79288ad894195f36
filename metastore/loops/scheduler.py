"""When the loops run: intervals, one run of a loop at a time, leadership, stopping.

Rule: a loop is a ``tick()``; only this module waits. Loops that need one runner in the cluster ask the leader lock
before each tick. That saves duplicate work and is never relied upon: every tick is safe beside another one.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Thread
from time import perf_counter
from typing import Protocol

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from metastore.telemetry.logs import get_logger

_JITTER = 0.1
_SHORTEST = timedelta(seconds=1)
"""Between ticks that are wanted before their time."""
_log = get_logger(__name__)


class Leader(Protocol):
    """Who runs the cluster's loops."""

    def is_leader(self) -> bool:
        """Whether this process does, as far as it can tell now; never raises."""


class Observer(Protocol):
    """Who wants to know what the loops do."""

    def ticked(self, loop: str, seconds: float, report: object, *, failed: bool) -> None:
        """A tick has ended; ``report``: what it returned."""


@dataclass(frozen=True)
class Loop:
    """A tick and how often. ``everywhere``: needs no leader. ``busy``: whether to go on at once after such a report.

    ``sooner``: how soon the next tick is wanted after such a report, where that is before its time; None: it is not.
    """

    name: str
    tick: Callable[[], object]
    interval: timedelta
    everywhere: bool = False
    start_after: timedelta = timedelta(0)
    busy: Callable[[object], bool] = field(default=lambda _report: False)
    sooner: Callable[[object], timedelta | None] = field(default=lambda _report: None)


class Scheduler:
    """Runs loops until it is stopped."""

    def __init__(self, loops: Sequence[Loop], leader: Leader, stopping: Event,
                 observer: Observer | None = None) -> None:
        """``stopping``: the event that ticks look at; ``stop`` sets it. ``observer`` is told of every tick."""
        self._loops = loops
        self._observer = observer
        self._leader = leader
        self._stopping = stopping
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(max(len(loops), 1))},
            job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None}, timezone="UTC")

    def start(self) -> None:
        """Start every loop, each a little apart from the others."""
        for loop in self._loops:
            seconds = max(loop.interval.total_seconds(), 0.1)
            self._scheduler.add_job(
                self.run, "interval", [loop], seconds=seconds, jitter=seconds * _JITTER, id=loop.name,
                next_run_time=_now() + loop.start_after)
        self._scheduler.start()
        _log.info("loops.started", loops=[loop.name for loop in self._loops], pid=os.getpid())

    def run(self, loop: Loop) -> None:
        """Run one loop now: while it has more to do, and unless another process leads."""
        try:
            while not self._stopping.is_set() and (loop.everywhere or self._leader.is_leader()):
                report = self._tick(loop)
                if not loop.busy(report):
                    self._hasten(loop, loop.sooner(report))
                    break
        except Exception:  # noqa: BLE001 - a loop must outlive whatever one tick meets
            # The loop's next tick starts from what the database says; nothing is lost but time.
            _log.exception("loop.failed", loop=loop.name)

    def _hasten(self, loop: Loop, pause: timedelta | None) -> None:
        """Have the next tick of a loop after this pause, if that is sooner than planned."""
        job = self._scheduler.get_job(loop.name)
        if pause is None or job is None:
            return
        wanted = _now() + max(pause, _SHORTEST)
        if job.next_run_time is None or wanted < job.next_run_time:
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
        """Let running ticks end, for so long; False when some did not."""
        self._stopping.set()
        drain = Thread(target=self._scheduler.shutdown, name="loops-drain", daemon=True)
        drain.start()
        drain.join(patience.total_seconds())
        if drain.is_alive():
            _log.warning("loops.not_drained", patience_s=patience.total_seconds())
        return not drain.is_alive()


def _now() -> datetime:
    """APScheduler plans with this machine's clock; nothing that is stored comes from it."""
    from datetime import UTC

    return datetime.now(UTC)  # noqa: TID251
