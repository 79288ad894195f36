"""When the loops run: intervals, one run of a loop at a time, leadership, stopping.

Rule: a loop is a ``tick()``; only this module waits. Loops that need one runner in the cluster ask the leader lock
before each tick. That saves duplicate work and is never relied upon: every tick is safe beside another one. Each loop
has a thread, which waits on a clock that only goes forward: setting this machine's clock changes nothing (ADR 0041).
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from threading import Event, Thread
from time import monotonic, perf_counter
from typing import Protocol

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
        self._observer = observer
        self._leader = leader
        self._stopping = stopping
        self._random = Random()  # noqa: S311 - so that loops of several servers do not run in step
        self._threads = [Thread(target=self._keep_running, args=[loop], name=f"loop-{loop.name}", daemon=True)
                         for loop in loops]

    def start(self) -> None:
        """Start every loop."""
        for thread in self._threads:
            thread.start()
        _log.info("loops.started", loops=[one.name.removeprefix("loop-") for one in self._threads], pid=os.getpid())

    def _keep_running(self, loop: Loop) -> None:
        """The loop's thread."""
        due = monotonic() + loop.start_after.total_seconds()
        while not self._stopping.wait(max(0.0, due - monotonic())):
            due = monotonic() + self._pause(loop)
            sooner = self.run(loop)
            if sooner is not None:
                due = min(due, monotonic() + max(sooner, _SHORTEST).total_seconds())

    def _pause(self, loop: Loop) -> float:
        return max(loop.interval.total_seconds(), 0.1) * self._random.uniform(1 - _JITTER, 1 + _JITTER)

    def run(self, loop: Loop) -> timedelta | None:
        """Run one loop now, while it has more to do, unless another process leads; how soon it wants to run again."""
        try:
            while not self._stopping.is_set() and (loop.everywhere or self._leader.is_leader()):
                report = self._tick(loop)
                if not loop.busy(report):
                    return loop.sooner(report)
        except Exception:  # noqa: BLE001 - a loop must outlive whatever one tick meets
            # The loop's next tick starts from what the database says; nothing is lost but time.
            _log.exception("loop.failed", loop=loop.name)
        return None

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
        ends_at = monotonic() + patience.total_seconds()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, ends_at - monotonic()))
        late = [thread.name for thread in self._threads if thread.is_alive()]
        if late:
            _log.warning("loops.not_drained", loops=late, patience_s=patience.total_seconds())
        return not late
