"""How often tables are opened: counted by the service, added up over replicas, faded by time."""

from datetime import timedelta
from math import log

import pytest

from metastore.compaction.queue.store.opens import FORGOTTEN_AFTER, HALF_LIFE_OF_OPENS, select_opens
from metastore.ids import table_name
from metastore.write_ids.service import Reading, WriteIdService
from tests.support.transactions import Transactions

NAME = table_name("db", "t")
HOURLY = log(2) / 6


@pytest.fixture
def t(database):
    given = Transactions(database)
    given.allocate("db.t", given.open())
    return given


@pytest.fixture
def opened(t, database):
    """Return a function that opens the table ``times`` times, as readers of a replica, which writes that down."""
    def open_(times, name="db.t"):
        replica = WriteIdService(database)
        for _ in range(times):
            replica.get_valid_write_ids([Reading((name,))])
        replica.note_opens()
    return open_


def hourly(database):
    with database.begin() as pg:
        return select_opens(pg, [NAME])[NAME]


def test_replicas_add_up(opened, database):
    assert hourly(database) == 0
    opened(5)
    opened(3)

    assert hourly(database) == pytest.approx(8 * HOURLY, rel=1e-3)


def test_opens_fade(opened, database, test_clock):
    opened(8)
    test_clock.advance(HALF_LIFE_OF_OPENS)
    assert hourly(database) == pytest.approx(4 * HOURLY, rel=1e-3)
    opened(2)
    assert hourly(database) == pytest.approx(6 * HOURLY, rel=1e-3)
    test_clock.advance(timedelta(days=3650))
    assert hourly(database) == pytest.approx(0)


def test_so_many_an_hour_are_so_many(opened, database, test_clock):
    for _ in range(48):
        test_clock.advance(timedelta(hours=1))
        opened(10)

    assert hourly(database) == pytest.approx(10, rel=0.1)


def test_readers_with_a_snapshot_count_too(t, database):
    service = WriteIdService(database)
    service.get_valid_write_ids([Reading(("db.t", "DB.T"), valid_txns=""), Reading(("db.t",))])

    assert service.opens.taken() == {NAME: 3}


def test_what_is_not_opened_any_more_is_forgotten(t, opened, database, test_clock):
    opened(1)
    test_clock.advance(FORGOTTEN_AFTER + timedelta(seconds=1))
    t.allocate("db.other", t.open())
    opened(1, "db.other")

    assert t.rows('SELECT "table" FROM table_opens') == [("other",)]


def test_names_without_write_ids_leave_no_row(t, opened):
    opened(1, "db.nothing")

    assert t.rows("SELECT count(*) FROM table_opens") == [(0,)]


def test_nothing_counted_is_no_statement():
    WriteIdService(db=None).note_opens()
