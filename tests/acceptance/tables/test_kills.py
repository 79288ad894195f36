"""kill -9 of a driver, or of its planner, at each named point of the commit protocol: what is there for readers and writers.

``make test`` kills at one point; ``make robustness-tables`` at all of them.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException

from metastore.acid.violations import LayoutRule
from metastore.config import TxnSettings
from metastore.db.engine import Database
from metastore.files import Files
from metastore.housekeeping.service import PurgeService
from metastore.ids import table_name
from metastore.loops.reaper import Reaper
from metastore.planner import calls
from metastore.spark.catalog import CATALOG
from metastore.spark.check.table_check import check_table, quarantine
from tests.acceptance.tables.dying import POINTS, FilePoint, Point
from tests.support.postgres import TestClock

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

CHOSEN = list(POINTS) if os.environ.get("TABLE_SEEDS") else ["all published"]
BEFORE = [(1, "old", "a"), (2, "old", "a"), (3, "old", "a"), (4, "old", "b")]
AFTER = [(1, "new", "a"), (3, "old", "a"), (4, "new", "b"), (9, "new", "c")]
MERGE = """MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 'new', 'a'), (2, 'new', 'a'), (4, 'new', 'b'), (9, 'new', 'c') AS s(id, name, p)) s
           ON t.id = s.id AND t.p = s.p WHEN MATCHED AND s.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name
           WHEN NOT MATCHED AND s.id <> 2 THEN INSERT *"""
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


@pytest.fixture(scope="session")
def dying_files(tmp_path_factory):
    """``dying_files(point)``: settings of a Spark whose file system kills it."""
    place = tmp_path_factory.mktemp("dying")
    if shutil.which("javac") is None:
        pytest.skip("there is no Java compiler")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run(["javac", "-cp", jars, "-d", place, Path(__file__).parent / "DyingFileSystem.java"], check=True)
    return lambda point: {"spark.driver.extraClassPath": str(place), "spark.hadoop.fs.file.impl": "DyingFileSystem",
                          "spark.hadoop.test.dies.at": f"{point.kind}:{point.number}"}


@pytest.fixture
def killed(lakehouse, monkeypatch, request):
    """``killed(table, point, *sql)`` runs a driver until it is killed at the point."""

    def run(table, name, *sql):
        point = POINTS[name]
        settings = request.getfixturevalue("dying_files")(point) if isinstance(point, FilePoint) else {}
        driver = subprocess.Popen([sys.executable, "-m", "tests.acceptance.tables.dying", lakehouse.uri, table, json.dumps(settings), *sql],
                                  stderr=subprocess.PIPE, text=True, start_new_session=True)
        with nullcontext() if settings else dies_at(point, driver):
            _, said = driver.communicate(timeout=600)
        assert driver.returncode == -signal.SIGKILL, said[-3000:]

    @contextmanager
    def dies_at(point, driver):
        answer = calls.CALLS[point.call].answer

        def dying(call):
            if call.body.text("kind", "") == "READ_ONLY":  # a read of the tests' own Spark, which ends late
                return answer(call)
            done = answer(call) if point.when == "after" else {}
            os.killpg(driver.pid, signal.SIGKILL)
            return done

        with monkeypatch.context() as patch:
            patch.setitem(calls.CALLS, point.call, calls.CALLS[point.call]._replace(answer=dying))
            yield

    return run


@pytest.mark.parametrize("point", CHOSEN)
def test_a_driver_killed(point, acid_session, db, killed, compacting, expire):
    goes_on_after(point, acid_session, db, killed, compacting, expire)


def goes_on_after(point, acid_session, db, killed, compacting, expire, nothing_written=NOTHING_WRITTEN):
    """Kill a driver at the point, and check all that the table goes through afterwards."""
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
    assert [one for one in findings() if one.finding.rule is not LayoutRule.DEAD_STAGING] == [], "its writer may be alive"
    open_before = {txn.id for txn in client.get_open_txns_info().open_txns if txn.state == client.types.TxnState.OPEN}
    report = expire()
    if point != "committed":
        assert report.expired_txns >= 1
        assert open_before
    assert client.show_locks(client.types.ShowLocksRequest(dbname=db, tablename="t")).locks == []
    orphans = findings()
    assert {one.finding.rule for one in orphans} <= {LayoutRule.ABORTED_WRITER, LayoutRule.DEAD_STAGING}
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


@pytest.fixture
def mortal(spark, lakehouse):
    """``with mortal(point) as session``: its planner is killed at the point, and another follows on its port."""
    @contextmanager
    def session_of(point):
        with socket.create_server(("127.0.0.1", 0)) as port:
            def start(*program):
                return subprocess.Popen(
                    [sys.executable, "-m", *program, "--uri", lakehouse.uri, "--inherited", str(port.fileno())],
                    stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[port.fileno()])

            def follow():
                ends.append(planners[0].wait())
                planners.append(start("metastore", "planner"))

            ends, planners = [], [start("tests.acceptance.tables.dying_planner", *point)]
            follower = threading.Thread(target=follow)
            follower.start()
            session = spark.newSession()
            session.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
            session.conf.set("spark.sql.catalog.spark_catalog.planner", f"http://127.0.0.1:{port.getsockname()[1]}")
            yield session
            planners[0].terminate()   # where nobody has killed it
            follower.join()
            planners[1].kill()
            assert planners[1].wait() == ends[0] == -signal.SIGKILL
            for planner in planners:
                planner.stdin.close()

    return session_of


PLANNER_POINTS = [name for name, point in POINTS.items() if isinstance(point, Point)]


@pytest.mark.parametrize("name", PLANNER_POINTS if os.environ.get("TABLE_SEEDS") else ["complete in staging"])
def test_a_planner_killed(name, catalog, acid_session, db, mortal, expire):
    """The statement goes on with the next planner, or fails and leaves nothing; of a lost commit it says that it may have happened."""
    table, client, files = f"{db}.t", acid_session.client, Files()
    catalog.sql(f"CREATE TABLE {table} (id INT, name STRING) PARTITIONED BY (p STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql(f"INSERT INTO {table} VALUES (1, 'old', 'a'), (2, 'old', 'a'), (3, 'old', 'a'), (4, 'old', 'b')")

    def rows():
        return sorted(map(tuple, catalog.table(table).collect()))

    with mortal(POINTS[name]) as session:
        try:
            session.sql(MERGE.format(table=table))
            said = None
        except PySparkException as error:
            said = str(error)

    if said is None:
        assert rows() == AFTER
    elif POINTS[name].call == "commit":
        assert "may be committed" in said
        assert rows() in (BEFORE, AFTER)
    else:
        assert rows() == BEFORE
    expire()
    assert client.show_locks(client.types.ShowLocksRequest(dbname=db, tablename="t")).locks == []
    assert all(one.finding.is_unneeded for one in check_table(client, files, table_name(db, "t")))
    catalog.sql(MERGE.format(table=table))
    assert rows() == AFTER


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
