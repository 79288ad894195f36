"""The cost of a server and its PostgreSQL: processor time, log written, transactions begun.

Unlike a rate, this also holds on a machine that does something else at the same time.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psycopg2

_TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Readings, or the difference of two."""

    server: float
    """Processor seconds of the server and its children."""
    postgres: float
    """Processor seconds of all processes of PostgreSQL."""
    wal: int
    """Bytes of the write-ahead log."""
    writes: int
    """PostgreSQL transactions that wrote something."""

    def since(self, before: "Spent") -> "Spent":
        """Return what was spent since ``before``."""
        return Spent(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass(frozen=True)
class Meter:
    """A meter of the cost of a server and of its PostgreSQL."""

    server_pid: int
    database_url: str

    def start(self) -> "Reader":
        """Connect a reader of this meter."""
        return Reader(self)


class Reader:
    """A meter with its connection."""

    def __init__(self, meter: Meter) -> None:
        self.server_pid = meter.server_pid
        connection = psycopg2.connect(meter.database_url)
        connection.autocommit = True
        self.cursor = connection.cursor()
        self.cursor.execute("SELECT pg_backend_pid()")
        [(backend,)] = self.cursor.fetchall()
        self.postmaster = int(_stat(backend)[1])

    def read(self) -> Spent:
        """Return what was spent until now."""
        self.cursor.execute(
            "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, "
            "pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        )
        [(wal, writes)] = self.cursor.fetchall()
        return Spent(tree_seconds(self.server_pid), postgres_seconds(self.postmaster), wal, writes)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on (proc(5) counts from there: field 3 is [0])."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS


def children(pid: int) -> list[int]:
    """Return the processes that a process's threads have started; threads come and go meanwhile."""
    pids: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            pids += map(int, (task / "children").read_text().split())
    return pids


def tree_seconds(pid: int) -> float:
    """Return the processor time of a process and its living descendants."""
    total = cpu_seconds(pid)
    for child in children(pid):
        try:
            total += tree_seconds(child)
        except FileNotFoundError:
            continue  # the process has just ended
    return total


def postgres_seconds(postmaster: int) -> float:
    """Return the processor time of PostgreSQL: the postmaster, its children, and ended children.

    Each child has one thread, so the scheduler's exact count (nanoseconds) can be used instead of the ticks.
    """
    fields = _stat(postmaster)
    total = sum(map(int, fields[11:15])) / _TICKS
    for child in children(postmaster):
        try:
            total += int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total
