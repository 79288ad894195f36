"""What a call costs does not grow with what is finished: pages that its statements touch, as PostgreSQL counts them."""

import psycopg2
import pytest

from metastore.db.engine import Database, PgTx
from metastore.db.sessions import PLANNING
from metastore.locks.rules import LockType
from metastore.txns.commit import store as commit_store
from metastore.txns.core.rules import Operation
from tests.support.answers import shown_locks, shown_txns

FINISHED = 5000
MORE = 12
"""Pages that a taller index and another page of the same few rows may cost; thousands hold what is finished."""

FILLED = """
INSERT INTO txns (id, state, type, "user", host, started_at, last_heartbeat_at, ended_at, commit_id)
SELECT n, 'committed', 0, 'ann', 'h1', metastore_now(), metastore_now(), metastore_now(), n
FROM generate_series(10, %(last)s) AS n;
INSERT INTO txn_write_ids SELECT n, 'hive', 'db', 't', n FROM generate_series(10, %(last)s) AS n;
INSERT INTO write_sets SELECT n, n, 'hive', 'db', 't', 'p=' || n, 'u', false FROM generate_series(10, %(last)s) AS n;
INSERT INTO completed_txn_components
SELECT n, 'hive', 'db', 't', 'p=' || n, n, true, metastore_now() FROM generate_series(10, %(last)s) AS n;
INSERT INTO txn_history (txn_id, state, type, "user", host, agent_info, started_at, last_heartbeat_at, heartbeat_count,
                         longest_gap, ended_at)
SELECT n, 'aborted', 0, 'ann', 'h1', '', metastore_now(), metastore_now(), 0, '0', metastore_now()
FROM generate_series(10, %(last)s) AS n;
UPDATE next_write_ids SET next_write_id = %(last)s + 1;
UPDATE txn_counter SET next_txn_id = %(last)s + 1, reserved_until = %(last)s + 10000
"""


@pytest.fixture(autouse=True)
def no_leftovers(t):
    """Rows that earlier tests removed lie in the pages until a VACUUM, and a planner that looks for the largest id
    walks over them."""
    t.db.once("VACUUM")


@pytest.fixture
def pages(t, monkeypatch):
    """``pages(call)``: how many pages the statements of the call touch, when they are run again and undone."""
    sent = []
    once, binary, sql = Database.once, Database.binary, PgTx.sql
    monkeypatch.setattr(Database, "once", lambda self, query, parameters=None, **more: (
        more.get("in_binary") or sent.append((query, parameters)), once(self, query, parameters, **more))[1])
    monkeypatch.setattr(Database, "binary", lambda self, query, parameters=None: (
        sent.append((query, parameters)), binary(self, query, parameters))[1])
    monkeypatch.setattr(PgTx, "sql", lambda self, query, parameters=None: (
        sent.append((query, parameters)), sql(self, query, parameters))[1])

    def count(call):
        sent.clear()
        call()
        return sum(touched(t.db.url, query, parameters) for query, parameters in list(sent))
    return count


def touched(url, query, parameters):
    connection = psycopg2.connect(url)
    cursor = connection.cursor()
    total = 0
    try:
        for name, value in PLANNING.items():
            cursor.execute(f"SET {name} = {value}")
        statements = [(None, query)] if isinstance(query, str) else [
            (one.prepare, one.execute) for one in query.statements]
        for prepare, execute in statements:
            if prepare:
                cursor.execute(prepare, parameters)
            for _ in range(2):   # once for the catalogue's own pages
                cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + execute, parameters)
                [[[told]]] = cursor.fetchall()
            total += told["Plan"]["Shared Hit Blocks"] + told["Plan"]["Shared Read Blocks"]
    finally:
        connection.rollback()
        connection.close()
    return total


def costs(t, pages):
    """Pages by call, of one writer that is open."""
    txn_id = t.write("db.t", Operation.UPDATE)

    def ready():
        with t.db.begin() as pg:
            commit_store.lock_for_commit(pg, [txn_id], [])

    found = {
        "get_open_txns": pages(t.txns.get_open_txns),
        "get_open_txns_info": pages(lambda: shown_txns(t.txns)),
        "get_valid_write_ids": pages(lambda: t.reads("db.t")),
        "get_valid_write_ids of a list": pages(lambda: t.reads("db.t", f"{txn_id}:{txn_id}:{txn_id}:")),
        "show_locks": pages(lambda: shown_locks(t.locks, dbname="db", tablename="t")),
        "get_latest_txnid_in_conflict": pages(lambda: t.txns.get_latest_txnid_in_conflict(txn_id)),
        "heartbeat": pages(lambda: t.heartbeat(txn_id)),
        "commit_txn, what it reads": pages(ready),
    }
    t.abort(txn_id)
    return found


def test_no_call_touches_more_pages_behind_many_finished_transactions(t, pages):
    """A reader is open all the time, so that nothing of them may be removed."""
    t.open()
    before = costs(t, pages)
    t.rows(FILLED.replace("%(last)s", str(10 + FINISHED)) + " RETURNING 1")
    t.db.once("ANALYZE")

    after = costs(t, pages)

    assert min(before.values()) > 0, before
    assert {name: (before[name], count) for name, count in after.items() if count > before[name] + MORE} == {}


FETCHED = """
SELECT sum(pg_stat_get_blocks_fetched(oid)) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"""


@pytest.fixture
def fetched(t):
    """``fetched(call)``: how many pages of tables and indexes a call looks at, what it changes included."""
    def total():
        t.db.once("SELECT pg_stat_force_next_flush()")
        [(pages,)] = t.db.once(FETCHED)
        return int(pages)

    def count(call):
        before = total()
        call()
        return total() - before
    return count


def writers(t, fetched):
    """Pages by call, of a writer that goes all the way, and of one that gives up."""
    found, ids = {}, []
    found["open_txns"] = fetched(lambda: ids.extend(t.open(2)))
    first, second = ids
    found["allocate_table_write_ids"] = fetched(lambda: t.allocate("db.t", first))
    found["lock"] = fetched(lambda: t.lock(first, "db.t", Operation.UPDATE, dynamic=True))
    held = t.lock(second, "db.t/p=7", Operation.INSERT, LockType.SHARED_READ)
    found["check_lock"] = fetched(lambda: t.locks.check_lock([held]))
    found["add_dynamic_partitions"] = fetched(lambda: t.partitions(first, "db.t", "p=7", "p=8"))
    found["heartbeat_txn_range"] = fetched(lambda: t.txns.heartbeat_txn_range([(first, second)]))
    found["commit_txn"] = fetched(lambda: t.commit(first))
    found["commit_txn again"] = fetched(lambda: t.commit(first))
    found["abort_txn"] = fetched(lambda: t.abort(second))
    lock_ids = []
    found["lock without a transaction"] = fetched(lambda: lock_ids.append(
        t.lock(0, "db.u", Operation.INSERT, LockType.EXCLUSIVE)))
    found["unlock"] = fetched(lambda: t.locks.unlock(lock_ids))
    return found


def test_no_writer_does_either(t, fetched):
    """The same for the calls that change something; the least of three rounds, since the first plans its statements."""
    t.open()
    t.allocate("db.t", t.open())

    def least():
        rounds = [writers(t, fetched) for _ in range(3)]
        return {name: min(one[name] for one in rounds) for name in rounds[0]}

    before = least()
    t.rows("UPDATE txn_counter SET next_txn_id = 100, reserved_until = 10000 RETURNING 1")
    t.rows(FILLED.replace("generate_series(10,", "generate_series(100,").replace("%(last)s", str(100 + FINISHED))
           + " RETURNING 1")
    t.db.once("ANALYZE")

    after = least()

    assert min(before.values()) > 0, before
    assert {name: (before[name], count) for name, count in after.items() if count > before[name] + 3 * MORE} == {}
