"""Compaction and cleaning on demand: the real loops, their Spark job in the Spark session of the tests."""

from dataclasses import replace
from datetime import timedelta
from threading import Event, Thread

from metastore.catalog.service.statistics import StatisticsService
from metastore.compaction.cleaning.service import CleanerService
from metastore.compaction.initiating.service import InitiatorService
from metastore.compaction.queue.rules.requests import CompactionType, Entity
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.requests import NewRequest
from metastore.compaction.working.service import WorkerService
from metastore.config import CompactionSettings
from metastore.db.engine import Database
from metastore.files import Files
from metastore.ids import table_name
from metastore.locks.service import LockService
from metastore.loops.cleaner import Cleaner
from metastore.loops.initiator import Initiator
from metastore.loops.job_runner import JobOutcome
from metastore.loops.worker import Worker
from metastore.spark.compaction.job import run_for
from metastore.spark.compaction.process import described_table
from metastore.write_ids.service import WriteIdService
from tests.support.transactions import seconds


class SessionRunner:
    """Runs the job that the Worker would start as a process, in a Spark session that is there already."""

    ends_with_us = True

    def __init__(self, spark, uri):
        self.spark, self.uri = spark, uri

    def unavailable(self):
        return None

    def run(self, spec, pulse):
        spec = replace(spec, metastore_uri=self.uri)
        return JobOutcome(succeeded=True, result=run_for(self.spark, spec, described_table(spec)))


def wait_until_cleaned(cleaner, number):
    """Run the Cleaner until it has cleaned a compaction: the JVM may let a finished read's snapshot go minutes later."""
    for _ in range(1200):
        if number in [entry.id for entry in cleaner.tick() if entry.outcome.value == "cleaned"]:
            return
        Event().wait(0.2)
    raise AssertionError(f"compaction {number} was not cleaned in four minutes")


class Compacting:
    """``compact(...)`` queues, works and commits; ``clean()`` removes what nobody needs. ``report`` is the Worker's last."""

    report = None

    def __init__(self, database_url, uri, spark, **settings):
        self.database = Database(database_url)
        chosen = replace(CompactionSettings(cleaner_retention=timedelta(0)), **settings)
        self._service = CompactionService(self.database, chosen)
        self.worker = Worker(WorkerService(self.database, chosen), LockService(self.database), WriteIdService(self.database), Files(),
                              SessionRunner(spark, uri), "host-1.0", "test", seconds(300),
                              statistics=StatisticsService(self.database))
        self._initiator = Initiator(InitiatorService(self.database, chosen), Files(), "host-1", "test")
        self._cleaner = Cleaner(CleanerService(self.database, chosen), Files(), Event())

    def close(self):
        self.database.close()

    def compact(self, db, table, kind, partition="", **more):
        """Run a compaction and return its outcome, as the Worker names it; None where the request was not accepted. ``more``: of the request."""
        request = NewRequest(Entity(table_name(db, table), partition), CompactionType(kind), **more)
        if not self._service.compact2(request).accepted:
            return None
        self.report = self.worker.tick()
        return self.report.outcome

    def initiate(self):
        return self._initiator.tick()

    def clean(self):
        return self._cleaner.tick()


class Working:
    """A Worker that works until the block ends."""

    def __init__(self, worker):
        self.worker, self.over, self.outcomes = worker, Event(), []
        self.thread = Thread(target=self.work)

    def work(self):
        while not self.over.is_set():
            report = self.worker.tick()
            if report.compaction_id is not None:
                self.outcomes.append(report.outcome.value)
            self.over.wait(0.1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
