"""The threads on which handlers run: a pool for ordinary calls, and one thread for each lane of coalesced calls.

Rule: the event loop never waits for a handler, and a lane's batch never waits for another lane. Both hand finished
calls back in the order in which they finish; the loop answers them.
"""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from metastore.thrift_server.call import Call

Batch = list[Call]


class _Threads:
    """Threads that take work from a queue until they are told to stop."""

    def __init__(self, name: str, count: int) -> None:
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self.put = self._queue.put
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{i}" if count > 1 else name, daemon=True)
            for i in range(count)
        ]

    def start(self) -> None:
        """Start working."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> None:
        """Finish what is queued and end; a thread that is busy beyond the time-out is left to the process's end."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout)

    def _work(self) -> None:
        raise NotImplementedError


class Pool(_Threads):
    """Runs one call on one thread."""

    def __init__(self, count: int, run: Callable[[Call], None], done: Callable[[Batch], None]) -> None:
        super().__init__("handler", count)
        self._run, self._done = run, done

    def _work(self) -> None:
        while (call := self._queue.get()) is not None:
            self._run(call)
            self._done([call])


class Lane(_Threads):
    """Runs all calls that gathered while the batch before was running."""

    def __init__(
        self, name: str, most: int, run: Callable[[Batch], None], done: Callable[[Batch], None]
    ) -> None:
        super().__init__(f"lane-{name}", 1)
        self._most, self._run, self._done = most, run, done

    def _work(self) -> None:
        while (call := self._queue.get()) is not None:
            batch, ending = [call], False
            while len(batch) < self._most:
                try:
                    following = self._queue.get_nowait()
                except Empty:
                    break
                if following is None:
                    ending = True
                    break
                batch.append(following)
            self._run(batch)
            self._done(batch)
            if ending:
                return
