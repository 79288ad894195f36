"""The cost of a million finished transactions behind a metastore: each call beside the same call of a new metastore.

    python -m benchmarks.retention [--finished 1000000] [--calls 300]

One client, one call at a time, the median of each call; a new and a filled metastore take turns, so that other work of
the machine affects both. It is filled in two ways. "Finished": a million transactions that committed writes to a
hundred tables within the last hour; their records are still kept, and their writes wait for compaction. "Held back": a
million more while a reader is open, so that neither their write sets nor the owners of their write ids may be removed.
The house-keepers run as usual.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg2

from benchmarks import peers
from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes

TABLES = 100
ALLOWED = 1.5
"""A ratio to the cost of a new metastore, above which a call is a finding."""
NOISE_MS = 0.3

FINISHED = """
INSERT INTO txns (id, state, type, "user", host, started_at, last_heartbeat_at, ended_at, commit_id)
SELECT n, 'committed', 0, 'ann', 'h1', metastore_now(), metastore_now(), metastore_now(), n
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n;
INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
SELECT n, 'hive', 'db', 't' || n %% %(tables)s, 'p=' || n %% 1000, n / %(tables)s + %(offset)s, n %% 3 = 0,
       metastore_now()
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n;
INSERT INTO next_write_ids (catalog, db, "table", next_write_id, purged_write_id)
SELECT 'hive', 'db', 't' || n, %(last)s / %(tables)s + %(offset)s + 2, %(purged)s
FROM generate_series(0, %(tables)s - 1) AS n
ON CONFLICT (catalog, db, "table") DO UPDATE SET next_write_id = excluded.next_write_id,
    purged_write_id = excluded.purged_write_id;
UPDATE txn_counter SET next_txn_id = %(last)s + 1, reserved_until = %(last)s + 10000;
"""
HELD_BACK = """
INSERT INTO write_sets (txn_id, commit_id, catalog, db, "table", partition, operation)
SELECT n, n, 'hive', 'db', 't' || n %% %(tables)s, 'p=' || n %% 1000, 'u'
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n;
INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
SELECT n, 'hive', 'db', 't' || n %% %(tables)s, n / %(tables)s + %(offset)s
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n;
"""


class Writer:
    """A client that sends one call at a time, and notes the time of each."""

    def __init__(self, client: MetastoreClient) -> None:
        self.client = client
        self.seconds: dict[str, list[float]] = {}

    def timed(self, name: str, call: Callable[..., object], *arguments: object) -> object:
        """Call ``call`` and note its time below ``name``."""
        began = time.perf_counter()
        answer = call(*arguments)
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        return answer

    def round(self, number: int) -> None:
        """Run a writer's transaction, a lock without a transaction, and the calls that people look at."""
        client, table = self.client, f"t{number % TABLES}"
        [txn] = self.timed("open_txns", client.open_txns, ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
        self.timed("get_open_txns", client.get_open_txns)
        component = ttypes.LockComponent(
            ttypes.LockType.SHARED_WRITE,
            ttypes.LockLevel.PARTITION,
            "db",
            table,
            f"p={number}",
            ttypes.DataOperationType.UPDATE,
            isTransactional=True,
        )
        request = ttypes.LockRequest([component], txn, "ann", "h1", "bench")
        lock = self.timed("lock", client.lock, request)
        self.timed("check_lock", client.check_lock, ttypes.CheckLockRequest(lock.lockid, txn))
        self.timed(
            "allocate_table_write_ids",
            client.allocate_table_write_ids,
            ttypes.AllocateTableWriteIdsRequest("db", table, [txn]),
        )
        self.timed("get_valid_write_ids", client.get_valid_write_ids, ttypes.GetValidWriteIdsRequest([f"db.{table}"]))
        self.timed("get_latest_txnid_in_conflict", client.get_latest_txnid_in_conflict, txn)
        self.timed(
            "add_dynamic_partitions",
            client.add_dynamic_partitions,
            ttypes.AddDynamicPartitions(txn, 1, "db", table, [f"p={number}"], ttypes.DataOperationType.UPDATE),
        )
        self.timed("heartbeat", client.heartbeat, ttypes.HeartbeatRequest(0, txn))
        self.timed("commit_txn of a writer", client.commit_txn, ttypes.CommitTxnRequest(txn))
        [txn] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
        self.timed("commit_txn, empty", client.commit_txn, ttypes.CommitTxnRequest(txn))
        [txn] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
        self.timed("abort_txn", client.abort_txn, ttypes.AbortTxnRequest(txn))
        alone = ttypes.LockRequest(
            [ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "lake", table)],
            None,
            "ann",
            "h1",
            "bench",
        )
        held = self.timed("lock, no transaction", client.lock, alone)
        self.timed("show_locks", client.show_locks, ttypes.ShowLocksRequest("lake", table))
        self.timed("unlock", client.unlock, ttypes.UnlockRequest(held.lockid))
        self.timed("get_open_txns_info", client.get_open_txns_info)


def medians(first: str, second: str, rounds: int) -> list[dict[str, float]]:
    """Return the milliseconds of each call of two servers that take turns."""
    with MetastoreClient(first) as first_client, MetastoreClient(second) as other:
        writers = [Writer(first_client), Writer(other)]
        for number in range(rounds + rounds // 10):
            if number == rounds // 10:  # the rounds until now were a warm-up
                for writer in writers:
                    writer.seconds.clear()
            for writer in writers:
                writer.round(number)
        return [
            {name: statistics.median(seconds) * 1000 for name, seconds in writer.seconds.items()} for writer in writers
        ]


def fill(url: str, finished: int, *, held_back: bool) -> None:
    """Add a million transactions, followed by the work that PostgreSQL does by itself within a minute or two."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("SELECT next_txn_id FROM txn_counter")
    [first] = cursor.fetchone()
    last = first + finished - 1
    cursor.execute(
        FINISHED + (HELD_BACK if held_back else ""),
        {
            "first": first,
            "last": last,
            "tables": TABLES,
            "purged": (first if held_back else last) // TABLES,
            "offset": 100_000 if held_back else 0,
        },
    )  # beyond the ids of the rounds before
    cursor.execute("VACUUM ANALYZE")
    connection.close()


def states(finished: int, calls: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the measurements by the names of their columns."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        started = []
        for kind in ("new", "filled"):
            process, ready = peers.start_ours(Path(name) / kind)
            running.callback(peers.end, process)
            started.append(ready)
        new, filled = (ready["thrift"] for ready in started)
        url = started[1]["database_url"]
        fill(url, finished, held_back=False)
        yield from zip(("new", f"{finished:,} finished"), medians(new, filled, calls), strict=True)
        reader = running.enter_context(MetastoreClient(filled))
        reader.open_txns(ttypes.OpenTxnRequest(1, "reader", "h1"))
        fill(url, finished, held_back=True)
        yield from zip(("new again", f"{finished:,} held back"), medians(new, filled, calls), strict=True)


def main() -> int:
    """Measure the calls in each state and print their times. Return 1 if one became slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finished", type=int, default=1_000_000, help="transactions in each of the two fillings")
    parser.add_argument("--calls", type=int, default=300, help="rounds of calls in each state")
    options = parser.parse_args()
    results = dict(states(options.finished, options.calls))
    names = list(results)
    print(f"| call (median, ms) | {' | '.join(names)} | worst ratio |\n|---|{'---|' * (len(names) + 1)}")
    slower = []
    for call in results[names[0]]:
        times = [results[name][call] for name in names]
        pairs = [times[:2], times[2:]]
        ratio = max(filled / new for new, filled in pairs)
        if any(filled > new * ALLOWED + NOISE_MS for new, filled in pairs):
            slower.append(call)
        print(f"| {call} | {' | '.join(f'{milliseconds:.2f}' for milliseconds in times)} | {ratio:.2f} |")
    if slower:
        print(f"\nmore than {ALLOWED} x: {', '.join(slower)}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
