"""The loops with a real Spark job in a process of its own, on tables that Spark wrote and reads back."""

from dataclasses import replace
from pathlib import Path
from threading import Event
from urllib.parse import unquote, urlsplit

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
from metastore.loops.job import SubprocessRunner
from metastore.loops.worker import Worker, WorkOutcome
from metastore.write_ids.service import WriteIdService
from tests.support.compacting import wait_until_cleaned
from tests.support.transactions import seconds

pytestmark = pytest.mark.spark


class Loops:
    def __init__(self, database, uri):
        settings = replace(CompactionSettings(), delta_num_threshold=3, delta_pct_threshold=100.0, spark_master="local[1]")
        files = Files()
        self.initiator = Initiator(InitiatorService(database, settings), files, "host-1", "test")
        self.worker = Worker(WorkerService(database, settings), LockService(database), WriteIdService(database), files,
                             SubprocessRunner(settings, uri), "host-1.0", "test", seconds(300))
        self.cleaner = Cleaner(CleanerService(database, settings), files, Event())


@pytest.fixture
def loops(lakehouse, nobody_reads):
    database = Database(lakehouse.database_url)
    yield Loops(database, lakehouse.uri)
    database.close()


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
