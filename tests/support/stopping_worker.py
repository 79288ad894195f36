"""A Worker as a process of its own that says where it is and waits for a word: ``python -m ... URL POINT``.

``job``: when its job has written everything, before the job asks for its claim; ``commit``: before the Worker commits.
"""

import sys
from dataclasses import replace
from datetime import timedelta

from metastore.compaction.working.service import WorkerService
from metastore.config import CompactionSettings
from metastore.db import failpoints
from metastore.db.engine import Database
from metastore.files import Files
from metastore.locks.service import LockService
from metastore.loops.worker import Worker
from metastore.write_ids.service import WriteIdService
from tests.support.lake import FakeRunner
from tests.support.transactions import seconds


def _wait_for_a_word():
    print("here", flush=True)
    sys.stdin.readline()


def main(url, point):
    def in_job(_, pulse):
        if point == "job":
            _wait_for_a_word()
            pulse()

    def at(name):
        if (point, name) == ("commit", "worker.before_commit"):
            _wait_for_a_word()

    failpoints.hit = at
    database, files = Database(url), Files()
    settings = replace(CompactionSettings(), worker_lease=timedelta(milliseconds=1))  # each pulse is a heartbeat
    worker = Worker(WorkerService(database, settings), LockService(database), WriteIdService(database), files, FakeRunner(files, during=in_job),
                    "stopped-1", "test", seconds(300))
    print(worker.tick().outcome.name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
