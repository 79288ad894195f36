"""No statement of the house-keeping grows with what there is: each looks at a batch, and all of them come to the same end."""

from random import Random

import pytest

from metastore.housekeeping import store as purge_store
from metastore.locks import store as lock_store
from metastore.locks.rules import LockType
from metastore.txns.core.rules import Operation, expiry_cutoffs
from tests.support.transactions import seconds

BATCH = 7
FEW_PAGES = 400
"""That a statement may touch which finds at once that there is nothing."""
BATCH_PAGES = 800
"""That a batch of fifty may touch; to walk through everything would touch thousands."""


@pytest.fixture
def small(monkeypatch):
    """Batches of a few rows; the numbers that each statement removed."""
    removed = []

    def noted(name, count):
        original = getattr(purge_store, name)

        def run(*args, **more):
            answer = original(*args, **more, limit=BATCH)
            removed.append(count(answer))
            return answer
        monkeypatch.setattr(purge_store, name, run)

    noted("delete_duplicate_components", lambda one: one.removed)
    noted("empty_aborted", lambda one: one.removed)
    noted("delete_ended", lambda one: one.removed)
    noted("abort_expired", lambda one: one[0].removed)
    return removed


def written(t, rows):
    """Completed components: (partition, write id, whether it changed rows), the transaction being the write id."""
    for partition, write_id, change in rows:
        t.rows("INSERT INTO completed_txn_components VALUES (%s, 'hive', 'db', 't', %s, %s, %s, metastore_now())"
               " RETURNING 1", write_id, partition, write_id, change)


def left(t):
    return t.rows("SELECT partition, write_id, update_delete FROM completed_txn_components ORDER BY 1, 2")


def newest(rows):
    """Return the rows that one statement over everything would leave."""
    return sorted((partition, write_id, change) for partition, write_id, change in rows if not any(
        other[0] == partition and other[1] > write_id and (other[2] or not change) for other in rows))


@pytest.mark.parametrize("seed", range(6))
def test_duplicates_go_in_batches_as_they_would_at_once(t, small, seed):
    """Partitions of one row and of ten batches, in any order."""
    random = Random(seed)
    rows = [(f"p={random.choice((1, 1, 1, 2, 3, 4, number))}", number, random.random() < 0.3) for number in range(1001, 1150)]
    random.shuffle(rows)
    written(t, rows)
    t.open()

    count = t.purges.purge_duplicates()

    assert left(t) == newest(rows)
    assert count == len(rows) - len(newest(rows)) == sum(small)
    assert max(small) <= BATCH


def test_what_clients_without_write_ids_wrote_is_told_by_their_latest(t, small):
    """As Hive 2 does, and whoever takes a lock and commits; beside such a row one with a write id stays."""
    transactions = [(1001, False), (1002, True), (1003, False), (1004, False)]
    for txn_id, change in transactions:
        t.rows("INSERT INTO completed_txn_components VALUES (%s, 'hive', 'db', 't', '', NULL, %s, metastore_now())"
               " RETURNING 1", txn_id, change)
    written(t, [("", 1005, False), ("", 1007, False)])
    t.open()
    assert t.purges.purge_duplicates() == 3
    assert t.rows("SELECT txn_id, write_id FROM completed_txn_components ORDER BY txn_id") == [
        (1002, None), (1004, None), (1007, 1007)]


def test_what_a_reader_may_still_need_stays_and_holds_up_nobody(t, small):
    """More than a batch of one partition that is not settled: the walk goes on behind it."""
    t.open()
    writers = t.open(3 * BATCH)
    t.commit(*writers)
    t.rows("UPDATE txns SET commit_id = 1000 WHERE state = 'committed' RETURNING 1")
    written(t, [("p=1", txn_id, False) for txn_id in writers])
    old = [("p=2", -number, False) for number in range(1, 3 * BATCH)]
    written(t, old)

    assert t.purges.purge_duplicates() == len(old) - 1
    assert len(left(t)) == 3 * BATCH + 1


def test_ids_are_walked_in_batches(t, small, test_clock):
    aborted = t.open(5 * BATCH)
    kept = aborted[2 * BATCH:4 * BATCH]
    for txn_id in kept:
        t.lock(txn_id, "db.t", Operation.INSERT, LockType.SHARED_READ)
    t.txns.abort_txns([[]])
    test_clock.advance(seconds(301))

    assert t.purges.expire_txns().ended == len(aborted)
    assert t.purges.empty_aborted() == len(aborted) - len(kept)
    assert max(small) <= BATCH
    assert t.rows("SELECT id FROM txns WHERE NOT emptied ORDER BY id") == [(one,) for one in kept]


def test_locks_are_walked_in_batches(t, test_clock):
    stale = [t.lock(0, f"db.t{number}", Operation.INSERT, LockType.SHARED_READ) for number in range(3 * BATCH)]
    test_clock.advance(seconds(301))
    t.heartbeat(lock_id=stale[BATCH + 1])
    removed, after = 0, 0
    while after is not None:
        with t.db.begin() as pg:
            count, after, _ = lock_store.delete_expired(pg, pg.now - seconds(300), after, BATCH)
        assert count <= BATCH
        removed += count

    assert removed == len(stale) - 1
    assert t.rows("SELECT ext_id FROM locks") == [(stale[BATCH + 1],)]


IDLE = {
    "delete_write_sets": (FEW_PAGES, purge_store.delete_write_sets),
    "delete_write_ids": (FEW_PAGES, purge_store.delete_write_ids),
    "empty_aborted": (BATCH_PAGES, lambda pg: purge_store.empty_aborted(pg, 0, 50)),
    "abort_expired": (BATCH_PAGES, lambda pg: purge_store.abort_expired(
        pg, expiry_cutoffs(pg.now, seconds(300), seconds(300)), 0, 50)),
    "delete_duplicate_components": (BATCH_PAGES, lambda pg: purge_store.delete_duplicate_components(
        pg, purge_store.FIRST_ENTITY, beyond=False, limit=50)),
}


@pytest.mark.parametrize("name", IDLE)
def test_what_is_held_back_costs_no_more_than_a_batch(t, name):
    """A reader is open, and 5,000 transactions committed or aborted since: none may go, and at most a batch is looked at."""
    most, look = IDLE[name]
    t.open()
    t.rows("""
        INSERT INTO txns (id, state, type, "user", host, started_at, last_heartbeat_at, ended_at, commit_id)
        SELECT n, CASE n %% 2 WHEN 0 THEN 'committed' ELSE 'aborted' END, 0, 'a', 'h', metastore_now(), metastore_now(),
               metastore_now(), n + 1 FROM generate_series(2, 5001) AS n;
        INSERT INTO txn_write_ids SELECT n, 'hive', 'db', 't' || n %% 10, n FROM generate_series(2, 5001) AS n;
        INSERT INTO write_sets SELECT n, n + 1, 'hive', 'db', 't', 'p=' || n, 'u', false
        FROM generate_series(2, 5001) AS n;
        INSERT INTO txn_components SELECT n, 'hive', 'db', 't', 'p=' || n %% 10, 'i', n
        FROM generate_series(3, 5001, 2) AS n;
        INSERT INTO completed_txn_components
        SELECT n, 'hive', 'db', 't', 'p=' || n %% 10, n, false, metastore_now() FROM generate_series(2, 5001, 2) AS n
        RETURNING 1""")
    t.db.once("VACUUM ANALYZE txns, txn_write_ids, write_sets, txn_components, completed_txn_components")
    with t.db.begin() as pg:
        [(before,)] = pg.sql(TOUCHED)
        look(pg)
        [(after,)] = pg.sql(TOUCHED)

    assert after - before < most


TOUCHED = """
SELECT sum(pg_stat_get_xact_blocks_fetched(oid)) FROM pg_class WHERE relnamespace = 'public'::regnamespace"""
