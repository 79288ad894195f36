"""Compactions that are submitted to a YARN of one node: `make interop-yarn`; not part of `make test`."""

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest

from metastore.compaction.working.service import WorkerService
from metastore.config import CompactionSettings
from metastore.db.engine import Database
from metastore.files import Files
from metastore.locks.service import LockService
from metastore.loops.job_runner import SubprocessRunner
from metastore.loops.worker import Worker, WorkOutcome
from metastore.write_ids.service import WriteIdService
from tests.acceptance.compaction.test_spark_submit import request, shown, written
from tests.support.transactions import seconds

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

@pytest.fixture
def worker(yarn, lakehouse, tmp_path, monkeypatch):
    monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn))
    jars = Path(pyspark.__file__).parent / "jars"
    settings = replace(
        CompactionSettings(), submit="spark-submit", spark_master="yarn", job_queue="default", log_dir=str(tmp_path),
        spark_conf=("spark.driver.host=127.0.0.1", "spark.ui.port=0", "spark.executor.memory=512m", "spark.executor.instances=1",
                    "spark.yarn.am.memory=512m", f"spark.yarn.jars=local:{jars}/*", f"spark.yarn.stagingDir={tmp_path.as_uri()}"))
    runner = SubprocessRunner(settings, lakehouse.uri)
    assert runner.unavailable() is None
    with closing(Database(lakehouse.database_url)) as database:
        yield Worker(WorkerService(database, settings), LockService(database), WriteIdService(database), Files(), runner,
                     "host-1.0", "test", seconds(300))


def said(yarn, tmp_path):
    """Return the ends of the logs of drivers and containers, for the message of a failure."""
    return [log.read_text(errors="replace")[-4000:]
            for log in (*tmp_path.glob("failed-*/job.log"), *yarn.glob("target/**/container_*/stderr"))]


def test_a_cluster_compacts(acid_session, db, worker, lakehouse, yarn, tmp_path):
    """The executors have the writer without anything being installed; the application is named as YARN names it."""
    rows = written(acid_session, f"{db}.t")
    number = request(worker, db, "t")

    report = worker.tick()

    assert (report.outcome, report.compaction_id) == (WorkOutcome.COMPACTED, number), [report.reason, *said(yarn, tmp_path)]
    row = shown(lakehouse, number)
    assert re.fullmatch(r"application_\d+_\d+", row.hadoopJobId)
    assert row.metaInfo.startswith("4 rows read, 2 written")
    assert sorted(map(tuple, acid_session.table(f"{db}.t").collect())) == rows == [(0, "n0"), (2, "n2")]
    containers = {log.parent.name for log in yarn.glob(f"target/**/{row.hadoopJobId}/*/stderr")}
    assert len(containers) == 2, "one of the application, and an executor's"
