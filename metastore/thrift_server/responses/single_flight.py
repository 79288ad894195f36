"""Lists that several clients ask for at the same time are read once.

Rule: no client gets an answer that is older than its question. A client that asks while a list is being read waits for
the next reading of it, together with all others that do.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class _SharedQuestion(Generic[T]):
    """One question: the next reading, if any, the number of its waiters, and the lock of the present reader."""

    def __init__(self) -> None:
        self.next: Future[T] | None = None
        self.waiting = 0
        self.running = Lock()


class SingleFlight(Generic[T]):
    """Answers to equal questions, shared; on any thread that may block."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._questions: WeakValueDictionary[Hashable, _SharedQuestion[T]] = WeakValueDictionary()

    def answer(self, question: Hashable, ask: Callable[[int], T]) -> T:
        """Return the answer of an ``ask`` for this question that begins from now on. Raises: its errors.

        ``ask`` gets the number of callers that share its answer.
        """
        with self._lock:
            asked = self._questions.setdefault(question, _SharedQuestion())
            reading, leads = asked.next or Future[T](), asked.next is None
            asked.next = reading
            asked.waiting += 1
        if leads:
            with asked.running:
                with self._lock:
                    asked.next, waiting, asked.waiting = None, asked.waiting, 0
                try:
                    reading.set_result(ask(waiting))
                except BaseException as error:  # noqa: BLE001 - those who wait get it as well
                    reading.set_exception(error)
        return reading.result()
