"""kill -9 of a driver at each named point of the commit protocol: what is there afterwards, for readers and writers.

``make test`` kills at one point; ``make robustness-tables`` at all of them.
"""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from pyspark.errors import AnalysisException

from metastore.acid.violations import Rule
from metastore.config import TxnSettings
from metastore.db.engine import Database
from metastore.files import Files
from metastore.housekeeping.service import PurgeService
from metastore.ids import table_name
from metastore.loops.reaper import Reaper
from metastore.planner import calls
from metastore.spark.check.table_check import check_table, quarantine
from tests.acceptance.tables.dying import POINTS
from tests.support.postgres import TestClock

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

CHOSEN = list(POINTS) if os.environ.get("TABLE_SEEDS") else ["all published"]
BEFORE = [(1, "old", "a"), (2, "old", "a"), (3, "old", "a"), (4, "old", "b")]
AFTER = [(1, "new", "a"), (3, "old", "a"), (4, "new", "b"), (9, "new", "c")]
NOTHING_WRITTEN = {"transaction opened", "locks held", "write id allocated", "committed"}


@pytest.fixture
def expire(lakehouse):
    """Let every transaction without heartbeats run out. Afterwards the clock that tests share is right again."""
    database, ahead = Database(lakehouse.database_url), []

    def run():
        ahead.append(timedelta(hours=1))
        TestClock(database).advance(ahead[-1])
        report = Reaper(PurgeService(database, TxnSettings())).tick()
        assert report.failed == {}
        return report

    yield run
    TestClock(database).advance(-sum(ahead, timedelta()))
    database.close()


@pytest.fixture
def killed(lakehouse, monkeypatch):
    """``killed(table, point, *sql)`` runs a driver until it is killed at the point."""

    def run(table, name, *sql):
        point = POINTS[name]
        answer = calls.CALLS[point.call].answer

        def dying(call):
            done = answer(call) if point.when == "after" else {}
            os.killpg(driver.pid, signal.SIGKILL)
            return done

        with monkeypatch.context() as patch:
            driver = subprocess.Popen([sys.executable, "-m", "tests.acceptance.tables.dying", lakehouse.uri, table, *sql],
                                      stderr=subprocess.PIPE, text=True, start_new_session=True)
            patch.setitem(calls.CALLS, point.call, calls.CALLS[point.call]._replace(answer=dying))
            _, said = driver.communicate(timeout=600)
        assert driver.returncode == -signal.SIGKILL, said[-3000:]

    return run


@pytest.mark.parametrize("point", CHOSEN)
def test_a_driver_killed(point, acid_session, db, killed, compacting, expire):
    goes_on_after(point, acid_session, db, killed, compacting, expire)


def goes_on_after(point, acid_session, db, killed, compacting, expire, nothing_written=NOTHING_WRITTEN):
    """A driver killed at the point, and all that the table went through afterwards."""
    name, files = f"{db}.t", Files()
    client = acid_session.client
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (p STRING) STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    acid_session.insert(name, acid_session.spark.createDataFrame(BEFORE, "id INT, name STRING, p STRING"))
    expected = AFTER if point == "committed" else BEFORE

    def rows():
        return sorted(tuple(row) for row in acid_session.table(name).collect())

    def findings():
        return check_table(client, files, table_name(db, "t"))

    killed(name, point)

    assert rows() == expected
    assert [one for one in findings() if one.finding.rule is not Rule.DEAD_STAGING] == [], "its writer may be alive"
    open_before = {txn.id for txn in client.get_open_txns_info().open_txns if txn.state == client.types.TxnState.OPEN}
    report = expire()
    if point != "committed":
        assert report.expired_txns >= 1
        assert open_before
    assert client.show_locks(client.types.ShowLocksRequest(dbname=db, tablename="t")).locks == []
    orphans = findings()
    assert {one.finding.rule for one in orphans} <= {Rule.ABORTED_WRITER, Rule.DEAD_STAGING}
    assert all(one.finding.is_unneeded for one in orphans)
    assert bool(orphans) is (point not in nothing_written)
    assert rows() == expected

    assert acid_session.update(name, {"name": "concat(name, '!')"}, "id <= 3") == len([row for row in expected if row[0] <= 3])
    expected = [(row[0], f"{row[1]}!", row[2]) if row[0] <= 3 else row for row in expected]
    assert rows() == expected
    compacting.initiate()
    compacting.clean()
    expire()   # what is ended and cleaned may be forgotten now, and must not come to life with that
    acid_session.insert(name, acid_session.spark.createDataFrame([(50, "later", "c")], "id INT, name STRING, p STRING"))
    expected = sorted([*expected, (50, "later", "c")])
    assert rows() == expected
    quarantine(files, findings())
    assert findings() == []
    assert rows() == expected


@pytest.mark.skipif("TABLE_SEEDS" not in os.environ, reason="make robustness-tables")
def test_a_driver_killed_while_it_fills_a_new_table(acid_session, db, lakehouse, killed, expire):
    """Nobody can undo the table then: it is there without rows, in nobody's way, until it is dropped."""
    name, client = f"{db}.t", acid_session.client
    create = f"CREATE TABLE {name} STORED AS ORC TBLPROPERTIES ('transactional'='true') AS SELECT id FROM range(3)"
    killed(name, "all published", create)
    assert expire().expired_txns >= 1
    assert acid_session.table(name).count() == 0
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        acid_session.sql(create)
    acid_session.sql(f"DROP TABLE {name}")
    assert not (lakehouse.warehouse / f"{db}.db" / "t").exists()
    acid_session.sql(create)
    assert client.get_table(db, "t").tableName == "t"
    assert acid_session.table(name).count() == 3
