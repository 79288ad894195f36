"""Several writers on the same rows at once: what each was told is written down, and the table must be the sum of it."""

import os
import threading
from collections import Counter
from random import Random

import pytest

from metastore.client.lock_plan import LockModes, statement_locks
from metastore.errors import TxnAbortedError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

STEPS = 15 if os.environ.get("TABLE_SEEDS") else 2
WRITERS = 2
TOKENS = range(100, 100 + 2 * STEPS)


class Writer:
    """Changes rows until each change is done, and writes down what it was told."""

    def __init__(self, spark, name, seed):
        self.spark, self.name, self.rng = spark, name, Random(seed)
        self.added: Counter[int] = Counter()
        self.deleted: list[int] = []
        self.lost = 0
        self.failure = None

    def run(self, start):
        from metastore.spark import acid

        try:
            with acid(self.spark) as self.session:
                start.wait()
                for _ in range(STEPS):
                    self.step()
        except BaseException as error:  # noqa: BLE001 - the test fails with it in its own thread
            self.failure = error

    def step(self):
        key, token = self.rng.randrange(2), self.rng.choice(TOKENS)
        match self.rng.randrange(3):
            case 0:
                assert self.until_done(lambda: self.session.update(self.name, {"n": "n + 1"}, f"k = {key}")) == 1
                self.added[key] += 1
            case 1:
                self.until_done(lambda: self.session.merge(
                    self.name, f"(SELECT {key} AS k UNION ALL SELECT {token})", "t.k = s.k",
                    ["WHEN MATCHED AND s.k < 100 THEN UPDATE SET n = t.n + 10"]))
                self.added[key] += 10
            case _:
                if self.until_done(lambda: self.session.delete(self.name, f"k = {token}")):
                    self.deleted.append(token)

    def until_done(self, change):
        for _ in range(100):
            try:
                return change()
            except TxnAbortedError:
                self.lost += 1
        raise AssertionError("a hundred conflicts in a row")


@pytest.mark.parametrize("modes", [
    pytest.param(LockModes(), id="exclusive"),
    pytest.param(LockModes(exclusive_write=False), id="first committer wins", marks=pytest.mark.slow)])
def test_no_change_is_lost_and_none_is_done_twice(acid_session, db, spark, monkeypatch, modes):
    monkeypatch.setattr("metastore.planner.transactions.statement_locks", lambda *outputs: statement_locks(*outputs[:2], modes))
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (k INT, n INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    acid_session.insert(name, spark.createDataFrame([(0, 0), (1, 0), *((one, -1) for one in TOKENS)], "k INT, n INT"))
    writers = [Writer(spark, name, seed) for seed in range(WRITERS)]
    start = threading.Barrier(WRITERS)
    threads = [threading.Thread(target=one.run, args=(start,)) for one in writers]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [one.failure for one in writers] == [None] * WRITERS
    rows = [tuple(row) for row in acid_session.table(name).collect()]
    deleted = [token for one in writers for token in one.deleted]
    added = sum((one.added for one in writers), Counter())
    assert len(deleted) == len(set(deleted)), "a row was deleted twice"
    assert sorted(rows) == sorted([(0, added[0]), (1, added[1]), *((one, -1) for one in TOKENS if one not in deleted)])
    print(f"{sum(one.lost for one in writers)} conflicts lost and repeated")
