"""Lost write conflicts: the error names the winner, and a statement can be run again on a new snapshot."""

import pytest

from metastore.client import TxnManager, WriteConflictError
from metastore.locks.rules import Operation
from metastore.planner import calls
from metastore.spark import acid

pytestmark = pytest.mark.spark


@pytest.fixture
def parted(acid_session, db):
    name = f"{db}.parted"
    acid_session.sql(f"CREATE TABLE {name} (id INT, n INT) PARTITIONED BY (p INT) STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 1, 1), (2, 1, 2)")
    return name


@pytest.fixture
def rival(acid_session, parted, monkeypatch):
    """Return an engine that changes partition p=1 under no lock while each of the next ``times`` statements runs."""
    db, table = parted.split(".")
    announce = calls.CALLS["announce"].answer

    class Rival:
        times, commits = 1, []

    def overtaken(call):
        done = announce(call)
        if Rival.times:
            Rival.times -= 1
            with TxnManager(acid_session.client, host="elsewhere").transaction(user="trino", agent="q42") as txn:
                txn.add_dynamic_partitions(db, table, ["p=1"], Operation.UPDATE)
            Rival.commits.append(txn.id)
        return done

    Rival.commits = []
    monkeypatch.setitem(calls.CALLS, "announce", calls.Method(overtaken))
    return Rival


def rows(session, name):
    return sorted(tuple(row) for row in session.table(name).collect())


def test_the_error_names_the_winner(acid_session, parted, rival):
    with pytest.raises(WriteConflictError) as lost:
        acid_session.update(parted, {"n": "n + 1"})
    [winner] = rival.commits
    assert lost.value.winner == winner
    told = str(lost.value)
    assert f"Transaction {winner} of trino@elsewhere (q42), at 2" in told
    assert f"committed its update of {parted.replace('.', '/')}/p=1 first." in told
    assert rows(acid_session, parted) == [(1, 1, 1), (2, 1, 2)]


def test_a_statement_is_run_again_on_a_new_snapshot(spark, parted, rival):
    with acid(spark, retries=2) as session:
        rival.times = 2
        assert session.sql(f"MERGE INTO {parted} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + 1"
                           ).first()[0] == 1
        assert rows(session, parted) == [(1, 2, 1), (2, 1, 2)]
        rival.times = 3
        with pytest.raises(WriteConflictError):
            session.delete(parted, "id = 1")
        assert (rival.times, rows(session, parted)) == (0, [(1, 2, 1), (2, 1, 2)])


def test_a_transaction_block_is_never_run_again(spark, parted, rival):
    runs = []
    with acid(spark, retries=2) as session:
        with pytest.raises(WriteConflictError), session.transaction():
            runs.append(session.update(parted, {"n": "n + 1"}))
        assert len(runs) == 1
        assert rows(session, parted) == [(1, 1, 1), (2, 1, 2)]

        def block():
            with session.transaction():
                runs.append(session.update(parted, {"n": "n + 1"}))
        rival.times = 1
        session.retrying(block)
        assert len(runs) == 3
        assert rows(session, parted) == [(1, 2, 1), (2, 2, 2)]
