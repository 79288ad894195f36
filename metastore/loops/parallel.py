"""Parallel work on the candidates of a round."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

from metastore.errors import UnavailableError

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item], threads: int, stopping: Event) -> list[Result]:
    """Return the results, in the order of the items.

    No item is begun once ``stopping`` is set or a service is unavailable. An error of one item does not stop the
    others; the first is raised when all are done.
    """
    failures: list[Exception] = []

    def done(item: Item) -> list[Result]:
        if stopping.is_set() or any(isinstance(failure, UnavailableError) for failure in failures):
            return []
        try:
            return [work(item)]
        except Exception as error:  # noqa: BLE001 - it is raised below
            failures.append(error)
            return []

    if threads == 1:
        results = [done(item) for item in items]
    else:
        with ThreadPoolExecutor(threads) as pool:
            results = list(pool.map(done, items))
    if failures:
        raise failures[0]
    return [result for some in results for result in some]
