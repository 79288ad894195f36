"""How many Workers a pool needs."""

from datetime import timedelta

import pytest

from metastore.compaction.queue.rules.scaling import PoolLoad, workers_wanted

HOUR = timedelta(hours=1)


def load(waiting=0, working=0, arrived=0, each_s=None):
    return PoolLoad("default", waiting, working, arrived, each_s)


@pytest.mark.parametrize(("given", "window", "wanted"), [
    (load(), HOUR, 0),
    (load(working=1, arrived=10, each_s=60), HOUR, 1),
    (load(waiting=3), HOUR, 1),
    (load(waiting=3, working=2), HOUR, 2),
    (load(waiting=10, each_s=600), HOUR, 2),
    (load(waiting=2, each_s=600), HOUR, 1),
    (load(waiting=19, working=2, arrived=6, each_s=600), HOUR, 5),
    (load(waiting=1, working=2, arrived=0, each_s=600), HOUR, 1),
    (load(waiting=4, working=1, arrived=12, each_s=600), HOUR, 3),
    (load(working=1, arrived=10, each_s=360), timedelta(minutes=30), 2),
])
def test_workers_wanted(given, window, wanted):
    assert workers_wanted(given, window) == wanted
