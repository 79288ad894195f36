"""Several candidates of a round at a time."""

from threading import Barrier, Event

import pytest

from metastore.errors import InvalidRequestError, UnavailableError
from metastore.loops.parallel import in_parallel

LONG = 60


@pytest.mark.parametrize("threads", [1, 3])
def test_the_results_are_in_the_order_of_the_items(threads):
    assert in_parallel(lambda item: item * 10, range(20), threads, Event()) == [item * 10 for item in range(20)]


def test_as_many_as_there_are_threads_work_at_a_time():
    together = Barrier(3)
    in_parallel(lambda _: together.wait(LONG), range(6), 3, Event())


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_does_not_stop_the_others(threads):
    done = []

    def work(item):
        if item == 1:
            raise InvalidRequestError("one")
        done.append(item)

    with pytest.raises(InvalidRequestError, match="one"):
        in_parallel(work, range(6), threads, Event())
    assert sorted(done) == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("threads", [1, 3])
def test_nothing_more_is_begun_without_a_database_or_when_it_is_to_stop(threads):
    begun, stopping = [], Event()

    def unavailable(item):
        begun.append(item)
        raise UnavailableError("no database")

    with pytest.raises(UnavailableError):
        in_parallel(unavailable, range(1000), threads, Event())
    assert len(begun) <= threads

    begun.clear()
    assert in_parallel(lambda item: begun.append(item) or stopping.set(), range(1000), threads, stopping) == [None] * len(begun)
    assert 1 <= len(begun) <= threads
