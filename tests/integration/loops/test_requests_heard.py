"""Idle Workers hear of a request when it is queued, by whichever process."""

import select
from threading import Event

import pytest

from metastore.compaction.queue.rules.requests import CHANNEL
from metastore.db.listener import Listener
from metastore.loops.requests_heard import RequestsHeard


class Woken:
    """What listens, and how often it has woken somebody."""

    def __init__(self, url: str) -> None:
        self.bell = Event()
        self.heard = RequestsHeard(url, self.bell.set)
        self.heard.start()

    def hears(self) -> bool:
        woken = self.bell.wait(60)
        self.bell.clear()
        return woken


@pytest.fixture
def woken(lake):
    made = Woken(lake.db.url)
    assert made.hears(), "what was queued before it listened is looked for once it does"
    yield made
    made.heard.stop()
    assert not made.heard._thread.is_alive()


def test_each_request_is_said_once_and_one_that_is_refused_is_not(lake):
    listener = Listener(lake.db.url, CHANNEL)
    listener.connect()
    for name in "tu":
        lake.table(name)
        lake.insert(f"d.{name}", times=2)

    assert [lake.request(what=what).accepted for what in ("d.t", "d.t", "d.u")] == [True, False, True]

    lake.db.once(f"SELECT pg_notify('{CHANNEL}', 'last')")
    heard = []
    while "last" not in heard:
        assert select.select([listener], [], [], 60)[0]
        heard += listener.heard()
    listener.close()
    assert heard == ["", "", "last"]


def test_what_the_initiator_queues_is_heard(new_lake):
    lake = new_lake(delta_num_threshold=2)
    woken = Woken(lake.db.url)
    assert woken.hears()
    lake.table()
    lake.insert(times=4)

    assert lake.initiator().tick().queued
    assert woken.hears()
    woken.heard.stop()


def test_after_an_absence_of_the_database_there_is_a_look(lake, woken):
    """What was said meanwhile is lost."""
    lake.db.once("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                 " WHERE application_name LIKE 'metastore listener%' AND datname = current_database()")

    assert woken.hears()
    lake.table()
    lake.insert(times=2)
    assert lake.request().accepted
    assert woken.hears()
