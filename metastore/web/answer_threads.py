"""Threads that answer requests of an event loop.

Rule: a bounded number, made when they are needed, and they end with the process: a call that hangs does not keep the
process from stopping. (The pool of ``concurrent.futures`` would wait for it.)
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class AnswerThreads:
    """The threads of one loop, which is their only caller."""

    def __init__(self, name: str, most: int, loop: asyncio.AbstractEventLoop) -> None:
        self._name, self._most, self._loop = name, most, loop
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._running = self._threads = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` on a thread and return its result. Raises: its errors."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._running += 1
        if self._threads < min(self._running, self._most):
            self._threads += 1
            threading.Thread(target=self._run, name=f"{self._name}-{self._threads}", daemon=True).start()

        def step() -> None:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - it is the asker's
                self._tell(done, error=error)
            else:
                self._tell(done, result)

        self._work.put(step)
        return await done

    def stop(self) -> None:
        """End the threads, each after its present work."""
        for _ in range(self._threads):
            self._work.put(None)

    def _run(self) -> None:
        while (step := self._work.get()) is not None:
            step()
            del step  # Otherwise its answer would stay until the next one comes.

    def _tell(self, done: "asyncio.Future[T]", result: T | None = None, error: BaseException | None = None) -> None:
        def tell() -> None:
            self._running -= 1
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        with suppress(RuntimeError):  # The loop has ended, with all its callers.
            self._loop.call_soon_threadsafe(tell)
