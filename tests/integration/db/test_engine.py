"""One PostgreSQL transaction at a time, and what callers are told when PostgreSQL fails them."""

import os
import signal
import threading
from contextlib import closing
from datetime import UTC

import psycopg2
import pytest

from metastore.db.engine import Database
from metastore.errors import ConflictRetryError, MetastoreError, OutcomeUnknownError, UnavailableError


@pytest.fixture
def notes(database):
    database.once("CREATE TABLE notes (n int UNIQUE)")
    return database


def saved(database):
    return [n for (n,) in database.once("SELECT n FROM notes ORDER BY n")]


def backends(database):
    return [pid for (pid,) in database.once(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'metastore' AND datname = current_database() "
        "AND pid <> pg_backend_pid()")]


def end_backends(database, pids=None):
    """Cut the pool's connections from outside, as a restart does."""
    with closing(psycopg2.connect(database.url)) as session, session.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'metastore' "
                       "AND datname = current_database()")
        return cursor.fetchall()


def test_a_block_is_committed_whole(notes):
    with notes.begin() as pg:
        pg.sql("INSERT INTO notes VALUES (%s)", [1])
        assert pg.rowcount == 1
        assert pg.sql("INSERT INTO notes VALUES (2) RETURNING n") == [(2,)]

    assert saved(notes) == [1, 2]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_block_that_raises_is_undone(notes, error):
    with pytest.raises(error), notes.begin() as pg:
        pg.sql("INSERT INTO notes VALUES (1)")
        raise error

    assert saved(notes) == []


def test_several_statements_in_one_go_are_one_transaction(notes):
    with pytest.raises(psycopg2.errors.UniqueViolation):
        notes.once("INSERT INTO notes VALUES (1); INSERT INTO notes VALUES (1)")

    assert saved(notes) == []
    assert notes.once("INSERT INTO notes VALUES (1); SELECT 7") == [(7,)]
    assert saved(notes) == [1]


@pytest.mark.parametrize(("durable", "setting"), [(True, "on"), (False, "off")])
def test_who_waits_for_the_disk(database, durable, setting):
    assert database.once("SELECT current_setting('synchronous_commit')", durable=durable) == [(setting,)]
    with database.begin(durable=durable) as pg:
        assert pg.sql("SHOW synchronous_commit") == [(setting,)]
    assert database.once("SHOW synchronous_commit") == [("on",)]


def test_one_instant_for_the_whole_transaction(database):
    with database.begin() as pg:
        first = pg.now
        pg.sql("SELECT pg_sleep(0.01)")
        assert pg.sql("SELECT metastore_now()") == [(first,)]
    assert first.utcoffset() == UTC.utcoffset(None)


@pytest.mark.parametrize("second", [lambda database: database.begin().__enter__(), lambda database: database.once("SELECT 1")],
                         ids=["begin", "once"])
def test_a_thread_never_holds_two_connections(database, second):
    with database.begin(), pytest.raises(RuntimeError, match="pass its PgTx down"):
        second(database)
    assert database.pool.lent == 0


def test_a_connection_that_was_cut_while_idle_is_not_noticed(notes):
    """After a restart of PostgreSQL the first call works: nothing is sent into a connection that is gone."""
    notes.once("INSERT INTO notes VALUES (1)")
    assert end_backends(notes)

    notes.once("INSERT INTO notes VALUES (2)")
    assert end_backends(notes)
    with notes.begin() as pg:
        pg.sql("INSERT INTO notes VALUES (3)")

    assert saved(notes) == [1, 2, 3]


def test_a_connection_cut_before_commit_means_nothing_was_done(notes):
    with pytest.raises(UnavailableError, match="nothing was changed"), notes.begin() as pg:
        pg.sql("INSERT INTO notes VALUES (1)")
        end_backends(notes)
        pg.sql("INSERT INTO notes VALUES (2)")

    assert saved(notes) == []


def test_a_connection_cut_at_commit_is_an_unknown_outcome(notes):
    with pytest.raises(OutcomeUnknownError, match="complete or absent"), notes.begin() as pg:
        pg.sql("INSERT INTO notes VALUES (1)")
        end_backends(notes)

    assert saved(notes) == []


def test_a_connection_cut_in_a_single_statement_is_an_unknown_outcome(notes):
    """Nobody can tell on which side of its commit the statement was cut, not even when it only slept."""
    failures = []

    def sleep():
        try:
            notes.once("INSERT INTO notes VALUES (1); SELECT pg_sleep(30)")
        except MetastoreError as error:
            failures.append(error)

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    while not notes.once("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"):
        pass
    end_backends(notes)
    sleeper.join(60)

    assert [type(error) for error in failures] == [OutcomeUnknownError]


def test_a_dead_lock_is_a_conflict_to_try_again(notes):
    notes.once("INSERT INTO notes VALUES (1), (2)")
    both = threading.Barrier(2)
    outcomes = []

    def update(first, second):
        try:
            with notes.begin() as pg:
                pg.sql("UPDATE notes SET n = n WHERE n = %s", [first])
                both.wait(60)
                pg.sql("UPDATE notes SET n = n WHERE n = %s", [second])
            outcomes.append(None)
        except ConflictRetryError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=update, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ConflictRetryError", "NoneType"]


def test_a_statement_or_lock_that_takes_too_long_is_refused(database):
    database.once("CREATE TABLE notes (n int)")
    impatient = Database(database.url, pool_size=2, statement_timeout_ms=200)
    with pytest.raises(UnavailableError, match="statement timeout"):
        impatient.once("SELECT pg_sleep(60)")
    impatient.close()

    impatient = Database(database.url, pool_size=2, lock_timeout_ms=50)
    with database.begin() as pg:
        pg.sql("LOCK TABLE notes")
        with pytest.raises(UnavailableError, match="lock timeout"):
            impatient.once("INSERT INTO notes VALUES (1)")
    impatient.once("INSERT INTO notes VALUES (1)")
    impatient.close()


def test_a_pool_that_is_used_up_says_so_and_recovers(database):
    small = Database(database.url, pool_size=1, pool_timeout_s=0.05)
    inside, leave = threading.Event(), threading.Event()

    def occupy():
        with small.begin():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=occupy)
    thread.start()
    assert inside.wait(60)
    with pytest.raises(UnavailableError, match="all 1 database connections were in use"):
        small.once("SELECT 1")
    leave.set()
    thread.join(60)

    assert small.once("SELECT 1") == [(1,)]
    assert small.pool.lent == 0
    small.close()


def test_no_connection_is_lost_by_errors(database):
    for _ in range(30):
        with pytest.raises(psycopg2.Error):
            database.once("SELECT no_such_column")
        with pytest.raises(psycopg2.Error), database.begin() as pg:
            pg.sql("SELECT no_such_column")
    assert database.pool.lent == 0
    assert len(backends(database)) <= 2


def test_an_address_where_nobody_answers(database):
    nowhere = Database("postgresql://u:secret@127.0.0.1:1/x", pool_size=1)
    with pytest.raises(UnavailableError, match="does not answer") as refused:
        nowhere.once("SELECT 1")
    assert "secret" not in str(refused.value)
    assert nowhere.pool.lent == 0


def test_postgres_goes_away_and_returns(own_postgres, own_database):
    """Killed as a machine would lose it: refused meanwhile, working again by itself, and nothing confirmed is lost."""
    own_database.once("INSERT INTO notes VALUES (1)")
    killed = own_postgres.pid
    os.kill(killed, signal.SIGKILL)

    refusals, found = [], None
    while found is None:
        try:
            answer = saved(own_database)  # what the killed server left behind may answer for a moment
            if own_postgres.pid not in {None, killed}:
                found = answer
        except (UnavailableError, OutcomeUnknownError) as error:
            refusals.append(error)
        threading.Event().wait(0.01)

    assert found == [1]
    assert {type(error) for error in refusals[1:]} <= {UnavailableError}
    with own_database.begin() as pg:
        pg.sql("INSERT INTO notes VALUES (2)")
    assert saved(own_database) == [1, 2]


def test_a_binary_answer_is_taken_as_it_comes(database):
    """Beside answers in text, in one transaction, on a connection that has died before, and with what text cannot hold."""
    every = bytes(range(256)) * 3
    query = "SELECT %s::bytea || int8send(-1), 'ä𝄞', NULL::bytea"
    expected = (every + b"\xff" * 8, "ä𝄞".encode(), None)

    assert database.binary(query, (every,)) == expected
    with database.begin(snapshot=True) as pg:
        assert pg.binary(query, (every,)) == expected
        assert pg.sql("SELECT 'ä', '\\x00ff'::bytea::text, 7") == [("ä", "\\x00ff", 7)]
        assert pg.binary("SELECT '\\x01'::bytea") == (b"\x01",)
    assert bytes(database.once("SELECT %s::bytea", (every,))[0][0]) == every
    end_backends(database)
    with database.begin(snapshot=True) as pg:
        assert pg.binary(query, (every,)) == expected
