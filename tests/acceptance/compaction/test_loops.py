"""The loops with a real Spark job in a process of its own, on tables that Spark wrote and reads back."""

from dataclasses import replace
from pathlib import Path
from threading import Event
from urllib.parse import unquote, urlsplit

import psutil
import pytest

from metastore.compaction.cleaning.service import CleanerService
from metastore.compaction.initiating.service import InitiatorService
from metastore.compaction.working.service import WorkerService
from metastore.config import CompactionSettings
from metastore.db.engine import Database
from metastore.files import Files
from metastore.locks.service import LockService
from metastore.loops.cleaner import Cleaner
from metastore.loops.initiator import Initiator
from metastore.loops.job_runner import SubprocessRunner
from metastore.loops.worker import Worker, WorkOutcome
from metastore.write_ids.service import WriteIdService
from tests.support.compacting import wait_until_cleaned
from tests.support.transactions import seconds

pytestmark = pytest.mark.spark


SETTINGS = replace(CompactionSettings(), delta_num_threshold=3, delta_pct_threshold=100.0, spark_master="local[1]", cleaner_retention=seconds(0))


class Loops:
    def __init__(self, database, runner):
        files = Files()
        self.runner = runner
        self.initiator = Initiator(InitiatorService(database, SETTINGS), files, "host-1", "test")
        self.worker = Worker(WorkerService(database, SETTINGS), LockService(database), WriteIdService(database), files,
                             self.runner, "host-1.0", "test", seconds(300))
        self.cleaner = Cleaner(CleanerService(database, SETTINGS), files, Event())


@pytest.fixture(scope="module")
def runner(lakehouse):
    """Its Spark goes on from one test to the next."""
    made = SubprocessRunner(SETTINGS, lakehouse.uri)
    yield made
    made.close()


@pytest.fixture
def loops(lakehouse, nobody_reads, runner):
    database = Database(lakehouse.database_url)
    yield Loops(database, runner)
    database.close()


def shown(lakehouse, db):
    """Return the compactions of a database, keyed by table."""
    from tests.support.able import AbleClient

    with AbleClient(lakehouse.uri) as client:
        compacts = client.show_compact(client.types.ShowCompactRequest(limit=0)).compacts
    return {one.tablename: one for one in compacts if one.dbname == db}


def worked(loops, kind, db, table):
    """Request a compaction, run the Worker up to it, and return the Worker's report."""
    from metastore.compaction.queue.rules.requests import CompactionType, Entity
    from metastore.compaction.queue.service import CompactionService
    from metastore.compaction.queue.store.requests import NewRequest
    from metastore.ids import table_name

    service = CompactionService(loops.worker.compactions.db, loops.worker.compactions.settings)
    asked = service.compact2(NewRequest(Entity(table_name(db, table)), CompactionType(kind)))
    report = loops.worker.tick()
    while report.compaction_id not in (asked.id, None):
        report = loops.worker.tick()
    return report


def test_a_table_is_compacted_cleaned_and_read_the_same(acid_session, db, loops, lakehouse):
    from tests.support.able import AbleClient

    table = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {table} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for number in range(4):
        acid_session.sql(f"INSERT INTO {table} VALUES ({number}, 'n{number}'), ({number + 10}, 'm{number}')")
    acid_session.sql(f"DELETE FROM {table} WHERE id = 11")
    acid_session.sql(f"UPDATE {table} SET name = 'changed' WHERE id = 2")

    def rows():
        return sorted(map(tuple, acid_session.sql(f"SELECT id, name FROM {table}").collect()))

    before = rows()
    assert len(before) == 7
    assert (2, "changed") in before

    [queued] = [one for one in loops.initiator.tick().queued if one.entity.table.db == db]
    report = loops.worker.tick()
    while report.compaction_id not in (queued.id, None):
        report = loops.worker.tick()
    assert report.outcome is WorkOutcome.COMPACTED, report
    assert rows() == before
    wait_until_cleaned(loops.cleaner, queued.id)

    assert rows() == before
    with AbleClient(lakehouse.uri) as client:
        place = Path(unquote(urlsplit(client.get_table(db, "t").sd.location).path))
        [shown] = [one for one in client.show_compact(client.types.ShowCompactRequest(limit=0)).compacts
                   if one.dbname == db]
    assert (shown.state, shown.id) == ("succeeded", queued.id)
    assert shown.hadoopJobId != "None"
    assert [child.name for child in place.iterdir() if child.is_dir()] == [
        f"base_0000006_v{shown.txnId:07d}"]


def test_tables_of_all_kinds_are_compacted_by_one_spark(acid_session, db, loops, lakehouse):
    """Each with its own schema; what one job has kept in Spark, or was told, is not there for the next."""
    kinds = {"a": "(id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')",
             "b": "(name STRING, id BIGINT) STORED AS PARQUET TBLPROPERTIES ('transactional'='true', "
                  "'transactional_properties'='insert_only')",
             "c": "(id INT, name STRING) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS ORC TBLPROPERTIES ('transactional'='true', "
                  "'orc.compress'='SNAPPY')"}
    before = {}
    for table, kind in kinds.items():
        acid_session.sql(f"CREATE TABLE {db}.{table} {kind}")
        for number in range(3):
            acid_session.sql(f"INSERT INTO {db}.{table} (id, name) VALUES ({number}, '{table}{number}')")
        before[table] = sorted(map(tuple, acid_session.table(f"{db}.{table}").collect()), key=str)

    for table, kind in (("a", "minor"), ("b", "major"), ("c", "major")):
        assert worked(loops, kind, db, table).outcome is WorkOutcome.COMPACTED

    rows = shown(lakehouse, db)
    assert len({row.hadoopJobId for row in rows.values()} - {"None"}) == 1
    assert [rows[table].metaInfo for table in "abc"] == ["3 rows read, 3 written"] * 3
    assert {table: sorted(map(tuple, acid_session.table(f"{db}.{table}").collect()), key=str) for table in kinds} == before


@pytest.mark.slow
def test_a_spark_that_dies_fails_its_job_alone(acid_session, db, loops, lakehouse):
    """Killed with its job complete and without a name: nothing of it is seen, and the next compaction has another Spark."""
    for table in "ab":
        acid_session.sql(f"CREATE TABLE {db}.{table} (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
        for number in range(3):
            acid_session.sql(f"INSERT INTO {db}.{table} VALUES ({number})")
    killed = []

    def kill(progress=None):
        """When the job asks whether it may publish, it waits for this lock; so do we, for nothing."""
        [spark] = [child for child in psutil.Process().children(recursive=True)
                   if child.status() != psutil.STATUS_ZOMBIE and "metastore.spark.compaction.process" in child.cmdline()
                   and "metastore.loops.job_guard" not in child.cmdline()]
        for java in spark.children():
            java.kill()
            killed.append(java.pid)

    def stopped(spec, pulse):
        with loops.worker.compactions.db.begin() as pg:
            pg.sql("LOCK TABLE txns IN ACCESS EXCLUSIVE MODE")
            return real(spec, lambda progress=None: kill() if not killed and staged(spec) else None)

    def staged(spec):
        return any(path.name.startswith(".compaction_") for path in Path(unquote(urlsplit(spec.location).path)).iterdir())

    real = loops.runner.run
    loops.runner.run = stopped
    assert worked(loops, "major", db, "a").outcome is WorkOutcome.FAILED
    loops.runner.run = real
    assert killed
    assert worked(loops, "major", db, "b").outcome is WorkOutcome.COMPACTED
    rows = shown(lakehouse, db)
    assert (rows["a"].state, rows["b"].state) == ("failed", "ready for cleaning")
    place = Path(unquote(urlsplit(acid_session.client.get_table(db, "a").sd.location).path))
    assert [child.name for child in place.iterdir() if not child.name.startswith("delta_")] == []
    assert sorted(acid_session.table(f"{db}.a").collect()) == [(0,), (1,), (2,)]
