"""Workers: ordinary calls run on a pool of threads, coalesced calls in fibers on the event loop itself.

Rules: the event loop never waits. A thread of the pool may block. A batch of a lane runs in a `Fiber`, which lends the
loop its thread back whenever it waits for PostgreSQL; so the most frequent calls never change threads, and while one
batch of a lane is in PostgreSQL the lane's later calls gather (ADR 0025).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from select import EPOLLONESHOT, epoll

import structlog
from greenlet import getcurrent

from metastore.db.fibers import Fiber
from metastore.thrift_server.dispatch.call import Call

_log = structlog.get_logger("metastore.server")
Batch = list[Call]
MOST = 1000
"""Calls in a batch."""


class Seats:
    """The limit of calls in progress. A call that waits for files lends its seat to another meanwhile."""

    def __init__(self, count: int, aside: int = 0) -> None:
        """Prepare the seats; ``aside``: most calls that wait for files at a time."""
        self.threads = count + aside
        self._free = threading.Semaphore(count)
        self._local = threading.local()

    def take(self) -> None:
        """Wait for a seat."""
        self._free.acquire()
        self._local.seated = True

    def give(self) -> None:
        """Release the seat for the next call."""
        self._local.seated = False
        self._free.release()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Give up the seat inside the block; do nothing for a thread without one."""
        if not getattr(self._local, "seated", False):
            yield
            return
        self.give()
        try:
            yield
        finally:
            self.take()


class WorkerPool:
    """A pool of threads that run one call each."""

    def __init__(self, seats: Seats, run: Callable[[Call], None], done: Callable[[Call], None]) -> None:
        self._seats = seats
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self.put = self._queue.put
        self._run, self._done = run, done
        self._threads = [
            threading.Thread(target=self._work, name=f"handler-{i}", daemon=True) for i in range(seats.threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> None:
        """Finish queued calls and end; threads that are busy beyond the time-out are left to the process's end."""
        for _ in self._threads:
            self._queue.put(None)
        ends_at = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, ends_at - time.monotonic()))

    def _work(self) -> None:
        while (call := self._queue.get()) is not None:
            self._seats.take()
            self._run(call)
            self._seats.give()
            self._done(call)
            del call  # Otherwise its arguments would stay until this thread has its next call.


class Lane:
    """A group of calls that run together: those that gathered while the previous batch was in work."""

    def __init__(
        self,
        run: Callable[[Batch], None],
        finish: Callable[[Call, object], object],
        done: Callable[[Batch], None],
        wanted: Callable[["Lane"], None],
    ) -> None:
        """Prepare a lane. ``finish``: makes a result the call's reply.

        ``done``: gets calls that have one, or are parked.
        ``wanted`` is called, on any thread, when there is work; the loop then calls `go`.
        """
        self._run, self._finish, self._done, self._wanted = run, finish, done, wanted
        self._queue: deque[Call] = deque()
        self._in_work = False
        self._fiber: PgFiber | None = None

    def put(self, call: Call) -> None:
        """Queue a call for its turn; on any thread."""
        self._queue.append(call)
        self._wanted(self)

    def settle(self, call: Call, result: object) -> None:
        """Answer a parked call; on any thread."""
        self._finish(call, result)
        self._done([call])
        self._wanted(self)

    def go(self, waits: "FiberWaits") -> None:
        """Begin the next batch if it is its turn; return when the batch first waits for PostgreSQL, or is done."""
        if self._queue and not self._in_work:
            self._in_work = True
            if self._fiber is None or self._fiber.dead:
                self._fiber = PgFiber(self._work, waits)
            self._fiber.switch()

    def _work(self) -> None:
        batch = [self._queue.popleft() for _ in range(min(MOST, len(self._queue)))]
        try:
            self._run(batch)
        except Exception:  # noqa: BLE001 - nothing should get here, and the loop serves everybody else
            _log.exception("batch_given_up", calls=len(batch))
        self._in_work = False
        self._done(batch)
        if self._queue:
            self._wanted(self)


class PgFiber(Fiber):
    """A fiber of the loop's thread: each `switch` from there runs it until it waits.

    It is reused, because a new one costs more than the work of a single client.
    """

    def __init__(self, run: Callable[[], None], waits: "FiberWaits") -> None:
        super().__init__(self._again)
        self._work, self._waits, self._loop = run, waits, getcurrent()

    def _again(self) -> None:
        while True:
            self._work()
            self._loop.switch()

    def until(self, fd: int, mask: int, seconds: float | None) -> None:
        """Wait as `Fiber` does."""
        self._waits.add(self, fd, mask, seconds)
        if not self._loop.switch():
            raise TimeoutError(f"no answer within {seconds:g} s")


class FiberWaits:
    """The waits of fibers for file descriptors, on the loop's epoll."""

    def __init__(self, polled: epoll) -> None:
        self._epoll = polled
        self._fibers: dict[int, Fiber] = {}
        self._deadlines: dict[int, float] = {}

    def add(self, fiber: Fiber, fd: int, mask: int, seconds: float | None) -> None:
        """Register the fiber's wait."""
        self._fibers[fd] = fiber
        if seconds is not None:
            self._deadlines[fd] = time.monotonic() + seconds
        try:
            self._epoll.modify(fd, mask | EPOLLONESHOT)
        except FileNotFoundError:
            self._epoll.register(fd, mask | EPOLLONESHOT)

    def end(self, fd: int, *, ready: bool = True) -> None:
        """Continue the fiber that waits for this descriptor, if there is any."""
        fiber = self._fibers.pop(fd, None)
        if fiber is not None:
            self._deadlines.pop(fd, None)
            fiber.switch(ready)

    def sweep(self, now: float) -> None:
        """End the waits that have lasted too long."""
        for fd in [fd for fd, deadline in self._deadlines.items() if deadline <= now]:
            self.end(fd, ready=False)
