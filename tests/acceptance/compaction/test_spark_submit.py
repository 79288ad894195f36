"""A compaction that is submitted to a cluster: Spark's own Master and Worker, from the jars of PySpark, on loopback."""

import os
import re
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest

from metastore.compaction.queue.rules.requests import CompactionType, Entity, outside_cause
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.requests import NewRequest
from metastore.compaction.working.service import WorkerService
from metastore.config import CompactionSettings
from metastore.db.engine import Database
from metastore.files import Files
from metastore.ids import table_name
from metastore.locks.service import LockService
from metastore.loops.job_runner import SubprocessRunner
from metastore.loops.worker import Worker, WorkOutcome
from metastore.write_ids.service import WriteIdService
from tests.support.able import AbleClient
from tests.support.thrift_server import until
from tests.support.transactions import seconds

pytestmark = [pytest.mark.spark, pytest.mark.robustness, pytest.mark.timeout(900)]


@contextmanager
def part(folder: Path, name: str, says: str, *arguments: str):
    """Run a part of a cluster, and yield the match of ``says`` in its log."""
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{name.lower()}.{name}",
             "--host", "127.0.0.1", "--webui-port", "0", *arguments],
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"})
    try:
        until(lambda: process.poll() is not None or re.search(says, log.read_text()))
        yield re.search(says, log.read_text())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def cluster(tmp_path):
    """Yield the address of the Master of a cluster with one Worker."""
    with part(tmp_path, "Master", r"Starting Spark master at (spark://\S+)", "--port", "0") as master, part(
            tmp_path, "Worker", "Successfully registered with master", "--cores", "1", "--memory", "1g",
            "--work-dir", str(tmp_path / "work"), master[1]):
        yield master[1]


@pytest.fixture
def database(lakehouse):
    opened = Database(lakehouse.database_url)
    yield opened
    opened.close()


@pytest.fixture
def worker(cluster, lakehouse, database, tmp_path):
    settings = replace(CompactionSettings(), submit="spark-submit", spark_master=cluster, log_dir=str(tmp_path),
                       spark_conf=("spark.driver.host=127.0.0.1", "spark.ui.port=0", "spark.executor.memory=512m"))
    runner = SubprocessRunner(settings, lakehouse.uri)
    assert runner.unavailable() is None
    return Worker(WorkerService(database, settings), LockService(database), WriteIdService(database), Files(), runner,
                  "host-1.0", "test", seconds(300))


def written(acid_session, name):
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for number in range(3):
        acid_session.sql(f"INSERT INTO {name} VALUES ({number}, 'n{number}')")
    acid_session.sql(f"DELETE FROM {name} WHERE id = 1")
    return sorted(map(tuple, acid_session.table(name).collect()))


def request(worker, db, table):
    service = CompactionService(worker.compactions.db, worker.compactions.settings)
    return service.compact2(NewRequest(Entity(table_name(db, table)), CompactionType.MAJOR)).id


def shown(lakehouse, number):
    with AbleClient(lakehouse.uri) as client:
        return client.show_compact(client.types.ShowCompactRequest(id=number)).compacts[0]


def test_a_cluster_compacts(acid_session, db, worker, lakehouse, tmp_path):
    """The executors have the writer without anything being installed; the application is named as the cluster names it."""
    rows = written(acid_session, f"{db}.t")
    number = request(worker, db, "t")

    report = worker.tick()

    assert (report.outcome, report.compaction_id) == (WorkOutcome.COMPACTED, number), [
        report.reason, *(log.read_text()[-5000:] for log in tmp_path.glob("failed-*/job.log"))]
    row = shown(lakehouse, number)
    assert re.fullmatch(r"app-\d+-\d+", row.hadoopJobId)
    assert re.fullmatch(r"4 rows read, 2 written, http://127\.0\.0\.1:\d+", row.metaInfo)
    assert sorted(map(tuple, acid_session.table(f"{db}.t").collect())) == rows == [(0, "n0"), (2, "n2")]
    assert list((tmp_path / "work").glob("app-*/0/stderr")), "an executor of the cluster did it"


def test_a_submitted_job_that_lost_its_claim_is_dead(acid_session, db, worker, lakehouse, monkeypatch):
    """Its application is there when the claim goes, and neither it nor anything of it when the Worker says so."""
    rows = written(acid_session, f"{db}.t")
    number, noted = request(worker, db, "t"), []
    beat = WorkerService.heartbeat

    def aborted(service, started, job=None):
        if job is not None:
            noted.append(job.id)
            with AbleClient(lakehouse.uri) as client:
                client.abort_txn(client.types.AbortTxnRequest(started.txn_id))
        beat(service, started, job)

    monkeypatch.setattr(WorkerService, "heartbeat", aborted)

    report = worker.tick()

    assert (report.outcome, report.compaction_id) == (WorkOutcome.FAILED, number)
    assert "was aborted while the compaction ran" in report.reason
    assert shown(lakehouse, number).state == "failed"
    assert re.fullmatch(r"app-\d+-\d+", noted[0])
    assert sorted(map(tuple, acid_session.table(f"{db}.t").collect())) == rows


def kill_executors(work: Path, ended: threading.Event) -> None:
    """Kill each executor that a Worker starts in its directory once it has a task, until the end."""
    while not ended.wait(0.05):
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):   # it went away meanwhile
                place = process.joinpath("cwd").readlink()
                if place.is_relative_to(work) and b"Got assigned task" in place.joinpath("stderr").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)


def test_lost_executors_do_not_count_against_the_table(acid_session, db, worker, lakehouse, tmp_path):
    """The job fails by them, nothing has changed, and the Initiator tries again soon, not after a week."""
    rows = written(acid_session, f"{db}.t")
    number, ended = request(worker, db, "t"), threading.Event()
    killing = threading.Thread(target=kill_executors, args=(tmp_path / "work", ended))
    killing.start()
    try:
        report = worker.tick()
    finally:
        ended.set()
        killing.join()

    assert (report.outcome, report.compaction_id) == (WorkOutcome.FAILED, number)
    assert outside_cause(shown(lakehouse, number).errorMessage), report.reason
    assert sorted(map(tuple, acid_session.table(f"{db}.t").collect())) == rows
