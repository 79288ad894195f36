"""Reads of a table while it is compacted and cleaned, beside reads of the same table when nothing happens.

    python -m benchmarks.reads_beside_compaction [--rows 2000000] [--runs 2]

The table is that of ``benchmarks.compaction``: a base, ten deltas, 1 % deleted. The readers, the metastore with its
Cleaner and PostgreSQL share one core; a Worker in a process of its own, with the Spark that it starts, has another.
Each read is an aggregate of three columns in a snapshot of its own, and its answer is compared with the first. The
peer: the same reads while a Spark without our connector rewrites plain files on the other core. Its effect shows the
cost of hardware that the cores share.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Row

from benchmarks import peers
from benchmarks.acid_session import TABLE, options, with_store_sales
from benchmarks.compaction import Contest
from benchmarks.cpu import tree_seconds
from benchmarks.fairness import percentile
from metastore.client import MetastoreClient
from metastore.client.compactions import DONE, PENDING, compaction_type
from metastore.spark.session import AcidSession

QUERY = f"SELECT count(*), sum(ss_quantity), sum(ss_net_profit) FROM {TABLE}"
READS = 30
SERVING_CORE, WORKING_CORE = 0, 1
_CLEANED = "succeeded"
_SERVER = ("--set", "hive.compactor.worker.threads=0", "--set", "hive.compactor.initiator.on=false",
           "--set", "hive.compactor.cleaner.run.interval=500ms",
           "--set", "hive.compactor.cleaner.retention.time.seconds=0s")  # fmt: skip


class Read(NamedTuple):
    """Seconds of a read, and of the processors of the readers' side; ``state``: of the compaction before it."""

    seconds: float
    cpu: float
    state: str


class Reader:
    """A reader that compares each result with the first."""

    def __init__(self, session: AcidSession, others: Sequence[int]) -> None:
        """Create a reader. ``others``: our children with a core of their own."""
        self.session, self.others = session, others
        self.answer: list[Row] = []
        self.failed: list[str] = []

    def expect(self) -> None:
        """Read the result that every later read has to return."""
        self.answer = self.session.sql(QUERY).collect()

    def read(self, state: str = "") -> Read:
        """Read the table once, and note an error or a wrong answer."""
        begin, spent = time.perf_counter(), self._spent()
        try:
            found = self.session.sql(QUERY).collect()
            if found != self.answer:
                self.failed.append(f"{found} instead of {self.answer}")
        except Exception as error:  # noqa: BLE001 - errors are counted: no read may fail
            self.failed.append(f"{type(error).__name__}: {error}"[:300])
        return Read(time.perf_counter() - begin, self._spent() - spent, state)

    def _spent(self) -> float:
        return tree_seconds(os.getpid()) - sum(map(tree_seconds, self.others))


@contextmanager
def worker(work: Path) -> Iterator[int]:
    """Run a Worker with a core of its own; give its process id."""
    ready = json.loads((work / "ready.json").read_text())
    up = work / "worker.json"
    options = {
        "--uri": ready["thrift"],
        "--database-url": ready["database_url"],
        "--http-port": "0",
        "--warehouse": (work / "data" / "warehouse").as_uri(),
        "--set": f"metastore.warehouse.roots={work.as_uri()}",
        "--ready-file": str(up),
    }
    command = [str(Path(sys.executable).with_name("metastore")), "worker", *chain.from_iterable(options.items())]
    with (work / "worker.log").open("ab") as log:
        process = subprocess.Popen(["taskset", "-c", str(WORKING_CORE), *command], stdout=log, stderr=log)
    try:
        while not up.exists():
            if process.poll() is not None:
                raise SystemExit("The Worker ended:\n" + (work / "worker.log").read_text()[-3000:])
            time.sleep(0.1)
        yield process.pid
    finally:
        peers.end(process)


class Neighbour:
    """A plain Spark on the Worker's core, suspended unless it is wanted."""

    def __init__(self, work: Path, rows: DataFrame) -> None:
        own = str(work / "of-the-neighbour")
        rows.write.option("compression", "zlib").orc(own)
        command = [sys.executable, "-m", "benchmarks.plain_rewrites", own, str(work / "rewritten")]
        with (work / "neighbour.log").open("wb") as log:
            self.process = subprocess.Popen(
                ["taskset", "-c", str(WORKING_CORE), *command],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        if self.process.stdout is None or not self.process.stdout.readline():
            raise SystemExit("The plain Spark ended:\n" + (work / "neighbour.log").read_text()[-3000:])
        os.killpg(self.process.pid, signal.SIGSTOP)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Let the neighbour run within the block."""
        os.killpg(self.process.pid, signal.SIGCONT)
        yield
        os.killpg(self.process.pid, signal.SIGSTOP)

    def end(self) -> None:
        """Kill the neighbour."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def beside(reader: Reader, client: MetastoreClient) -> list[Read]:
    """Read from the request of a compaction until its old files are gone; return the reads."""
    types = client.types
    db, _, table = TABLE.partition(".")
    request = types.CompactionRequest(dbname=db, tablename=table, type=compaction_type("major"))
    wanted = types.ShowCompactRequest(id=client.compact2(request).id)
    reads = []
    while (shown := client.show_compact(wanted).compacts[0]).state != _CLEANED:
        if shown.state not in PENDING | DONE:
            raise SystemExit(f"The compaction ended as {shown.state}: {shown.errorMessage}")
        reads.append(reader.read(shown.state))
    return reads


def row(title: str, reads: list[Read], quiet: list[Read]) -> str:
    """Return the line of some reads, beside the quiet ones."""
    if not reads:
        return f"| {title} | 0 | | | | | | |"
    times, before = [each.seconds * 1000 for each in reads], [each.seconds * 1000 for each in quiet]
    cpu, cpu_before = (statistics.median(each.cpu * 1000 for each in some) for some in (reads, quiet))
    ratios = [part(times) / part(before) for part in (statistics.median, _late)]
    return (
        f"| {title} | {len(reads)} | {statistics.median(times):.0f} | {_late(times):.0f} | {max(times):.0f} | "
        f"{ratios[0]:.2f}, {ratios[1]:.2f} | {cpu:.0f} | {cpu / cpu_before:.2f} |"
    )


def _late(times: list[float]) -> float:
    return percentile(times, 90)


def main() -> None:
    """Measure reads in quiet, beside a neighbour and beside compactions, and print a line for each."""
    chosen = options(__doc__, rows=2_000_000, runs=2)
    os.sched_setaffinity(0, {SERVING_CORE})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the neighbour is resumed
    with with_store_sales(chosen, {"spark.master": "local[1]"}, _SERVER) as (session, work, rows), ExitStack() as open_:
        contest = Contest(session, work, rows)
        neighbour = Neighbour(work, rows)
        open_.callback(neighbour.end)
        client = open_.enter_context(MetastoreClient(json.loads((work / "ready.json").read_text())["thrift"]))
        reader = Reader(session, [neighbour.process.pid, open_.enter_context(worker(work))])
        phases: dict[str, list[Read]] = {}

        def noted(phase: str, reads: list[Read]) -> None:
            phases.setdefault(phase, []).extend(reads)

        for number in range(chosen.runs + 1):
            contest.rewrite()
            reader.expect()
            for _ in range(3):
                reader.read()
            quiet = [reader.read() for _ in range(READS)]
            with neighbour.busy():
                beside_plain = [reader.read() for _ in range(READS)]
            during = beside(reader, client)
            settled = [reader.read() for _ in range(READS)]
            if number == 0:  # the first run starts the Worker's Spark, and compiles
                continue
            noted("uncompacted, quiet", quiet)
            noted("uncompacted, beside plain Spark", beside_plain)
            noted("uncompacted, beside the compaction", [each for each in during if each.state in PENDING])
            noted("compacted, quiet", settled)
            noted("compacted, beside the cleaning", [each for each in during if each.state not in PENDING])
        print(
            "| reads | number | median, ms | 90 of 100 | longest | to quiet: median, 90 | processor, ms | to quiet |\n"
            "|---|--:|--:|--:|--:|--:|--:|--:|"
        )
        for state in ("uncompacted", "compacted"):
            quiet = phases[f"{state}, quiet"]
            for phase, reads in phases.items():
                if phase.startswith(f"{state},"):
                    print(row(phase, reads, quiet))
        print(f"\n{len(reader.failed)} reads failed or read something else. {'; '.join(reader.failed[:3])}")


if __name__ == "__main__":
    main()
