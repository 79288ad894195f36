"""A streaming query's batch is remembered by the commit of its rows, once: replays, races, lost answers, tables that go."""

from threading import Barrier, Thread

import pytest

from metastore.errors import AlreadyExistsError, InvalidOperationError, NoSuchObjectError, TxnAbortedError
from metastore.ids import table_name
from metastore.txns.commit.service import CommitRequest
from metastore.txns.core.rules import Operation
from metastore.txns.streams.rules import StreamBatch
from tests.support.transactions import raised

NAME = table_name("db", "t")
FIRST, SECOND = StreamBatch("q", 0, "a"), StreamBatch("q", 1, "b")


@pytest.fixture
def table_id(t):
    """Create the table db.t in the catalog, and return its id."""
    t.rows("INSERT INTO catalogs (name, location) VALUES ('hive', '/w') ON CONFLICT DO NOTHING")
    t.rows("INSERT INTO databases (catalog, name, location) VALUES ('hive', 'db', '/w/db') ON CONFLICT DO NOTHING")
    [(found,)] = t.rows("""INSERT INTO tables (catalog, db, name, type, sd)
                           VALUES ('hive', 'db', 't', 'MANAGED_TABLE', '{}') RETURNING id""")
    return found


def commit(t, txn_id, batch, name=NAME):
    raised(t.commits.commit_txn([CommitRequest(txn_id, batch=(name, batch))]))


def positions(t):
    return [(one.batch, one.txn_id) for one in t.commits.stream_positions(NAME)]


def test_a_batch_is_remembered_with_its_commit(t, table_id):
    first, second, other = t.open(), t.open(), t.open()
    commit(t, first, FIRST)
    commit(t, second, SECOND)
    commit(t, other, StreamBatch("other", 0, "x"))

    assert sorted(positions(t)) == [(StreamBatch("other", 0, "x"), other), (SECOND, second)]
    assert {t.state(one) for one in (first, second, other)} == {"committed"}


def test_the_same_batch_again_is_refused_and_nothing_is_committed(t, table_id):
    first, again = t.open(), t.write("db.t")
    commit(t, first, FIRST)

    with pytest.raises(AlreadyExistsError, match=rf"db.t has come to batch 0 \(transaction {first}, .* query q already"):
        commit(t, again, FIRST)
    assert t.state(again) == "open"
    assert t.rows("SELECT txn_id FROM completed_txn_components") == []
    assert positions(t) == [(FIRST, first)]


@pytest.mark.parametrize("batch", [FIRST, SECOND._replace(plan="other")])
def test_a_query_that_went_back_is_refused(t, table_id, batch):
    commit(t, t.open(), SECOND)
    late = t.open()

    with pytest.raises(InvalidOperationError, match="checkpoint was set back"):
        commit(t, late, batch)
    assert t.state(late) == "open"
    assert [one for one, _ in positions(t)] == [SECOND]


def test_a_commit_repeated_for_its_answer_is_no_second_batch(t, table_id):
    txn_id = t.open()
    commit(t, txn_id, FIRST)
    commit(t, txn_id, FIRST)
    commit(t, t.open(), SECOND)

    commit(t, txn_id, FIRST)

    assert [one for one, _ in positions(t)] == [SECOND]


def test_the_loser_of_a_write_conflict_leaves_no_batch(t, table_id):
    loser = t.open()
    t.write("db.t", Operation.UPDATE, loser)
    t.commit(t.write("db.t", Operation.UPDATE))

    with pytest.raises(TxnAbortedError, match="write conflict"):
        commit(t, loser, FIRST)
    assert positions(t) == []
    commit(t, t.open(), FIRST)


def test_of_two_runs_of_a_query_one_commits(t, table_id):
    ids = [t.open() for _ in range(8)]
    barrier, failures = Barrier(len(ids)), []

    def run(txn_id):
        barrier.wait()
        try:
            commit(t, txn_id, FIRST)
        except AlreadyExistsError as error:
            failures.append(error)

    threads = [Thread(target=run, args=(one,)) for one in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(failures) == len(ids) - 1
    assert sorted(t.state(one) for one in ids) == ["committed"] + ["open"] * (len(ids) - 1)
    assert len(positions(t)) == 1


def test_what_is_remembered_goes_with_the_table_and_follows_its_name(t, table_id):
    commit(t, t.open(), FIRST)
    t.rows("UPDATE tables SET name = 'u' WHERE id = %s", table_id)
    with pytest.raises(NoSuchObjectError, match="db.t does not exist"):
        commit(t, t.open(), SECOND)
    with pytest.raises(AlreadyExistsError):
        commit(t, t.open(), FIRST, table_name("db", "u"))
    t.rows("DELETE FROM tables WHERE id = %s", table_id)
    assert t.rows("SELECT FROM stream_batches") == []
