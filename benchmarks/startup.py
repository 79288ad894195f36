"""Time until `metastore serve` with its embedded PostgreSQL is ready, and the memory that it takes idle.

    python -m benchmarks.startup [--runs 5] [--beside CHECKOUT]

Ready: the ready file exists, so the schema is in place and every part answers. CHECKOUT: another version of this
project (``git worktree add CHECKOUT COMMIT``), which takes turns with this one.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks import peers

MB = 1024 * 1024


SIDECAR = ("--host", "127.0.0.1", "--no-loops")
"""The options of deploy/sidecar, which starts a server beside a driver, on an existing PostgreSQL."""


IMPORTED = """
import sys, time
begun = time.process_time()
import metastore.__main__, metastore.cli.main, metastore.cli.serve, metastore.app
print(time.process_time() - begun, len(sys.modules))
"""


def imported(checkout: Path | None) -> tuple[float, int]:
    """Measure seconds of processor time of importing the server, and how many modules there are then."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTED],
        check=True,
        capture_output=True,
        text=True,
        env=peers.environment_of(checkout),
    )
    seconds, modules = done.stdout.split()
    return float(seconds), int(modules)


def started(work: Path, *arguments: str, checkout: Path | None = None) -> "tuple[float, subprocess.Popen[bytes], str]":
    """Measure seconds from the command to its ready file; return the database's URL too."""
    begin = time.perf_counter()
    process, said = peers.start_ours(work, *arguments, checkout=checkout)
    return time.perf_counter() - begin, process, said["database_url"]


def processor(pid: int) -> float:
    """Return the seconds of processor time so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory(pids: Iterable[int]) -> float:
    """Return proportional memory in MB: pages that processes share are counted once."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n"):
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total / MB


def resident(pid: int) -> float:
    """Return resident memory in MB, as `ps` and Kubernetes count it."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def postgres_of(work: Path) -> list[int]:
    """Return the PostgreSQL below the data directory and its children."""
    head = int((work / "data" / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
    children = Path(f"/proc/{head}/task/{head}/children").read_text().split()
    return [head, *map(int, children)]


class Measured:
    """The measurements of a version's runs."""

    def __init__(self, checkout: Path | None) -> None:
        self.checkout = checkout
        self.rows: dict[str, list[float]] = {}
        self.modules = 0
        self.memory: list[float] = []

    def note(self, title: str, value: float) -> None:
        """Add a value below ``title``."""
        self.rows.setdefault(title, []).append(value)

    def run(self, idle_s: float) -> None:
        """Start it three times: for the first time, later, and beside the later one as a sidecar."""
        seconds, self.modules = imported(self.checkout)
        self.note("processor time of the import", seconds)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            work = Path(folder)
            seconds, process, _ = started(work, checkout=self.checkout)
            self.note("first start ever, until ready", seconds)
            self.note("processor time of that, without PostgreSQL", processor(process.pid))
            peers.end(process)
            seconds, process, url = started(work, checkout=self.checkout)
            self.note("later starts, until ready", seconds)
            self.note("processor time of that, without PostgreSQL, later", processor(process.pid))
            if not self.memory:
                time.sleep(idle_s)
                self.memory = [resident(process.pid), memory([process.pid]), memory(postgres_of(work))]
            arguments = (*SIDECAR, "--database-url", url)
            seconds, beside, _ = started(work / "sidecar", *arguments, checkout=self.checkout)
            self.note("a sidecar on the PostgreSQL of others, until ready", seconds)
            self.note("processor time of that", processor(beside.pid))
            peers.end(beside)
            peers.end(process)


def main() -> None:
    """Start each version several times and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--idle", type=float, default=10, help="seconds before memory is read")
    parser.add_argument("--beside", type=Path, help="another checkout, which is measured as well")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median of {options.runs} runs (lowest to highest)")
    versions = [Measured(None), *([Measured(options.beside.resolve())] if options.beside else [])]
    for _ in range(options.runs):
        for version in versions:
            version.run(options.idle)
    others = len(versions) > 1
    print("| | this version |" + (" the other one | part |" if others else ""))
    print("|---|--:|" + ("--:|--:|" if others else ""))
    for title in versions[0].rows:
        times = [version.rows[title] for version in versions]
        cells = [f"{statistics.median(one):.2f} s ({min(one):.2f} to {max(one):.2f})" for one in times]
        if others:
            cells.append(f"{statistics.median(times[0]) / statistics.median(times[1]):.2f}")
        print(f"| {title} | {' | '.join(cells)} |")
    for title, text in (
        ("modules after the import", lambda one: str(one.modules)),
        (
            "memory of the server, idle: resident (proportional)",
            lambda one: f"{one.memory[0]:.0f} MB ({one.memory[1]:.0f} MB)",
        ),
        ("memory of its PostgreSQL, idle: proportional, all processes", lambda one: f"{one.memory[2]:.0f} MB"),
    ):
        print(f"| {title} | {' | '.join(map(text, versions))} |" + (" |" if others else ""))


if __name__ == "__main__":
    main()
