"""Lists that several clients ask for at the same time are read once.

Rule: nobody gets an answer that is older than the question. Who asks while a list is being read waits for the next
reading of it, together with all others who do.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class _Route(Generic[T]):
    """One question: the flight that has not begun, if there is any, how many wait for it, and who flies."""

    def __init__(self) -> None:
        self.boarding: Future[T] | None = None
        self.waiting = 0
        self.flying = Lock()


class Flights(Generic[T]):
    """Answers to questions that are equal; on any thread that may block."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._routes: WeakValueDictionary[Hashable, _Route[T]] = WeakValueDictionary()

    def answer(self, question: Hashable, ask: Callable[[int], T]) -> T:
        """The answer of an ``ask`` for this question that begins from now on.  Raises: what that raises.

        ``ask`` is told how many get its answer.
        """
        with self._lock:
            route = self._routes.setdefault(question, _Route())
            flight, leads = route.boarding or Future[T](), route.boarding is None
            route.boarding = flight
            route.waiting += 1
        if leads:
            with route.flying:
                with self._lock:
                    route.boarding, waiting, route.waiting = None, route.waiting, 0
                try:
                    flight.set_result(ask(waiting))
                except BaseException as error:  # noqa: BLE001 - those who wait get it as well
                    flight.set_exception(error)
        return flight.result()
