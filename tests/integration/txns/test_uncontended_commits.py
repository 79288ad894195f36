"""Commits that are not decided one by one: what is committed that way is exactly what the decision would have come to."""

import random
from concurrent.futures import ThreadPoolExecutor, wait

import psycopg2
import pytest

from metastore.txns.commit import store as commit_store
from metastore.txns.commit.service import CommitRequest
from metastore.txns.core.rules import Operation, TxnType
from tests.support.transactions import EMPTY

I, U, D = Operation.INSERT, Operation.UPDATE, Operation.DELETE
OTHERS = [TxnType.MATER_VIEW_REBUILD, TxnType.SOFT_DELETE, TxnType.REBALANCE_COMPACTION]
OUTCOME = {
    "txns": """SELECT id, state, CASE WHEN id IN (SELECT txn_id FROM completed_txn_components) THEN commit_id END, abort_code, abort_reason FROM txns ORDER BY id""",
    "write_sets": 'SELECT txn_id, commit_id, "table", partition, operation FROM write_sets ORDER BY 1, 3, 4, 5',
    "completed": """SELECT txn_id, "table", partition, write_id, update_delete FROM completed_txn_components
                    ORDER BY 1, 2, 3, 4""",
    "components": 'SELECT txn_id, "table", partition, operation, write_id FROM txn_components ORDER BY 1, 2, 3, 4',
    "locks": "SELECT DISTINCT txn_id FROM locks ORDER BY 1"}


def tried(t, *txn_ids, require_write_ids=True):
    return commit_store.commit_uncontended(t.db, txn_ids, require_write_ids=require_write_ids)


def outcome(t):
    return {name: t.rows(query) for name, query in OUTCOME.items()}


def story(t, seed):
    """Run a random life of a few transactions, ended in batches; return the answers and the outcome that is stored."""
    t.db.once(EMPTY)
    chance = random.Random(seed)
    answers, alive = [], []
    for _ in range(chance.randint(2, 4)):
        alive += [t.open(kind=chance.choice([TxnType.DEFAULT] * 6 + OTHERS))
                  for _ in range(3)]
        for txn_id in chance.sample(alive, chance.randint(1, len(alive))):
            t.write(f"db.{chance.choice('tu')}/p={chance.randint(1, 4)}", chance.choice([I, U, D]), txn_id)
        if chance.random() < 0.3:
            t.abort(chance.choice(alive))
        batch = chance.sample(alive, chance.randint(1, 3))
        answers += t.commits.commit_txn([CommitRequest(one, chance.choice([None, True, False])) for one in batch])
        alive = [one for one in alive if t.state(one) == "open"]
    return [str(one) for one in answers], outcome(t)


def test_the_decision_would_have_come_to_the_same(t, monkeypatch):
    original, ways = commit_store.commit_uncontended, set()
    for seed in range(40):
        monkeypatch.setattr(commit_store, "commit_uncontended", lambda *args, **more: (
            done := original(*args, **more), ways.add(done))[0])
        quick = story(t, seed)
        monkeypatch.setattr(commit_store, "commit_uncontended", lambda *_, **__: False)

        assert quick == story(t, seed)
    assert ways == {True, False}


def beaten(t):
    """Return one transaction, in a list; another one has committed a change of the same partition meanwhile."""
    loser = t.write("db.t/p=1", U)
    t.commit(t.write("db.t/p=1", D, t.open()))
    return [loser]


def rivals(t):
    return [t.write("db.t/p=1", U), t.write("db.t/p=1", D), t.write("db.t/p=2", U)]


def with_an_aborted_one(t):
    txn_id = t.write("db.t/p=1", I)
    t.abort(txn_id)
    return [t.write("db.t/p=2", I), txn_id]


def with_an_unknown_one(t):
    return [t.write("db.t", I), 99]


def with_a_compaction(t):
    return [t.write("db.t", I), t.open(kind=TxnType.COMPACTION)]


def without_write_id(t):
    t.db.once("""INSERT INTO catalogs (name, location) VALUES ('hive', '/w') ON CONFLICT DO NOTHING;
                 INSERT INTO databases (catalog, name, location) VALUES ('hive', 'db', 'file:/db') ON CONFLICT DO NOTHING;
                 INSERT INTO tables (catalog, db, name, type, sd, parameters)
                 VALUES ('hive', 'db', 't', 'MANAGED_TABLE', '{}', '{"transactional": "TRUE"}')""")
    return a_bare_insert(t)


def a_bare_insert(t):
    txn_id = t.open()
    t.lock(txn_id, "db.t", I)
    return [txn_id]


@pytest.mark.parametrize("situation", [beaten, rivals, with_an_aborted_one, with_an_unknown_one, with_a_compaction,
                                       without_write_id])
def test_where_there_is_something_to_decide_nothing_happens(t, situation):
    t.open()   # keeps what is committed from being forgotten
    ids = situation(t)
    before = outcome(t)

    assert tried(t, *ids) is False
    assert outcome(t) == before


def test_a_write_id_that_nobody_requires(t):
    assert tried(t, *without_write_id(t), require_write_ids=False) is True


def test_a_table_that_is_not_transactional_needs_no_write_id(t):
    assert tried(t, *a_bare_insert(t)) is True


def test_members_that_only_insert_are_no_rivals(t):
    ids = [t.write("db.t/p=1", I), t.write("db.t/p=1", I), t.write("db.t/p=1", U)]

    assert tried(t, *ids) is True
    assert t.rows("SELECT write_id, update_delete FROM completed_txn_components ORDER BY 1") == [
        (1, False), (2, False), (3, True)]


def test_one_that_updates_and_deletes_is_no_rival_of_itself(t):
    txn_id = t.write("db.t/p=1", U)
    t.lock(txn_id, "db.t/p=1", D)

    assert tried(t, txn_id) is True
    assert t.count("write_sets") == 2


@pytest.fixture
def waits(t):
    """Whether the next call's transactions end with a wait for the disk: a trigger notes the setting in force."""
    [[name]] = t.rows("SELECT quote_ident(current_database())")
    t.rows(f"""
        CREATE TABLE noted (setting text);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER note AFTER UPDATE ON txns DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.state <> 'open') EXECUTE FUNCTION note();
        ALTER DATABASE {name} SET synchronous_commit = on""")
    t.db.pool.close()   # connections made from now on have the setting

    def waits(*txn_ids):
        t.rows("DELETE FROM noted")
        t.commits.commit_txn([CommitRequest(one) for one in txn_ids])
        return {setting == "on" for [setting] in t.rows("SELECT setting FROM noted")}

    yield waits
    t.rows(f"DROP TRIGGER note ON txns; DROP FUNCTION note; DROP TABLE noted; ALTER DATABASE {name} RESET ALL")


def test_only_who_writes_waits_for_the_disk(t, waits):
    assert waits(t.open()) == {False}
    assert waits(t.write("db.t")) == {True}
    assert waits(*rivals(t)) == {True}
    assert waits(t.open(), t.open()) == {False}
    assert waits(t.open(), t.write("db.t")) == {True}


def test_who_wrote_nothing_does_not_wait_for_the_counter(t, database_url):
    first, second = t.open(2)
    busy = psycopg2.connect(database_url)
    busy.cursor().execute("SELECT FROM txn_counter FOR UPDATE")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(t.commit, first, second)
        finished = not wait([answer], timeout=60).not_done
        busy.close()
        answer.result()

    assert finished
