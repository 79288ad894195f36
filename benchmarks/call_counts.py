"""The cost of each call in figures that a busy machine does not change, and the changes of these figures.

    python -m benchmarks.call_counts                   the table, measured now
    python -m benchmarks.call_counts --write           ... into call_counts.txt, with which `make test` compares
    python -m benchmarks.call_counts --against HEAD~5  what differs from another revision's server

Counts between the server and PostgreSQL, for a single client: messages that wait for an answer (round trips),
statements besides BEGIN and COMMIT, how often a session waited for the write-ahead log to reach the disk, and bytes.
Each is the least of a few calls, since a call sometimes also does work that is due just then: it reserves a block of
ids, or prepares a statement that this session has not used yet. A check that waits is parked for ``PATIENCE``, and
checks again at the end.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks.counted_calls import CASES, World
from benchmarks.peers import database, end, start_ours
from benchmarks.transactions import own_postgres
from benchmarks.wiretap import Wiretap
from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes

EXPECTED = Path(__file__).with_suffix(".txt")
ROUNDS = 3
PATIENCE = "1s"
"""The server's metastore.lock.check.wait: the longest time from a parked check to the release."""
HAND_OVER = "unlock, and the answer to who is next"
_QUIET_S = 0.05
_UNCOUNTED = ("BEGIN", "COMMIT", "PREPARE")
_FLUSHES = "SELECT sum(writes) FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE object = 'wal'"
_HEAD = "# Written by `python -m benchmarks.call_counts --write`, where the columns are explained.\n"


class Counts(NamedTuple):
    """The cost of a call."""

    trips: int
    statements: int
    flushes: int
    sent: int
    """The bytes sent to PostgreSQL."""
    received: int

    def differs(self, expected: "Counts") -> bool:
        """Return True for other trips or statements, more flushes, or bytes that longer ids do not explain.

        A flush may be missing, if PostgreSQL's own writer of the log was quicker. Fewer bytes are a difference as well:
        a table with too high numbers would hide later additions.
        """
        return (
            self[:2] != expected[:2]
            or self.flushes > expected.flushes
            or any(abs(now - then) > 0.1 * then + 100 for now, then in zip(self[3:], expected[3:], strict=True))
        )


def measured(client: MetastoreClient, tap: Wiretap, place: Path) -> dict[str, Counts]:
    """Return the counts of every case, of a server that only this wiretap listens to; ``place``: for its tables."""
    world = World(client)
    world.fill(place)
    counts = {name: _least(_counted(world, tap, name) for _ in range(ROUNDS)) for name in CASES}
    return counts | {HAND_OVER: _least(_hand_over(world, tap) for _ in range(ROUNDS))}


def _counted(world: World, tap: Wiretap, name: str) -> Counts:
    world.clear()
    arguments = CASES[name](world)
    before = _flushes(tap)
    tap.taken()
    getattr(world.client, name.split(maxsplit=1)[0])(*arguments)
    return _since(before, tap)


def _hand_over(world: World, tap: Wiretap) -> Counts:
    """Count from a release to the answer of another client's check that is parked behind the lock."""
    with MetastoreClient(world.client.uri) as another, ThreadPoolExecutor(1) as background:
        while True:
            world.clear()
            first, second = world.held(), world.held()
            tap.taken()
            answer = background.submit(another.check_lock, ttypes.CheckLockRequest(lockid=second))
            seen = 0
            while not seen or seen < len(tap.exchanges):  # wait until the check is parked
                seen = len(tap.exchanges)
                time.sleep(_QUIET_S)
            before = _flushes(tap)
            tap.taken()
            world.client.unlock(ttypes.UnlockRequest(lockid=first))
            if answer.result().state == ttypes.LockState.ACQUIRED:
                return _since(before, tap)


def _since(flushes: int, tap: Wiretap) -> Counts:
    """Return the counts since the wiretap was emptied, and since the number of flushes was ``flushes``."""
    exchanges = tap.taken()
    return Counts(
        trips=len(exchanges),
        statements=sum(not done.startswith(_UNCOUNTED) for exchange in exchanges for done in exchange.done),
        flushes=_flushes(tap) - flushes,
        sent=sum(5 + len(exchange.sql.encode()) for exchange in exchanges),
        received=sum(exchange.received for exchange in exchanges),
    )


def _flushes(tap: Wiretap) -> int:
    """Return how often the server's sessions have flushed the log. Sessions that need not wait leave it to others."""
    tap.ask("SELECT pg_stat_force_next_flush()")
    return sum(int(count or 0) for [count] in tap.ask(_FLUSHES))


def _least(rounds: Iterable[Counts]) -> Counts:
    return Counts(*map(min, zip(*rounds, strict=True)))


def text(counts: Mapping[str, Counts]) -> str:
    """Return the table as text."""
    titles = ("call", "trips", "statements", "flushes", "bytes sent", "received")
    rows = [titles, *((name, *map(str, each)) for name, each in counts.items())]
    return "".join(f"{row[0]:44}" + "".join(f"{cell:>12}" for cell in row[1:]) + "\n" for row in rows)


def expected() -> dict[str, Counts]:
    """Return the table in the file."""
    _, _, *lines = EXPECTED.read_text().splitlines()
    rows = [line.rsplit(maxsplit=5) for line in lines]
    return {name: Counts(*map(int, counts)) for name, *counts in rows}


def behind_a_wiretap(work: Path, running: ExitStack, tree: Path | None = None) -> tuple[str, Wiretap, str]:
    """Start a server; return its address, the wiretap on its way to PostgreSQL, and the URL of its database.

    ``tree``: where its source is, if it is not ours.
    """
    work.mkdir(exist_ok=True)
    url = database(own_postgres(work, running), "bench_counts")
    address = urlsplit(url)
    tap = running.enter_context(Wiretap(address.hostname or "", address.port or 0))
    tapped = address._replace(netloc=address.netloc.replace(f":{address.port}", f":{tap.port}")).geturl()
    path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = str(tree or Path(__file__).parents[1])
    try:
        how = ("--no-loops", "--set", f"metastore.lock.check.wait={PATIENCE}")
        server, ready = start_ours(work, "--database-url", tapped, *how)
    finally:
        os.environ["PYTHONPATH"] = path
    running.callback(end, server)
    return ready["thrift"], tap, url


def served(work: Path, running: ExitStack, revision: str | None = None) -> dict[str, Counts]:
    """Return the counts of a server of its own, of the working tree or of another revision."""
    tree = None
    if revision is not None:
        tree = work / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", "--force", tree, revision], check=True)
        running.callback(subprocess.run, ["git", "worktree", "remove", "--force", tree], check=True)
    uri, tap, _ = behind_a_wiretap(work, running, tree)
    with MetastoreClient(uri) as client:
        return measured(client, tap, work)


def differences(then: Mapping[str, Counts], now: Mapping[str, Counts]) -> str:
    """Return the lines of both tables that differ."""
    changed = [
        name
        for name, counts in now.items()
        if name not in then or counts.differs(then[name]) or then[name].differs(counts)
    ]
    return "before\n{}\nnow\n{}".format(
        *(text({name: counts[name] for name in changed if name in counts}) for counts in (then, now))
    )


def main() -> None:
    """Print the counts of every case, write them, or print what differs from a revision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {EXPECTED.name}")
    parser.add_argument("--against", metavar="REVISION", help="of git")
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)  # PostgreSQL does not run as root
        now = served(work / "now", running)
        if options.against:
            print(differences(served(work / "then", running, options.against), now))
        elif options.write:
            EXPECTED.write_text(_HEAD + text(now))
        else:
            print(text(now))


if __name__ == "__main__":
    main()
