"""ACID tables beside Delta Lake in one Spark: INSERT; UPDATE, DELETE and MERGE of 1 % of the rows; a read after each.

    python -m benchmarks.acid_delta [--rows 2800000] [--runs 3]

Delta Lake takes part twice: as it is by default, where it copies the files that hold a changed row, and with its
deletion vectors. Both sides write as they do by default: ORC with zlib here, Parquet with Snappy there. Delta Lake does
not run in the newest Spark, so all run in the last that it does run in: pip and Maven fetch them once, into the
benchmarks' cache, and this program starts itself again with them.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.acid_session import TABLE, Action, alternating, create_table, options, with_store_sales
from benchmarks.hive import MissingError, cache, fetch, once
from metastore.spark.session import AcidSession

DELTA, SPARK = "4.4.0", "4.2.0"
JARS = [f"io.delta:delta-spark_4.2_2.13:{DELTA}", f"io.delta:delta-storage:{DELTA}"]
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
VECTORS = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
CONTESTANTS = {"acid": "ACID", "delta": "Delta Lake", "vectors": "Delta Lake, deletion vectors"}
STATEMENTS = {
    "UPDATE": "UPDATE {table} SET ss_quantity = ss_quantity + 1 WHERE {part}",
    "DELETE": "DELETE FROM {table} WHERE {part}",
    "MERGE": "MERGE INTO {table} t USING source s ON t.ss_item_sk = s.ss_item_sk AND t.ss_ticket_number = "
    "s.ss_ticket_number WHEN MATCHED THEN UPDATE SET ss_quantity = s.quantity WHEN NOT MATCHED THEN INSERT "
    "(ss_item_sk, ss_ticket_number, ss_quantity) VALUES (s.ss_item_sk, s.ss_ticket_number, s.quantity)",
}
_AGAIN = "BENCHMARK_IN_THE_SPARK_OF_DELTA"


class Contest:
    """The tables, and the statements that all get."""

    def __init__(self, session: AcidSession, work: Path, rows: DataFrame) -> None:
        self.session, self.spark, self.rows = session, session.spark, rows
        self.places = {name: work / name for name in CONTESTANTS if name != "acid"}
        self.parts = {name: count(1) for name in CONTESTANTS}

    def frame(self, name: str) -> DataFrame:
        return (
            self.session.table(TABLE)
            if name == "acid"
            else self.spark.read.format("delta").load(str(self.places[name]))
        )

    def insert(self, name: str) -> None:
        if name == "acid":
            self.session.insert(TABLE, self.rows)
            return
        self.spark.conf.set(VECTORS, str(name == "vectors").lower())
        self.rows.write.format("delta").mode("append").save(str(self.places[name]))

    def empty(self, name: str) -> None:
        if name == "acid":
            self.session.sql(f"DROP TABLE {TABLE}")
            create_table(self.session)
        else:
            shutil.rmtree(self.places[name])

    def change(self, name: str, statement: str) -> None:
        part = f"pmod(hash(ss_ticket_number, ss_item_sk), 100) = {next(self.parts[name])}"
        self.rows.where(part).selectExpr(
            "ss_item_sk",
            "IF(ss_item_sk % 10 = 0, -ss_ticket_number, ss_ticket_number) AS ss_ticket_number",
            "ss_quantity + 1 AS quantity",
        ).createOrReplaceTempView("source")
        if name == "acid":
            self.session.sql(statement.format(table=TABLE, part=part))
        else:
            self.spark.sql(statement.format(table=f"delta.`{self.places[name]}`", part=part))

    def require_same(self) -> None:
        """Raise RuntimeError unless all tables hold the same."""
        totals = {
            name: self.frame(name)
            .selectExpr("count(*)", "sum(ss_quantity)", "sum(ss_ticket_number)", "sum(ss_net_paid)")
            .collect()
            for name in CONTESTANTS
        }
        if any(totals_seen != totals["acid"] for totals_seen in totals.values()):
            raise RuntimeError(f"the tables differ: {totals}")

    def all(self, title: str, actions: Mapping[str, Action], runs: int) -> None:
        costs = alternating(actions, runs)
        print(
            f"| {title} | {_numbers([run.seconds for run in costs.values()])} | "
            f"{_numbers([run.cpu for run in costs.values()])} |",
            flush=True,
        )


def _numbers(ours_first: list[float]) -> str:
    ours, *others = ours_first
    return f"{ours:.2f} s | " + " | ".join(f"{other:.2f} s ({ours / other:.2f})" for other in others)


def compare(contest: Contest, runs: int) -> None:
    names = list(CONTESTANTS.values())
    print(f"\n| | {' | '.join(names)} | {' | '.join(f'{name}: CPU' for name in names)} |\n|---|{'--:|' * 6}")
    contest.all(
        "INSERT",
        {
            name: Action(lambda name=name: contest.insert(name), lambda name=name: contest.empty(name))
            for name in CONTESTANTS
        },
        runs,
    )
    for name in CONTESTANTS:
        contest.insert(name)
    read(contest, "INSERT", runs)
    for title, statement in STATEMENTS.items():
        contest.all(
            f"{title} of 1 %",
            {name: Action(lambda name=name, text=statement: contest.change(name, text)) for name in CONTESTANTS},
            runs,
        )
        read(contest, title, runs)


def read(contest: Contest, after: str, runs: int) -> None:
    contest.require_same()
    contest.all(
        f"full scan after {after}",
        {name: Action(lambda name=name: scan(contest.frame(name))) for name in CONTESTANTS},
        runs,
    )


def scan(frame: DataFrame) -> None:
    """Read every column of every row. (Written to nowhere, Delta Lake's own plan fails beside deletion vectors.)"""
    frame.selectExpr("bit_xor(xxhash64(*))").collect()


def place() -> Path:
    return cache().with_name("delta") / f"{DELTA}-spark-{SPARK}"


def fetch_all(partly: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--target",
            str(partly / "python"),
            f"delta-spark=={DELTA}",
            f"pyspark=={SPARK}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MissingError(f"pip cannot fetch Delta Lake: {done.stderr[-500:]}")
    (partly / "jars").mkdir()
    for artifact in JARS:
        fetch(artifact, partly / "jars")


def in_its_spark() -> int:
    """This program again, with the Spark that Delta Lake runs in."""
    once(place(), fetch_all)
    paths = [str(place() / "python"), str(Path(__file__).parents[1])]
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.acid_delta", *sys.argv[1:]],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), _AGAIN: "1"},
    ).returncode


def main() -> int:
    if _AGAIN not in os.environ:
        return in_its_spark()
    chosen = options(__doc__, 2_800_000, 3)
    jars = ",".join(map(str, (place() / "jars").glob("*.jar")))
    with with_store_sales(chosen, {**SETTINGS, "spark.jars": jars}) as (session, work, rows):
        print(f"Delta Lake {DELTA}; in brackets: ours / theirs")
        compare(Contest(session, work, rows), chosen.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
