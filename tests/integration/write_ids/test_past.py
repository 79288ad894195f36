"""Tables as of an instant: what a reader saw then is what is told later, however much has been forgotten meanwhile."""

import random
import threading
from contextlib import closing
from datetime import timedelta
from functools import partial

import psycopg2
import pytest

from metastore.catalog.store import acid_history
from metastore.config import TxnSettings
from metastore.errors import InvalidOperationError
from metastore.ids import table_name
from metastore.write_ids.time_travel import store as past_store
from metastore.write_ids.time_travel.store import delete_times
from tests.support.transactions import Transactions

NAME = table_name("db", "t")


@pytest.fixture
def now(t, test_clock):
    """Return a function for the metastore's time, after all that was done before and before all that is done after."""
    def tell():
        test_clock.advance(timedelta(seconds=1))
        [(at,)] = t.rows("SELECT date_trunc('milliseconds', metastore_now())")
        test_clock.advance(timedelta(seconds=1))
        return at
    return tell


def at(t, instant):
    return t.write_ids.valid_write_ids_at(NAME, instant)


def test_what_was_seen_then_is_told_later(t, now):
    """Random lives of transactions, readers and house-keeping between them."""
    story = random.Random(20261121)
    opened, committed, seen = {}, set(), []
    first = t.open()
    t.allocate("db.t", first)
    opened[first] = 1
    for _ in range(120):
        turn = story.random()
        if turn < 0.4 or not opened:
            txn_id = t.open()
            t.allocate("db.t", txn_id)
            opened[txn_id] = t.rows("SELECT write_id FROM txn_write_ids WHERE txn_id = %s", txn_id)[0][0]
        elif turn < 0.75:
            txn_id = story.choice(sorted(opened)[:3])
            t.commit(txn_id)
            committed.add(opened.pop(txn_id))
        elif turn < 0.82:
            txn_id = min(opened)
            t.abort(txn_id)
            opened.pop(txn_id)
        elif turn < 0.9:
            t.reaper.tick()
        else:
            seen.append((now(), set(committed)))
    t.reaper.tick()
    seen.append((now(), set(committed)))
    assert t.count("write_id_times") > 0
    assert len(committed) > 20
    for instant, then in seen:
        told = at(t, instant)
        assert {one for one in committed if told.is_valid(one)} == then
        assert not any(told.is_valid(one) for one in opened.values())


def test_what_was_committed_later_counts_as_open(t, now):
    early, late = t.open(), t.open()
    t.allocate("db.t", early, late)
    t.commit(late)
    between = now()
    t.commit(early)
    for _ in range(2):
        told = at(t, between)
        assert (told.high_watermark, told.invalid, told.min_open_write_id) == (2, (1,), 1)
        assert told.aborted == frozenset()
        t.reaper.tick()
    assert t.count("txn_write_ids") == 0
    assert at(t, now()).invalid == ()


def test_before_the_first_commit_on_record_it_is_refused(t, now):
    before = now()
    for _ in range(3):
        txn_id = t.open()
        t.allocate("db.t", txn_id)
        t.commit(txn_id)
        t.purges.purge_write_ids()
        after = now()
    assert at(t, after).high_watermark == 3
    with pytest.raises(InvalidOperationError, match="not on record"):
        at(t, before)
    with pytest.raises(InvalidOperationError, match="still to come"):
        at(t, after + timedelta(hours=1))


@pytest.mark.parametrize("settings", [TxnSettings(past_count=1), TxnSettings(past_retention=timedelta(seconds=3))],
                         ids=["by number", "by age"])
def test_what_is_forgotten_is_refused(t, now, settings):
    instants = []
    for _ in range(3):
        txn_id = t.open()
        t.allocate("db.t", txn_id)
        t.commit(txn_id)
        t.purges.purge_write_ids()
        instants.append(now())
    assert [at(t, one).high_watermark for one in instants] == [1, 2, 3]

    assert Transactions(t.db, settings).purges.purge_times() == 2

    with pytest.raises(InvalidOperationError, match="not on record"):
        at(t, instants[0])
    assert [at(t, one).high_watermark for one in instants[1:]] == [2, 3]
    assert t.count("write_id_times") == 1


def test_many_times_are_forgotten_in_batches_the_oldest_first(t, monkeypatch):
    """Of eleven rows of three commits each, as many stay as hold the newest ten commits."""
    monkeypatch.setattr(past_store, "BATCH", 2)
    monkeypatch.setattr(past_store, "delete_times", partial(delete_times, limit=2))
    t.rows("""INSERT INTO write_id_times (catalog, db, "table", write_ids, committed_at, latest)
              SELECT 'hive', 'db', 't', ARRAY[n, n + 1, n + 2], array_fill(at, ARRAY[3]), at
              FROM generate_series(1, 31, 3) AS n, LATERAL (SELECT metastore_now() + n * interval '1 s' AS at) AS i
              RETURNING 1""")

    assert Transactions(t.db, TxnSettings(past_count=10)).purges.purge_times() == 24
    assert t.rows("SELECT write_ids[1] FROM write_id_times ORDER BY 1") == [(25,), (28,), (31,)]


def test_a_commit_that_is_under_way_is_waited_for(t, database_url):
    """It is dated when it began, and seen when it ends."""
    txn_id = t.open()
    t.allocate("db.t", txn_id)
    with closing(psycopg2.connect(database_url, application_name="metastore")) as slow, slow.cursor() as cursor:
        cursor.execute("UPDATE txns SET state = 'committed', ended_at = metastore_now(), commit_id = 1 WHERE id = %s",
                       (txn_id,))
        [(instant,)] = t.rows("SELECT date_trunc('milliseconds', metastore_now())")
        timer = threading.Timer(0.3, slow.commit)
        timer.start()
        told = at(t, instant)
        timer.join()
    assert told.high_watermark == 1


def test_times_follow_the_table_and_go_with_it(t, now):
    txn_id = t.open()
    t.allocate("db.t", txn_id)
    before = now()
    t.commit(txn_id)
    t.purges.purge_write_ids()
    new = table_name("db", "u")
    with t.db.begin() as pg:
        acid_history.rename_table_history(pg, NAME, new)
    assert t.write_ids.valid_write_ids_at(new, before).high_watermark == 0
    with t.db.begin() as pg:
        acid_history.delete_table_history(pg, new)
    assert t.count("write_id_times") == 0
    with t.db.begin() as pg:
        assert delete_times(pg, pg.now, 1) == (0, 0)
