"""Many writers of one Iceberg table: a test of the lock's order, of its hand-over time, and that each writer gets it.

    python -m benchmarks.fairness [--writers 32] [--seconds 20] [--peers hive_4_2]

Each writer repeats the commit of Iceberg's Hive catalog: an exclusive lock without a transaction, get_table_req,
alter_table with a parameter that counts, unlock. A writer that has to wait polls as Hive's clients do: after 100 ms,
then each time after twice as long. The server may hold back the answer to such a poll until the lock is granted
(metastore.lock.check.wait); a server with that setting and one without it are two contestants. At the end the table
must have counted every commit. Failed writers include those that are not served within PATIENCE_S after the last of
them could ask.

Hand-over: from the moment when a writer sends unlock to the moment when the next writer knows that it has the lock.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import hive, peers
from benchmarks.contestants import Contestant
from benchmarks.load import Address, request, result, skipped_to_the_end
from benchmarks.rows import HIVE_4_2
from benchmarks.transactions import own_postgres, settings
from metastore.thrift_gen.hive_metastore import ttypes

DB, TABLE = "lake", "events"
WANTED = ttypes.GetTableRequest(DB, TABLE)
GOAL_MS = 20
PATIENCE_S = 20
"""The seconds for which writers may still wait once no writer asks again."""


@dataclass
class Turn:
    """One writer's commit."""

    asked: float
    lock_id: int
    granted: float = 0.0
    released: float = 0.0


@dataclass
class Counted:
    """The counts of a run."""

    turns: list[Turn] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    counted: int = 0
    seconds: float = 0.0


class Caller:
    """A connection of a writer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def call(self, method: str, *arguments: Any) -> Any:
        """Send a call and return its result. Raises: ConnectionError."""
        self.writer.write(request(method, *arguments))
        reply = b""
        while not reply or reply[-1] or not skipped_to_the_end(reply):
            more = await self.reader.read(1 << 16)
            if not more:
                raise ConnectionError("the server closed the connection")
            reply += more
        return result(method, reply)


def pauses() -> Iterator[float]:
    """Yield the pauses, in seconds, between the polls of Hive's DbLockManager."""
    pause = 0.1
    while True:
        yield pause
        pause = min(2 * pause, 60.0)


async def commit(caller: Caller, tally: Counted, number: int) -> None:
    """Commit as Iceberg does."""
    component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, DB, TABLE)
    asked_at = time.perf_counter()
    answer = await caller.call(
        "lock", ttypes.LockRequest([component], None, f"writer{number}", "node1", f"Iceberg-{uuid.uuid4()}")
    )
    turn = Turn(asked_at, answer.lockid)
    for pause in pauses():
        if answer.state != ttypes.LockState.WAITING:
            break
        await asyncio.sleep(pause)
        answer = await caller.call("check_lock", ttypes.CheckLockRequest(turn.lock_id))
    turn.granted = time.perf_counter()
    table = (await caller.call("get_table_req", WANTED)).table
    table.parameters["commits"] = str(int(table.parameters["commits"]) + 1)
    await caller.call("alter_table", DB, TABLE, table)
    turn.released = time.perf_counter()
    await caller.call("unlock", ttypes.UnlockRequest(turn.lock_id))
    tally.turns.append(turn)


async def writer(address: Address, tally: Counted, number: int, until: float) -> None:
    """Commit to the table until the time is over, and note the first failure."""
    caller = Caller(*await asyncio.open_connection(*address))
    try:
        while time.perf_counter() < until:
            await asyncio.wait_for(commit(caller, tally, number), until - time.perf_counter() + PATIENCE_S)
    except Exception as error:  # noqa: BLE001 - whatever the error is, this writer failed
        tally.failures.append(f"{type(error).__name__}: {error}")
    finally:
        caller.writer.close()


async def compete(address: Address, writers: int, seconds: float) -> Counted:
    """Let ``writers`` writers commit to one table at once."""
    tally = Counted()
    begin = time.perf_counter()
    await asyncio.gather(*(writer(address, tally, number, begin + seconds) for number in range(writers)))
    tally.seconds = time.perf_counter() - begin
    return tally


def make_table(server: Contestant, work: Path) -> None:
    """Create the table as Iceberg does, with a schema of some size."""
    with server.client() as client:
        client.create_database(ttypes.Database(DB, "", f"file:{work}/{DB}.db", {}))
        columns = [ttypes.FieldSchema(f"column{i}", "string", "") for i in range(20)]
        client.create_table(
            ttypes.Table(
                TABLE,
                DB,
                "ann",
                0,
                0,
                0,
                ttypes.StorageDescriptor(
                    columns,
                    f"file:{work}/{DB}.db/{TABLE}",
                    "org.apache.hadoop.mapred.FileInputFormat",
                    "org.apache.hadoop.mapred.FileOutputFormat",
                    numBuckets=0,
                    bucketCols=[],
                    sortCols=[],
                    parameters={},
                    serdeInfo=ttypes.SerDeInfo("", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {}),
                ),
                [],
                {
                    "EXTERNAL": "TRUE",
                    "table_type": "ICEBERG",
                    "metadata_location": "file:/metadata/0.json",
                    "commits": "0",
                },
                tableType="EXTERNAL_TABLE",
            )
        )


def measure(server: Contestant, work: Path, writers: int, seconds: float) -> Counted:
    """Create the table, let the writers commit, and count the commits that it shows."""
    make_table(server, work)
    tally = asyncio.run(compete(server.address, writers, seconds))
    with server.client() as client:
        tally.counted = int(client.get_table_req(WANTED).table.parameters["commits"])
    return tally


def percentile(values: list[float], percent: float) -> float:
    """Return the value below which ``percent`` of the values are."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else float("nan")


def report(title: str, tally: Counted, *, goal: bool) -> None:
    """Print the line of a measurement, and whether the goal is met."""
    turns = sorted(tally.turns, key=lambda turn: turn.granted)
    pairs = list(pairwise(turns))
    waited = [pair for pair in pairs if pair[1].asked < pair[0].released]  # otherwise no writer waited for a hand-over
    gaps = [(later.granted - earlier.released) * 1000 for earlier, later in waited]
    waits = [(turn.granted - turn.asked) * 1000 for turn in turns]
    overtakings = sum(later.lock_id < earlier.lock_id for earlier, later in pairs)
    together = sum(later.granted < earlier.released for earlier, later in pairs)
    whole = not tally.failures and tally.counted == len(turns) and not together
    met = whole and not overtakings and percentile(gaps, 99) <= GOAL_MS
    print(
        f"| {title} | {len(turns)} | {len(tally.failures)} | {len(turns) / tally.seconds:.0f} | {overtakings} | "
        f"{percentile(gaps, 50):.1f} | {percentile(gaps, 99):.1f} | {max(gaps, default=0):.1f} | "
        f"{statistics.median(waits) if waits else 0:.0f} | {percentile(waits, 99):.0f} | "
        f"{'' if not goal else 'yes' if met else 'no'} |",
        flush=True,
    )
    if tally.counted != len(turns) or together:
        print(f"  the table counted {tally.counted} of {len(turns)} commits; lock held by two: {together}")
    for failure in tally.failures[:3]:
        print(f"  {failure}")


def main() -> None:
    """Start the servers and measure them with many writers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--peers", default=HIVE_4_2, help=f"{HIVE_4_2} or nothing")
    parser.add_argument("--wait", default="5s", help="metastore.lock.check.wait of the server that wakes")
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)
        url = own_postgres(work, running)
        print(
            f"{settings(url)}\n{options.writers} writers of one table for {options.seconds:g} s; times in ms; goal: "
            f"all succeed, nobody is overtaken, hand-over within {GOAL_MS} ms (p99)"
        )
        print(
            "| server | commits | failed | commits /s | overtaken | hand-over p50 | p99 | longest | wait p50 | p99 | "
            "goal met |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|",
            flush=True,
        )
        for title, wait in (("ours, waking", options.wait), ("ours, polled", "0ms")):
            name = title.replace(", ", "_")
            database = peers.database(url, f"bench_{name}")
            with peers.ours(work / name, database, f"--set=metastore.lock.check.wait={wait}") as (address, pid):
                server = Contestant(address, pid, database)
                report(title, measure(server, work / name, options.writers, options.seconds), goal=wait != "0ms")
        if HIVE_4_2 in options.peers.split(","):
            database = peers.database(url, "bench_hive_4_2")
            try:
                with hive.hive_4_2(work / HIVE_4_2, database, {}) as (address, pid):
                    server = Contestant(address, pid, database)
                    report("Hive 4.2.0", measure(server, work / HIVE_4_2, options.writers, options.seconds), goal=False)
            except hive.MissingError as missing:
                print(f"without Hive 4.2.0: {missing}")


if __name__ == "__main__":
    main()
