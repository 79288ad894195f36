"""A catalog of 200,000 tables and a table of 1,000,000 partitions: the time to make it, and the cost of a part of it.

    python -m benchmarks.large_catalog [--tables 200000] [--partitions 1000000]

PostgreSQL makes the rows itself, as many as a restored dump would have, in minutes. Each call that asks for a part of
the catalog is measured before and after: milliseconds, and the pages of tables and indexes that its statements read,
which do not depend on how busy the machine is. A call whose pages grow reads more than it needs.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.call_counts import behind_a_wiretap
from benchmarks.counted_calls import World
from benchmarks.peers import run_sql
from benchmarks.wiretap import Wiretap
from metastore.client import MetastoreClient
from metastore.client.domain_client import table_request
from metastore.thrift_gen.hive_metastore import ttypes

ROUNDS = 3
BATCH = 50_000
OF_A_DAY = 10
FETCHED = """
SELECT sum(pg_stat_get_blocks_fetched(oid)) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"""
TABLES = """
INSERT INTO tables (catalog, db, name, type, owner, location, sd, partition_keys, parameters)
SELECT catalog, 'large', 'table_' || n, type, owner, location || n, sd, partition_keys, parameters
FROM tables, generate_series({first}, {last}) AS n WHERE db = 'lake' AND name = 'plain'"""
PARTITIONS = """
INSERT INTO partitions (table_id, name, "values", create_time, location, digest, parameters)
SELECT table_id, 'day=e' || n / {of_a_day} || '/n=' || n, ARRAY['e' || n / {of_a_day}, n::text], p.create_time,
       p.location || n, digest, p.parameters
FROM generate_series({first}, {last}) AS n,
     (SELECT p.* FROM partitions AS p JOIN tables AS t ON t.id = p.table_id
       WHERE t.name = 'few' ORDER BY p.name LIMIT 1) AS p"""
OWNED = """
UPDATE tables SET parameters = parameters || '{"external.table.purge": "TRUE"}'
WHERE db = 'lake' AND name = 'few' AND NOT parameters ? 'external.table.purge'"""
_DAY = ["e7"]
_NAMES = [f"day=e7/n={n}" for n in range(70, 80)]

PARTS: dict[str, Callable[[World], tuple[Any, ...]]] = {
    "get_database": lambda _: ("large",),
    "get_table_req": lambda _: (table_request("large", "table_7"),),
    "get_table_objects_by_name of 3": lambda _: ("large", ["table_7", "table_8", "table_9"]),
    "get_all_tables of another database": lambda _: ("lake",),
    "get_table_meta of another database": lambda _: ("lake", "*", None),
    "get_tables of a pattern": lambda _: ("large", "table_20*"),
    "get_tables_by_type of some patterns": lambda _: ("large", "table_20|table_20.", "EXTERNAL_TABLE"),
    "get_table_meta of a pattern": lambda _: ("large", "table_20*", None),
    "get_table_objects_by_name_req of a pattern": lambda _: (
        ttypes.GetTablesRequest("large", tablesPattern="table_20*"),
    ),
    "create_table": lambda world: (world.table(f"t{world.fresh()}", keys=()),),
    "drop_table": lambda world: ("lake", world.created(), False),
    "drop_table and its data": lambda world: ("lake", owned(world), True),
    "get_partition": lambda _: ("lake", "few", ["e7", "77"]),
    "get_partition_by_name": lambda _: ("lake", "few", "day=e7/n=77"),
    "get_partitions_by_names of 10": lambda _: ("lake", "few", _NAMES),
    "get_partitions, the first 10": lambda _: ("lake", "few", 10),
    "get_partition_names, the first 10": lambda _: ("lake", "few", 10),
    "get_partitions_ps of a day": lambda _: ("lake", "few", _DAY, -1),
    "get_partition_names_ps of a day": lambda _: ("lake", "few", _DAY, -1),
    "get_partitions_by_filter of a day": lambda _: ("lake", "few", 'day = "e7"', -1),
    "get_num_partitions_by_filter of a day": lambda _: ("lake", "few", 'day = "e7"'),
    "add_partitions of 1": lambda world: (world.partitions("few", one_new(world)),),
    "alter_partitions of 1": lambda world: ("lake", "few", world.partitions("few", range(7, 8))),
    "drop_partition_by_name": lambda world: ("lake", "few", added(world), False),
    "drop_partition_by_name and its data": lambda world: ("lake", "few", added(world), True),
}


class Cost(NamedTuple):
    """The cost of a call: pages that PostgreSQL read, and time."""

    pages: int
    ms: float


def owned(world: World) -> str:
    """Return the name of a new table whose data is dropped with it."""
    table = world.table(f"t{world.fresh()}", keys=())
    table.parameters["external.table.purge"] = "TRUE"
    world.client.create_table(table)
    return str(table.tableName)


def one_new(world: World) -> range:
    """Return the number of a partition that does not exist."""
    number = 10**8 + world.fresh()
    return range(number, number + 1)


def added(world: World) -> str:
    """Add a partition, and return its name."""
    numbers = one_new(world)
    world.client.add_partitions(world.partitions("few", numbers))
    return world.names(numbers)[0]


def fill(url: str, *, tables: tuple[int, int], partitions: tuple[int, int]) -> None:
    """Add tables to ``large`` and partitions to ``lake.few`` by number (end excluded), with data of their own."""
    run_sql(url, "INSERT INTO databases (catalog, name, location) VALUES ('hive', 'large', 'x') ON CONFLICT DO NOTHING")
    for sql, (first, end) in ((TABLES, tables), (PARTITIONS, partitions)):
        for start in range(first, end, BATCH):
            run_sql(url, sql.format(first=start, last=min(start + BATCH, end) - 1, of_a_day=OF_A_DAY))
    run_sql(url, OWNED)
    for table in ("tables", "partitions"):
        run_sql(url, f"VACUUM ANALYZE {table}")


def costs(world: World, tap: Wiretap, url: str) -> dict[str, Cost]:
    """Return the cost of each call, the least of a few: the first of them plans its statements."""
    return {name: min(_cost(world, tap, url, name) for _ in range(ROUNDS)) for name in PARTS}


def _cost(world: World, tap: Wiretap, url: str, name: str) -> Cost:
    arguments = PARTS[name](world)
    before = _fetched(tap, url)
    began = time.perf_counter()
    getattr(world.client, name.replace(",", "").split(maxsplit=1)[0])(*arguments)
    ms = (time.perf_counter() - began) * 1000
    return Cost(_fetched(tap, url) - before, ms)


def _fetched(tap: Wiretap, url: str) -> int:
    tap.ask("SELECT pg_stat_force_next_flush()")
    [(pages,)] = run_sql(url, FETCHED)
    return int(pages)


def main() -> None:
    """Make the large catalog and print the cost of calls on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200_000)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)  # PostgreSQL does not run as root
        uri, tap, url = behind_a_wiretap(work, running)
        with MetastoreClient(uri) as client:
            world = World(client)
            world.fill(work, many=0)
            fill(url, tables=(0, 100), partitions=(0, 100))
            before = costs(world, tap, url)
            began = time.perf_counter()
            fill(url, tables=(100, options.tables), partitions=(100, options.partitions))
            seconds = time.perf_counter() - began
            print(f"{options.tables} tables and {options.partitions} partitions made in {seconds:.0f} s")
            after = costs(world, tap, url)
        print("| call | pages, 100 of each | pages, all | ms, 100 of each | ms, all |\n|---|--:|--:|--:|--:|")
        for name, (pages, ms) in after.items():
            print(f"| {name} | {before[name].pages} | {pages} | {before[name].ms:.1f} | {ms:.1f} |")


if __name__ == "__main__":
    main()
