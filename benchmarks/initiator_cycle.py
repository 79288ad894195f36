"""A cycle of the Initiator over thousands of partitions, each with real directories on this disk.

    python -m benchmarks.initiator_cycle [--partitions 10000] [--threads 1 4]

Cold: no partition is known yet. Warm: another Initiator, as after a change of the leader, whose predecessor has listed
all. After writes: the next round, after writes to a tenth of the partitions. Reconciling: all are listed again, though
nothing has changed. Each has a base and three deltas, so nothing is due. The table has one row for each number of
threads (``hive.compactor.request.queue``).
"""

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from benchmarks.transactions import own_postgres
from metastore.compaction.initiating.service import InitiatorService
from metastore.config import CompactionSettings
from metastore.db.engine import Database
from metastore.db.migrate import upgrade
from metastore.files import Files
from metastore.loops.initiator import Initiator
from metastore.telemetry.logs import configure

FILES = {"base_0000001": 100_000, **{f"delta_000000{n}_000000{n}_0000": 100 for n in (2, 3, 4)}}

# The partitions, and the writes of four old transactions to each.
FILLING = """
INSERT INTO catalogs (name, location) VALUES ('hive', %(place)s) ON CONFLICT DO NOTHING;
INSERT INTO databases (catalog, name, location) VALUES ('hive', 'd', %(place)s);
INSERT INTO tables (catalog, db, name, type, location, sd, partition_keys, parameters)
VALUES ('hive', 'd', 't', 'MANAGED_TABLE', %(place)s, '{}', '[{"name": "p", "type": "string"}]',
        '{"transactional": "true"}');
INSERT INTO partitions (table_id, name, "values", location, parameters)
SELECT t.id, 'p=' || n, ARRAY[n::text], %(place)s || '/p=' || n, '{}'
FROM tables AS t, generate_series(1, %(partitions)s) AS n;
INSERT INTO next_write_ids (catalog, db, "table", next_write_id) VALUES ('hive', 'd', 't', 5);
INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
SELECT w, 'hive', 'd', 't', 'p=' || n, w, false, now() - interval '1 day'
FROM generate_series(1, %(partitions)s) AS n, generate_series(1, 4) AS w;
ANALYZE
"""
WRITING = """
INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
SELECT 5, 'hive', 'd', 't', 'p=' || n, 5, false, now() FROM generate_series(1, %(partitions)s, 10) AS n;
UPDATE next_write_ids SET next_write_id = 6
"""


def fill(place: Path, partitions: int) -> None:
    """Write the directories of ``partitions`` partitions."""
    for number in range(1, partitions + 1):
        for name, size in FILES.items():
            directory = place / f"p={number}" / name
            directory.mkdir(parents=True)
            (directory / "bucket_00000").write_bytes(b"x" * size)


def timed(name: str, threads: int, initiator: Initiator) -> None:
    """Run a cycle and print its time."""
    began, computing = time.perf_counter(), time.process_time()
    report = initiator.tick()
    seconds, computing = time.perf_counter() - began, time.process_time() - computing
    assert not report.queued
    counts = f"{len(report.findings):,} | {report.listed:,}"
    print(f"| {name} | {threads} | {counts} | {seconds:.2f} | {computing:.2f} |", flush=True)


def run(database: Database, partitions: int, threads: int) -> None:
    """Measure cycles: without listings, with them, after writes to a tenth, and with listings that are too old."""
    settings = replace(CompactionSettings(), initiator_checks=threads)

    def initiator(settings: CompactionSettings = settings) -> Initiator:
        return Initiator(InitiatorService(database, settings), Files(), "bench", "1")

    database.once(
        "DELETE FROM listings; DELETE FROM delta_measures; DELETE FROM completed_txn_components WHERE write_id = 5;"
        "UPDATE next_write_ids SET next_write_id = 5"
    )
    timed("cold", threads, initiator())
    timed("warm", threads, following := initiator())
    database.once(WRITING, {"partitions": partitions})
    timed("after writes to a tenth", threads, following)
    timed("reconciling", threads, initiator(replace(settings, listing_max_age=timedelta(microseconds=1))))


def main() -> int:
    """Write the directories and measure cycles with each number of threads. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4])
    options = parser.parse_args()
    configure("warning")
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        url = own_postgres(Path(name) / "database", running)
        upgrade(url)
        place = Path(name) / "t"
        fill(place, options.partitions)
        database = Database(url)
        running.callback(database.close)
        database.once(FILLING, {"place": f"file://{place}", "partitions": options.partitions})
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        print("| round | threads | candidates | listed | seconds | of the processor |\n|---|---|---|---|---|---|")
        for threads in options.threads:
            run(database, options.partitions, threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
