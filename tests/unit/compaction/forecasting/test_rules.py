"""Arrival against service rate."""

from datetime import timedelta

import pytest

from metastore.compaction.forecasting.rules import PoolLoad, forecast, workers_wanted

HOUR = timedelta(hours=1)


def load(waiting=0, working=0, arrived=0, each_s=None):
    return PoolLoad("default", waiting, working, None, arrived, 0, each_s)


@pytest.mark.parametrize(("given", "text", "minutes", "wanted"), [
    (load(), "nothing waits", 0, 0),
    (load(working=1, arrived=10, each_s=60), "nothing waits", 0, 1),
    (load(waiting=3), "not known: 3 wait, and none was done in the last 1:00:00", None, 1),
    (load(waiting=3, working=2), "not known: 3 wait, and none was done in the last 1:00:00", None, 2),
    (load(waiting=10, each_s=600), "never: no Worker is at work in the pool; 2 Workers are needed", None, 2),
    (load(waiting=2, each_s=600), "never: no Worker is at work in the pool; 1 Worker is needed", None, 1),
    # 2 Workers do 12 an hour, 6 come: 19 are done in 3 h 10 m.
    (load(waiting=19, working=2, arrived=6, each_s=600), "clears in 3 h 10 m", 190, 5),
    (load(waiting=1, working=2, arrived=0, each_s=600), "clears in 5 m", 5, 1),
    # 1 Worker does 6 an hour, 12 come: 3 would do 18.
    (load(waiting=4, working=1, arrived=12, each_s=600), "never: 2 more Workers are needed", None, 3),
    (load(waiting=4, working=2, arrived=12, each_s=600), "never: 1 more Worker is needed", None, 3),
])
def test_forecast(given, text, minutes, wanted):
    said = forecast(given, HOUR)

    assert (said.text, said.wanted) == (text, wanted)
    assert said.clears_in == (None if minutes is None else timedelta(minutes=minutes))


def test_rates_are_per_hour_whatever_the_window():
    said = forecast(load(waiting=1, working=1, arrived=10, each_s=36), timedelta(minutes=30))

    assert (said.arrivals_per_hour, said.served_per_hour) == (20, 100)
    assert workers_wanted(load(working=1, arrived=10, each_s=360), timedelta(minutes=30)) == 2
