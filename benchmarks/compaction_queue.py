"""A full queue and its Workers: the cost of each call, and a check that no two get the same request.

    python -m benchmarks.compaction_queue [--requests 1000] [--workers 8] [--pauses 0 50]

So many requests wait, each for a table of its own. Each Worker is a thread with connections of its own; it claims,
begins, renews its lease and completes, without a job and without files, until the queue is empty; then the threads
clean. The first run has no pause between calls, which is more load than Workers that read and write tables cause: a
call then waits for the processor and for other calls. The second run has a short pause before each call.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

from benchmarks.transactions import own_postgres, settings
from metastore.compaction.cleaning.service import CleanerService, Cleaning
from metastore.compaction.cleaning.store import Covered
from metastore.compaction.queue.rules.requests import Compaction, CompactionType, Entity
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.requests import NewRequest
from metastore.compaction.working.service import WorkerService
from metastore.config import CompactionSettings
from metastore.db.engine import Database
from metastore.db.migrate import upgrade
from metastore.ids import TableName
from metastore.telemetry.logs import configure

Answer = TypeVar("Answer")
HEARTBEATS = 3
FILLING = """
INSERT INTO catalogs (name, location) VALUES ('hive', 'file:///w') ON CONFLICT DO NOTHING;
INSERT INTO databases (catalog, name, location) VALUES ('hive', 'd', 'file:///w/d');
INSERT INTO tables (catalog, db, name, type, location, sd, partition_keys, parameters)
SELECT 'hive', 'd', 't' || n, 'MANAGED_TABLE', 'file:///w/d/t' || n, '{}', '[]', '{"transactional": "true"}'
FROM generate_series(1, %(requests)s) AS n;
INSERT INTO next_write_ids (catalog, db, "table", next_write_id)
SELECT 'hive', 'd', 't' || n, 5 FROM generate_series(1, %(requests)s) AS n;
INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
SELECT w, 'hive', 'd', 't' || n, '', w, false, now()
FROM generate_series(1, %(requests)s) AS n, generate_series(1, 4) AS w;
ANALYZE
"""


class Worker:
    """The calls of a Worker and of the Cleaner behind it, timed."""

    def __init__(self, url: str, number: int, pause_ms: float) -> None:
        self.db = Database(url, pool_size=1)
        self.name, self.pause = f"bench-{number}", partial(Event().wait, pause_ms / 1000)
        self.worker = WorkerService(self.db, CompactionSettings())
        self.cleaner = CleanerService(self.db, CompactionSettings(cleaner_retention=timedelta(0)))
        self.claims: list[Compaction] = []
        self.ms: dict[str, list[float]] = {}

    def timed(self, name: str, call: Callable[..., Answer], *arguments: object) -> Answer:
        """Call ``call`` after the pause and note its time below ``name``."""
        self.pause()
        began = time.perf_counter()
        answer = call(*arguments)
        self.ms.setdefault(name, []).append((time.perf_counter() - began) * 1000)
        return answer

    def work(self) -> None:
        """Claim and complete requests until none is left."""
        while (claimed := self.timed("claim", self.worker.claim, self.name, "1", None)) is not None:
            self.claims.append(claimed)
            started = self.timed("begin", self.worker.begin, claimed, "ann", "h")
            for _ in range(HEARTBEATS):
                self.timed("heartbeat", self.worker.heartbeat, started)
            self.timed("complete", self.worker.complete, started)

    def clean(self, ready: Iterable[Compaction]) -> None:
        """Clean the requests that are ready."""
        for request in ready:
            cleaning = self.timed("start of a cleaning", self.cleaner.start, request)
            if isinstance(cleaning, Cleaning):
                self.timed("end of a cleaning", self.cleaner.clean, cleaning, (), Covered())
        self.db.close()


def run(requests: int, count: int, pause_ms: float) -> bool:
    """Print the figures; return True if each request was claimed once and is done."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        url = own_postgres(Path(name), running)
        upgrade(url)
        print(f"\n{settings(url)}; {pause_ms:g} ms between the calls of a Worker")
        database = Database(url)
        running.callback(database.close)
        database.once(FILLING, {"requests": requests})
        queue = CompactionService(database, CompactionSettings())
        for number in range(1, requests + 1):
            queue.compact2(NewRequest(Entity(TableName("hive", "d", f"t{number}")), CompactionType.MAJOR))
        workers = [Worker(url, number, pause_ms) for number in range(count)]
        began = time.perf_counter()
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(Worker.work, workers))
            looked = workers[0].timed("the Cleaner's look at all of it", workers[0].cleaner.waiting)
            ready = [request for request, _ in looked]
            list(threads.map(Worker.clean, workers, (ready[number::count] for number in range(count))))
        seconds = time.perf_counter() - began
        [(left,)] = database.once("SELECT count(*) FROM compaction_queue")
    claims = Counter(claim.id for worker in workers for claim in worker.claims)
    collided = sum(times > 1 for times in claims.values())
    print(f"{len(claims):,} requests, {count} workers, {seconds:.1f} s; claimed twice: {collided}, left: {left}\n")
    print("| call | times | median, ms | p99, ms |\n|---|---|---|---|")
    for call in workers[0].ms:
        ms = sorted(value for worker in workers for value in worker.ms.get(call, ()))
        print(f"| {call} | {len(ms):,} | {statistics.median(ms):.2f} | {ms[int(len(ms) * 0.99)]:.2f} |", flush=True)
    return len(claims) == requests and not collided and not left


def main() -> int:
    """Empty a full queue for each pause and print the times. Return 1 if a request was given twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument(
        "--pauses", type=float, nargs="+", default=[0, 50], help="milliseconds between a Worker's calls"
    )
    options = parser.parse_args()
    configure("warning")
    outcomes = [run(options.requests, options.workers, pause) for pause in options.pauses]
    return int(not all(outcomes))


if __name__ == "__main__":
    sys.exit(main())
