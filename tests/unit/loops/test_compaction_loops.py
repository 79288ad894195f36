"""Which pools the Workers of a process serve."""

from dataclasses import replace
from datetime import timedelta
from threading import Event
from types import SimpleNamespace

import pytest

from metastore.config import CompactionSettings
from metastore.loops.compaction_loops import compaction_loops
from metastore.loops.worker import WorkOutcome


class Queue:
    """Stands for the service of Workers: who claimed from which pool. A pool that is busy always has a request."""

    def __init__(self, threads: int, pools: tuple[str, ...], busy: tuple[str, ...] = (), **own: int) -> None:
        self.settings = replace(CompactionSettings(), worker_threads=threads, worker_pools=pools, pool_threads=tuple(own.items()))
        self.busy, self.claims, self.noted = busy, [], []

    def claim(self, _worker_id, _version, pool):
        self.claims.append(pool)
        if pool in self.busy:
            raise InterruptedError(pool)

    def note_waiting(self, _reason, pool):
        self.noted.append(pool)


def workers(queue: Queue, missing: str | None = None):
    runner = SimpleNamespace(unavailable=lambda: missing)
    loops = compaction_loops(None, None, queue, None, None, None, None, None, runner, host="h", process=1, version="v",
                             txn_timeout=timedelta(seconds=1), stopping=Event())
    return [loop for loop in loops if loop.name.startswith("worker-")]


@pytest.mark.parametrize(("threads", "pools", "of_each"), [
    (1, (), [[None]]),
    (1, ("a", "b"), [["a", "b"]]),
    (2, ("a", "b", "c"), [["a", "c"], ["b"]]),
    (2, ("a", "b"), [["a"], ["b"]]),
    (3, ("a", "b"), [["a"], ["b"], ["a"]]),
    (0, ("a", "b"), []),
])
def test_every_listed_pool_is_served(threads, pools, of_each):
    queue, served = Queue(threads, pools), []
    for loop in workers(queue):
        assert loop.tick().outcome is WorkOutcome.IDLE
        served.append(queue.claims[:])
        queue.claims.clear()

    assert served == of_each


@pytest.mark.parametrize(("threads", "pools", "own", "of_each", "counted"), [
    (5, (), {"etl": 2, "lab": 1}, [["etl"], ["etl"], ["lab"], [None], [None]], ("etl", "lab", "")),
    (3, ("a", "etl", "b"), {"etl": 2}, [["etl"], ["etl"], ["a", "b"]], ("etl", "a", "b")),
    (2, (), {"etl": 2}, [["etl"], ["etl"]], ("etl",)),
    (2, ("a",), {"etl": 2, "off": 0}, [["a"], ["etl"]], ("a", "etl")),
    (1, (), {"etl": 2, "lab": 1}, [["etl", "lab"]], ("etl", "lab")),
    (0, ("a",), {"etl": 2}, [], ("etl", "a")),
    (0, (), {}, [], ("",)),
], ids=["the rest is the default pool's", "the rest takes turns", "no rest", "too few for all", "too few at all", "none", "nothing is said"])
def test_a_pool_may_have_threads_of_its_own(threads, pools, own, of_each, counted):
    queue, served = Queue(threads, pools, **own), []
    for loop in workers(queue):
        loop.tick()
        served.append(queue.claims[:])
        queue.claims.clear()

    assert served == of_each
    assert queue.settings.served_pools == counted


def test_a_pool_that_is_always_busy_leaves_the_next_its_turn():
    queue = Queue(1, ("a", "b"), busy=("a", "b"))
    [loop] = workers(queue)
    for pool in ("a", "b", "a"):
        with pytest.raises(InterruptedError, match=pool):
            loop.tick()


def test_requests_of_every_pool_learn_why_they_wait():
    queue = Queue(1, ("a", "b"))
    [loop] = workers(queue, missing="no Spark")

    assert loop.tick().outcome is WorkOutcome.UNAVAILABLE
    assert queue.noted == ["a", "b"]
