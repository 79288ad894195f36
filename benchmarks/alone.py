"""A single client, and many that want one lock: calls and hand-overs a second, beside Hive's metastores.

    python -m benchmarks.alone [--runs 3] [--seconds 1] [--clients 1] [--hold 8,32] [--no-peers]

Alone: a client sends the next call when it has the answer. Contestants take turns within each row; ``server``, ``pg``:
our processor time per call in microseconds. One lock: each client asks for an exclusive lock of one table without a
transaction, checks it (at once, then as Hive's clients do: after 100 ms, then after twice as long each time) until the
lock is granted, and releases it. ``wait``: from request to grant; ``fair``: each client's wait if all wait equally
long; ``server``, ``pg``, ``client``: processor time of a hand-over, in microseconds, of the server, PostgreSQL and this
program.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks import hive, large_states, peers, scenarios
from benchmarks.contestants import MANY_OPEN, Contestant, Hive23, Hive42
from benchmarks.cpu import Meter
from benchmarks.fairness import Caller, pauses, percentile
from benchmarks.load import Address, Scenario, Steps, Tally, request
from benchmarks.rows import HIVE_2_3, HIVE_4_2
from benchmarks.transactions import Costs, own_postgres, settings
from metastore.thrift_gen.hive_metastore import ttypes

OURS = "ours"
GOAL_HANDOVERS = 300
PATIENCE_S = 5


def get_table(index: int, tally: Tally) -> Steps:
    """Call get_table again and again."""
    message = request("get_table_req", ttypes.GetTableRequest(large_states.DB, "t"))
    while True:
        yield message
        tally.done()


class Row(NamedTuple):
    """A client's work; ``goal``: a multiple of Hive 4.2.0's rate, with a single client."""

    title: str
    scenario: Scenario
    goal: float
    since_3_0: bool = False


ROWS = [
    Row("heartbeat", scenarios.heartbeat, 3),
    Row("get_open_txns", scenarios.get_open_txns, 3),
    Row("get_valid_write_ids", scenarios.get_valid_write_ids, 1, since_3_0=True),
    Row("get_table_req", get_table, 1),
    Row("open + commit", scenarios.open_commit, 5),
    Row("open + lock + heartbeat + commit", scenarios.write, 5),
    Row("lock + unlock", scenarios.lock_unlock, 1),
]


class Turn(NamedTuple):
    """A client's use of the lock."""

    lock_id: int
    asked: float
    had: float


async def take_turns(address: Address, turns: list[Turn], until: float) -> None:
    """Take and release one lock until the time is over; append a Turn for each grant."""
    caller = Caller(*await asyncio.open_connection(*address))
    component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, large_states.DB, "wanted")
    try:
        while (asked := time.perf_counter()) < until:
            wish = ttypes.LockRequest([component], None, "ann", "node1", f"bench-{uuid.uuid4()}")
            answer = await caller.call("lock", wish)
            waiting = pauses()
            while answer.state == ttypes.LockState.WAITING:
                answer = await caller.call("check_lock", ttypes.CheckLockRequest(answer.lockid))
                if answer.state == ttypes.LockState.WAITING:
                    await asyncio.sleep(next(waiting))
            turns.append(Turn(answer.lockid, asked, time.perf_counter()))
            await caller.call("unlock", ttypes.UnlockRequest(answer.lockid))
    finally:
        caller.writer.close()


async def compete(address: Address, clients: int, seconds: float) -> list[Turn]:
    """Let ``clients`` clients want one lock. Return their turns within ``seconds``."""
    turns: list[Turn] = []
    ends = time.perf_counter() + seconds
    work = [asyncio.create_task(take_turns(address, turns, ends)) for _ in range(clients)]
    done, late = await asyncio.wait(work, timeout=seconds + PATIENCE_S)
    for task in late:  # a polling client may sleep for long
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
    return [turn for turn in turns if turn.had <= ends]


def alone(servers: dict[str, Contestant], options: argparse.Namespace) -> None:
    """Measure each call with few clients and print a line for each."""
    print(
        "| alone | clients | ours /s | server | pg | Hive 2.3.10 /s | x | Hive 4.2.0 /s | x | goal met |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    )
    for row in ROWS:
        for clients in options.clients:
            runs: dict[str, list[float]] = {}
            ours = []
            for _ in range(options.runs):
                for name, server in servers.items():
                    if row.since_3_0 and name == HIVE_2_3:
                        continue
                    run = server.run(row.scenario, clients, options.seconds, options.seconds / 3)
                    runs.setdefault(name, []).append(run.per_second)
                    ours += [run] if name == OURS else []
            rates = {name: statistics.median(each) for name, each in runs.items()}
            costs = Costs.of(ours)
            beside = "".join(
                f"{rates[name]:.0f} | {rates[OURS] / rates[name]:.2f} | " if name in rates else "- | - | "
                for name in (HIVE_2_3, HIVE_4_2)
            )
            goal = row.goal if clients == 1 else 1
            times = rates[OURS] / rates[HIVE_4_2] if HIVE_4_2 in rates else 0.0
            met = "-" if not times else f"yes, {goal:g} x" if times >= goal else f"no: {times:.1f} of {goal:g} x"
            print(
                f"| {row.title} | {clients} | {rates[OURS]:.0f} | {costs.server:.0f} | {costs.postgres:.0f} | "
                f"{beside}{met} |",
                flush=True,
            )


def contended(servers: dict[str, Contestant], options: argparse.Namespace) -> None:
    """Measure the hand-overs of one lock and print a line for each server."""
    print(
        "\n| one lock | clients | hand-overs /s | wait p50, ms | p99, ms | fair, ms | overtaken "
        "| server | pg | client | goal met |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    )
    for clients in options.hold:
        for name, server in servers.items():
            reader = Meter(server.pid, server.database_url).start()
            before, own = reader.read(), time.process_time()
            turns = sorted(
                asyncio.run(compete(server.address, clients, 5 * options.seconds)), key=lambda turn: turn.had
            )
            spent = reader.read().since(before)
            costs = (spent.server, spent.postgres, time.process_time() - own)
            waits = [(turn.had - turn.asked) * 1000 for turn in turns]
            rate = len(turns) / (5 * options.seconds)
            fair = clients / rate * 1000 if rate else 0.0
            overtaken = sum(later.lock_id < earlier.lock_id for earlier, later in pairwise(turns))
            late = percentile(waits, 99)
            met = rate >= GOAL_HANDOVERS and late <= 2 * fair and not overtaken
            print(
                f"| {name} | {clients} | {rate:.1f} | {percentile(waits, 50):.0f} | {late:.0f} | {fair:.0f} | "
                f"{overtaken} | "
                + "".join(f"{seconds * 1e6 / max(1, len(turns)):.0f} | " for seconds in costs)
                + f"{('yes' if met else 'no') if name == OURS else ''} |",
                flush=True,
            )


def main() -> None:
    """Start the servers and measure them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {"type": lambda text: [int(part) for part in text.split(",")]}
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of a run; a lock is wanted for five times as long")
    parser.add_argument("--clients", **numbers, default=[1])
    parser.add_argument("--hold", **numbers, default=[8, 32], help="clients that want one lock")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="our server alone")
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)  # PostgreSQL does not run as root
        postgres = own_postgres(work, running)
        url = peers.database(postgres, "bench_ours")
        how = [f"--set={key}={value}" for key, value in MANY_OPEN.items()]
        servers = {OURS: Contestant(*running.enter_context(peers.ours(work / OURS, url, *how)), url)}
        starts = ((HIVE_4_2, Hive42, hive.hive_4_2), (HIVE_2_3, Hive23, hive.hive_2_3))
        for name, kind, start in starts if options.peers else ():
            url = peers.database(postgres, f"bench_{name}")
            try:
                servers[name] = kind(*running.enter_context(start(work / name, url, MANY_OPEN)), url)
            except hive.MissingError as missing:
                print(f"without {name}: {missing}")
        for name, server in servers.items():
            large_states.make_tables(server, t=0)
            for row in ROWS if name != OURS else ():  # a first run lets the virtual machine compile
                if not (row.since_3_0 and name == HIVE_2_3):
                    server.run(row.scenario, 1, 3 * options.seconds, 0)
        print(settings(postgres))
        alone(servers, options)
        contended({name: server for name, server in servers.items() if name != HIVE_2_3}, options)


if __name__ == "__main__":
    main()
