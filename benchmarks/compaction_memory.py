"""The memory and open files of a compaction, by the number of deltas and of deletes.

    python -m benchmarks.compaction_memory [--deltas 1000,10000] [--deletes 1000000,10000000]

Deltas: a table of so many deltas with 100 rows each, compacted minor and major; then a base with so many deltas of 10
deletes each. Deletes: so many of a base of 20 million rows, in one delta, compacted major. Each compaction runs in a
Spark of its own whose tasks run in another JVM (``local-cluster``), so that the driver's memory is measured separately.
Heap: the largest heap after a garbage collection. Files: the highest number of open files of each of the three
processes, sampled together every 20 ms.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil
import pyarrow as pa
import pyspark
from pyarrow import compute, orc
from pyspark.sql import SparkSession

from metastore.acid.bucket import encode
from metastore.acid.events import DELETE_EVENT, EVENT_COLUMNS, INSERT_EVENT
from metastore.acid.names import VERSION_FILE, VERSION_TEXT, BaseName, DeltaName, bucket_file
from metastore.acid_tables.table import HiveColumn
from metastore.compaction.working.job_specification import CompactionJobSpec
from metastore.spark.compaction.job import run

_ROWS_OF_A_DELTA, _ROWS_OF_A_BASE, _BUCKETS = 100, 20_000_000, 2
_PIECE = 1_000_000
_LOOK_S = 0.02
_LEFT = re.compile(r"->(\d+)M\(")
HEAP = 1024
SPEC = CompactionJobSpec(1, 1, "", "hive", "bench", "t", "", "", "", "", 1_000_000_000, 0)
"""The base of all specifications; the kind, the place and the snapshot are added later."""


class Held(NamedTuple):
    """The highest use of a compaction, in megabytes but for ``files``."""

    seconds: float
    python: int
    driver: int
    heap: int
    tasks: int
    files: int


def events(operation: int, write_id: int, bucket: int, row_ids: pa.Array, current: int) -> pa.Table:
    """Return a table of ACID events, one for each row id."""
    rows = len(row_ids)
    mask = pa.repeat(pa.scalar(value=True), rows) if operation == DELETE_EVENT else None
    row = pa.StructArray.from_arrays([compute.cast(row_ids, pa.int32())], ["id"], mask=mask)
    columns = [
        _same(operation, rows, pa.int32()),
        _same(write_id, rows, pa.int64()),
        _same(encode(bucket), rows, pa.int32()),
        row_ids,
        _same(current, rows, pa.int64()),
        row,
    ]
    return pa.table(columns, names=list(EVENT_COLUMNS))


def _same(value: int, rows: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows)


def write(directory: Path, bucket: int, pieces: Iterator[pa.Table]) -> None:
    """Write a bucket of a base, delta or delete delta, as a writer of version 2 of ACID does."""
    directory.mkdir(exist_ok=True)
    (directory / VERSION_FILE).write_bytes(VERSION_TEXT)
    with orc.ORCWriter(str(directory / bucket_file(bucket)), compression="snappy") as file:
        for piece in pieces:
            file.write(piece)


def write_deltas(location: Path, count: int) -> None:
    """Write ``count`` delta directories of a few rows each."""
    row_ids = pa.array(range(_ROWS_OF_A_DELTA), pa.int64())
    for write_id in range(1, count + 1):
        name = DeltaName(write_id, write_id, 0)
        write(location / str(name), 0, iter([events(INSERT_EVENT, write_id, 0, row_ids, write_id)]))


def spread(operation: int, bucket: int, current: int, rows: int, first: int = 0, step: int = 1) -> Iterator[pa.Table]:
    """Yield events for so many rows of write id 1, from ``first`` on, one in every ``step``."""
    for start in range(first, rows, _PIECE * step):
        row_ids = pa.array(range(start, min(start + _PIECE * step, rows), step), pa.int64())
        yield events(operation, 1, bucket, row_ids, current)


def write_delete_deltas(location: Path, count: int) -> None:
    """Write a base with 100 rows for each of ``count`` delete deltas, which delete ten rows each."""
    rows = count * _ROWS_OF_A_DELTA
    write(location / str(BaseName(1)), 0, spread(INSERT_EVENT, 0, 1, rows))
    for number in range(count):
        current = number + 2
        name = DeltaName(current, current, 0, is_delete=True)
        write(location / str(name), 0, spread(DELETE_EVENT, 0, current, rows, number, rows // 10))


def write_deletes(location: Path, count: int) -> None:
    """Write a base, and one delete delta of rows that are spread evenly over it."""
    rows = _ROWS_OF_A_BASE // _BUCKETS
    for bucket in range(_BUCKETS):
        write(location / str(BaseName(1)), bucket, spread(INSERT_EVENT, bucket, 1, rows))
        deletes = spread(DELETE_EVENT, bucket, 2, rows, step=_ROWS_OF_A_BASE // count)
        write(location / str(DeltaName(2, 2, 0, is_delete=True)), bucket, deletes)


def compact(spec: CompactionJobSpec, gc_log: str) -> None:
    """Run the job, in a process of its own."""
    spark = (
        SparkSession.builder.master(f"local-cluster[1,{os.cpu_count() or 1},{HEAP}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", f"{HEAP}m")
        .config("spark.executor.memory", f"{HEAP}m")
        .config("spark.driver.host", "localhost")
        .config("spark.driver.extraJavaOptions", f"-Duser.timezone=UTC -Xlog:gc:file={gc_log}")
        .config("spark.executor.extraJavaOptions", "-Duser.timezone=UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    result = run(spark, spec, [HiveColumn("id", "int")])
    spark.stop()
    print(f"{result.rows_in} events in, {result.rows_out} out, {result.rows_deleted} rows deleted", file=sys.stderr)


def watched(spec: CompactionJobSpec, work: Path) -> Held:
    """Run a compaction in a process of its own. Return the most memory and files that it held."""
    gc_log, begin = work / "gc.log", time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.compaction_memory", "--job", spec.to_json(), str(gc_log)]
    most: dict[str, int] = {}
    files: dict[str, int] = {}
    process = subprocess.Popen(command)
    while process.poll() is None:
        for each in _family(process.pid):
            with suppress(psutil.Error, OSError, IndexError, StopIteration):  # the process has just ended
                who = _who(each)
                files[who] = max(files.get(who, 0), each.num_fds())
                most[who] = max(most.get(who, 0), _peak(each.pid))
        time.sleep(_LOOK_S)
    if process.returncode:
        raise SystemExit(f"The compaction ended with {process.returncode}")
    left = [int(found) for found in _LEFT.findall(gc_log.read_text())]
    gc_log.unlink()
    return Held(
        time.perf_counter() - begin,
        most.get("python", 0),
        most.get("driver", 0),
        max(left, default=0),
        most.get("tasks", 0),
        sum(files.values()),
    )


def _family(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        whole = psutil.Process(pid)
        return [whole, *whole.children(recursive=True)]
    return []


def _who(process: psutil.Process) -> str:
    words = process.cmdline()
    if "java" not in words[0]:
        return "python"
    return "tasks" if any("CoarseGrainedExecutorBackend" in word for word in words) else "driver"


def _peak(pid: int) -> int:
    """Return the peak of resident memory in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) >> 10


def row(title: str, held: Held) -> str:
    """Return the line of a measurement."""
    return (
        f"| {title} | {held.seconds:.0f} | {held.python} | {held.driver} | {held.heap} | {held.tasks} | {held.files} |"
    )


def main() -> None:
    """Measure compactions of many deltas and of many deletes; with ``--job``, run one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {"type": lambda text: [int(part) for part in text.split(",") if part]}
    parser.add_argument("--deltas", **numbers, default=[1000, 10_000])
    parser.add_argument("--deletes", **numbers, default=[1_000_000, 10_000_000])
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.job:
        compact(CompactionJobSpec.from_json(chosen.job[0]), chosen.job[1])
        return
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Spark {pyspark.__version__}, driver and tasks with a "
        f"heap of {HEAP} MB each\n\n"
        "| | s | Python, MB | driver, MB | its heap, MB | tasks, MB | open files |\n|---|--:|--:|--:|--:|--:|--:|",
        flush=True,
    )
    tables = [
        *((f"{count} deltas", write_deltas, count, count, ("minor", "major")) for count in chosen.deltas),
        *((f"{count} deltas of deletes", write_delete_deltas, count, count + 1, ("major",)) for count in chosen.deltas),
        *((f"{count} deletes", write_deletes, count, 2, ("major",)) for count in chosen.deletes),
    ]
    for title, made, count, mark, kinds in tables:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            location = Path(folder, "t")
            location.mkdir()
            made(location, count)
            for number, kind in enumerate(kinds):
                here = replace(
                    SPEC,
                    kind=kind,
                    location=str(location),
                    write_ids=f"bench.t:{mark}:9223372036854775807::",
                    txn_id=SPEC.txn_id + number,
                    highest_write_id=mark,
                )
                print(row(f"{kind}, {title}", watched(here, Path(folder))), flush=True)
                for output in location.glob(f"*_v{here.txn_id}"):
                    shutil.rmtree(output)


if __name__ == "__main__":
    main()
