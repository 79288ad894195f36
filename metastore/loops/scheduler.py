"""When the loops run: intervals, one run of a loop at a time, leadership, stopping.

Rule: a loop is a ``tick()``; only this module waits, and whoever has news for a loop wakes it. Loops that need one
runner in the cluster ask for the leadership of the loop before each tick: of servers with different settings each may
lead only what it runs (ADR 122). That saves duplicate work and is never relied upon: every tick is safe beside another.
What is planned is planned by a clock that only goes forward (ADR 0041).
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from threading import Condition, Event, Thread
from time import monotonic, perf_counter
from typing import Protocol

from metastore.telemetry.logs import get_logger

_JITTER = 0.1
_SHORTEST = timedelta(seconds=1)
"""Between ticks that are wanted before their time."""
_SHORTEST_INTERVAL_S = 0.1
_log = get_logger(__name__)


class Leader(Protocol):
    """Who runs the cluster's loops."""

    def is_leader(self, role: str) -> bool:
        """Whether this process runs the loop of that name, as far as it can tell now; never raises."""


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
        self._due: dict[str, float] = {}
        """When each loop ticks next, by the clock that only goes forward."""
        self._random = Random()  # noqa: S311 - it keeps servers apart, and no secret

    def start(self) -> None:
        """Start every loop."""
        now = monotonic()
        self._due = {loop.name: now + loop.start_after.total_seconds() for loop in self._loops}
        Thread(target=self._plan, name="loops-planner", daemon=True).start()
        _log.info("loops_started", loops=[loop.name for loop in self._loops], pid=os.getpid())

    def _plan(self) -> None:
        """Run what is due, each tick in a thread of its own, until the loops are stopped."""
        while not self._stopping.is_set():
            now = monotonic()
            with self._idle:
                due = [loop for loop in self._loops if self._due[loop.name] <= now]
                for loop in due:
                    seconds = max(loop.interval.total_seconds(), _SHORTEST_INTERVAL_S)
                    self._due[loop.name] = now + seconds * self._random.uniform(1 - _JITTER, 1 + _JITTER)
            self._run_apart(due, "loop")
            with self._idle:
                if not self._stopping.is_set():
                    self._idle.wait(max(min(self._due.values(), default=now + 1) - monotonic(), 0))

    def _run_apart(self, loops: Sequence[Loop], why: str) -> None:
        for loop in loops:
            Thread(target=self.run, args=[loop], name=f"{why}-{loop.name}", daemon=True).start()

    def wake(self, loops: Sequence[Loop]) -> None:
        """There is news for these loops: each looks now, or once more when its tick is over."""
        with self._idle:
            self._again.update(loop.name for loop in loops)
            resting = [loop for loop in loops if loop.name not in self._ticking]
        self._run_apart(resting, "woken")

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
        if pause is None:
            return
        wanted = monotonic() + max(pause, _SHORTEST).total_seconds()
        with self._idle:
            if wanted < self._due.get(loop.name, 0):
                self._due[loop.name] = wanted
                self._idle.notify_all()

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
        with self._idle:
            self._idle.notify_all()  # the planner
            is_idle = self._idle.wait_for(lambda: not self._ticking, patience.total_seconds())
            late = sorted(self._ticking)
        if not is_idle:
            _log.warning("loops_not_drained", loops=late, patience_s=patience.total_seconds())
        return is_idle
