"""Time until `metastore serve` with its embedded PostgreSQL is ready, and the memory that it takes idle.

    python -m benchmarks.startup [--runs 5]

Ready: the ready file is there, that is, the schema is in place and every part answers.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks import peers

MB = 1024 * 1024


SIDECAR = ("--host", "127.0.0.1", "--no-loops")
"""As deploy/sidecar starts it beside a driver, on the PostgreSQL of others."""


def started(work: Path, *arguments: str) -> "tuple[float, subprocess.Popen[bytes], str]":
    """Seconds from the command to its ready file; its database's URL."""
    begin = time.perf_counter()
    process, said = peers.start_ours(work, *arguments)
    return time.perf_counter() - begin, process, said["database_url"]


def processor(pid: int) -> float:
    """Seconds of processor time so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory(pids: Iterable[int]) -> float:
    """Proportional memory in MB: pages that processes share are counted once."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n"):
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total / MB


def resident(pid: int) -> float:
    """Resident memory in MB, as `ps` and Kubernetes count it."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def postgres_of(work: Path) -> list[int]:
    """The PostgreSQL below the data directory and its children."""
    head = int((work / "data" / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
    children = Path(f"/proc/{head}/task/{head}/children").read_text().split()
    return [head, *map(int, children)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--idle", type=float, default=10, help="seconds before memory is read")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median of {options.runs} runs (lowest to highest)")
    first: list[float] = []
    later: list[float] = []
    sidecar: list[float] = []
    worked: list[float] = []
    idle = []
    for run in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            work = Path(folder)
            for times in (first, later):
                seconds, process, url = started(work)
                times.append(seconds)
                if run == 0 and times is later:
                    time.sleep(options.idle)
                    idle = [resident(process.pid), memory([process.pid]), memory(postgres_of(work))]
                if times is later:
                    seconds, beside, _ = started(work / "sidecar", *SIDECAR, "--database-url", url)
                    sidecar.append(seconds)
                    worked.append(processor(beside.pid))
                    peers.end(beside)
                peers.end(process)
    print("| | |\n|---|--:|")
    for title, times in (
        ("first start ever, until ready", first),
        ("later starts, until ready", later),
        ("a sidecar on the PostgreSQL of others, until ready", sidecar),
        ("processor time of that", worked),
    ):
        print(f"| {title} | {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f}) |")
    print(f"| memory of the server, idle: resident (proportional) | {idle[0]:.0f} MB ({idle[1]:.0f} MB) |")
    print(f"| memory of its PostgreSQL, idle: proportional, all processes | {idle[2]:.0f} MB |")


if __name__ == "__main__":
    main()
