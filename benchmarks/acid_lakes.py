"""ACID tables beside Delta Lake and Iceberg in one Spark: INSERT; UPDATE, DELETE, MERGE of 1 %; a count, a row, a scan.

    python -m benchmarks.acid_lakes [--rows 2800000] [--runs 3] [--only "one row,MERGE"]

Delta Lake and Iceberg take part twice: with their defaults, which copy the files that hold a changed row, and with
deletion vectors. Each writes its default format: ORC with zlib here, Parquet there. All run in the newest Spark that
supports all three: pip and Maven fetch them once, into the benchmarks' cache, and this program starts itself again with
them.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pyspark.sql import SparkSession

from benchmarks.acid_session import TABLE, Action, alternating, options, with_store_sales
from benchmarks.hive import MissingError, cache, fetch, once
from benchmarks.store_sales import COLUMNS
from metastore.spark.session import AcidSession

SPARK, DELTA, ICEBERG = "4.1.4", "4.4.0", "1.12.0"
JARS = [
    f"io.delta:delta-spark_4.1_2.13:{DELTA}",
    f"io.delta:delta-storage:{DELTA}",
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}",
]
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
}
CHANGES = {
    "UPDATE": "UPDATE {table} SET ss_quantity = ss_quantity + 1 WHERE {part}",
    "DELETE": "DELETE FROM {table} WHERE {part}",
    "MERGE": "MERGE INTO {table} t USING source s ON t.ss_item_sk = s.ss_item_sk AND t.ss_ticket_number = "
    "s.ss_ticket_number WHEN MATCHED THEN UPDATE SET ss_quantity = s.quantity WHEN NOT MATCHED THEN INSERT "
    "(ss_item_sk, ss_ticket_number, ss_quantity) VALUES (s.ss_item_sk, s.ss_ticket_number, s.quantity)",
}
READS = {
    "count(*)": "SELECT count(*) FROM {table}",
    "one row": "SELECT * FROM {table} WHERE ss_item_sk = {item} AND ss_ticket_number = {ticket}",
    "full scan": "SELECT bit_xor(xxhash64(*)) FROM {table}",
}
TOTALS = "SELECT count(*), sum(ss_quantity), sum(ss_ticket_number), sum(ss_net_paid) FROM {table}"
_AGAIN = "BENCHMARK_IN_THE_SPARK_OF_ALL"


class Lake(NamedTuple):
    """A contestant's table, and the session that knows it."""

    title: str
    spark: SparkSession
    table: str
    create: str
    drop: Callable[[], object]

    def run(self, statement: str, **places: object) -> None:
        """Run a statement with the table's name and ``places`` filled in."""
        self.spark.sql(statement.format(table=self.table, **places)).collect()

    def fill(self) -> None:
        """Insert all rows."""
        self.run("INSERT INTO {table} SELECT * FROM rows")

    def empty(self) -> None:
        """Drop the table and create it without rows."""
        self.drop()
        self.run(self.create)


def lakes(session: AcidSession, work: Path, flat: str) -> list[Lake]:
    """Return the contestants, with empty tables. ``flat``: the place of the rows."""
    others = session.spark.newSession()
    for spark in (session.spark, others):
        spark.read.parquet(flat).createOrReplaceTempView("rows")

    def delta(title: str, vectors: str) -> Lake:
        place = work / f"delta-{vectors}"
        create = (
            f"CREATE TABLE {{table}} ({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='{vectors}')"
        )
        return Lake(title, others, f"delta.`{place}`", create, lambda: shutil.rmtree(place, ignore_errors=True))

    def iceberg(title: str, mode: str, version: int) -> Lake:
        table = f"ice.bench.v{version}"
        modes = "".join(f", 'write.{change}.mode'='{mode}'" for change in ("update", "delete", "merge"))
        create = f"CREATE TABLE {{table}} ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version'='{version}'{modes})"
        return Lake(title, others, table, create, lambda: others.sql(f"DROP TABLE IF EXISTS {table} PURGE"))

    acid = f"CREATE TABLE {{table}} ({COLUMNS}) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    return [
        Lake("ACID", session.spark, TABLE, acid, lambda: session.spark.sql(f"DROP TABLE IF EXISTS {TABLE}")),
        delta("Delta Lake", "false"),
        delta("Delta Lake, vectors", "true"),
        iceberg("Iceberg", "copy-on-write", 2),
        iceberg("Iceberg, vectors", "merge-on-read", 3),
    ]


def line(title: str, contestants: list[Lake], runs: int, action: Callable[[Lake], Action]) -> None:
    """Measure ``action`` of each contestant in alternating runs and print the line of the table."""
    costs = alternating({lake.title: action(lake) for lake in contestants}, runs).values()
    print(
        f"| {title} | {_numbers([run.seconds for run in costs])} | {_numbers([run.cpu for run in costs])} |", flush=True
    )


def insert(contestants: list[Lake], runs: int, *, is_measured: bool) -> None:
    """Insert into empty tables, which are full afterwards."""
    names = [lake.title for lake in contestants]
    print(f"\n| | {' | '.join(names)} | {' | '.join(f'{name}: CPU' for name in names)} |")
    print(f"|---|{'--:|' * 2 * len(names)}")
    if is_measured:
        line("INSERT", contestants, runs, lambda lake: Action(lake.fill, lake.empty))
    for lake in contestants:
        lake.fill()


def compare(contestants: list[Lake], runs: int, only: list[str]) -> None:
    """Read, and read again after each change."""
    ours = contestants[0]
    parts = {lake.title: count(1) for lake in contestants}
    [(item, ticket)] = ours.spark.sql(f"SELECT ss_item_sk, ss_ticket_number FROM {TABLE} LIMIT 1").collect()

    def read(after: str) -> None:
        totals = {lake.title: lake.spark.sql(TOTALS.format(table=lake.table)).collect() for lake in contestants}
        if any(seen != totals[ours.title] for seen in totals.values()):
            raise RuntimeError(f"the tables differ: {totals}")
        for title, query in chosen(READS, only):
            line(
                f"{title} after {after}",
                contestants,
                runs if title == "full scan" else 10 * runs,
                lambda lake, query=query: Action(lambda: lake.run(query, item=item, ticket=ticket)),
            )

    def change(lake: Lake, statement: str) -> None:
        part = f"pmod(hash(ss_ticket_number, ss_item_sk), 100) = {next(parts[lake.title])}"
        lake.spark.sql(
            "SELECT ss_item_sk, IF(ss_item_sk % 10 = 0, -ss_ticket_number, ss_ticket_number) AS ss_ticket_number, "
            f"ss_quantity + 1 AS quantity FROM rows WHERE {part}"
        ).createOrReplaceTempView("source")
        lake.run(statement, part=part)

    read("INSERT")
    for title, text in chosen(CHANGES, only):
        line(f"{title} of 1 %", contestants, runs, lambda lake, text=text: Action(lambda: change(lake, text)))
        read(title)


def chosen(work: Mapping[str, str], only: list[str]) -> list[tuple[str, str]]:
    """Return the lines of ``work`` that ``only`` names; all if it names none."""
    return [(title, text) for title, text in work.items() if not only or title in only]


def _numbers(ours_first: list[float]) -> str:
    ours, *others = ours_first
    return f"{ours:.2f} s | " + " | ".join(f"{other:.2f} s ({ours / other:.2f})" for other in others)


def place() -> Path:
    """Return the directory of the fetched Spark and jars."""
    return cache().with_name("lakes") / f"spark-{SPARK}-delta-{DELTA}-iceberg-{ICEBERG}"


def fetch_all(partly: Path) -> None:
    """Fetch Spark and the jars of Delta Lake and Iceberg into ``partly``. Raises: MissingError."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", str(partly / "python"), f"pyspark=={SPARK}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MissingError(f"pip cannot fetch Spark {SPARK}: {done.stderr[-500:]}")
    (partly / "jars").mkdir()
    for artifact in JARS:
        fetch(artifact, partly / "jars")


def in_its_spark() -> int:
    """Run this program again, with the Spark that all contestants run in; return the exit status."""
    once(place(), fetch_all)
    paths = [str(place() / "python"), str(Path(__file__).parents[1])]
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.acid_lakes", *sys.argv[1:]],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), _AGAIN: "1"},
    ).returncode


def main() -> int:
    """Compare the three table formats and print a line for each action. Return 0."""
    if _AGAIN not in os.environ:
        return in_its_spark()
    asked = options(__doc__, 2_800_000, 3, {"--only": "which lines, with a comma between them; all without it"})
    only = [title for title in (asked.only or "").split(",") if title]
    jars = ",".join(map(str, (place() / "jars").glob("*.jar")))
    settings = {**SETTINGS, "spark.jars": jars}
    with TemporaryDirectory(prefix="bench-ice-") as ice:
        settings["spark.sql.catalog.ice.warehouse"] = Path(ice).as_uri()
        with with_store_sales(asked, settings) as (session, work, rows):
            flat = str(work / "flat")
            rows.write.parquet(flat)
            print(f"Delta Lake {DELTA}, Iceberg {ICEBERG}; in brackets: ours / theirs")
            contestants = lakes(session, work, flat)
            for lake in contestants:
                lake.empty()
            insert(contestants, asked.runs, is_measured=not only or "INSERT" in only)
            compare(contestants, asked.runs, only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
