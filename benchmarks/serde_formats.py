"""Insert-only tables in text, CSV, JSON, Avro, RCFile, SequenceFile: write and read, beside Spark's own ways.

    python -m benchmarks.serde_formats [--rows 1000000] [--runs 3] [--only text,csv]

The peers: a plain Hive table of Spark with the same SerDe, which uses the same classes of Hive (Spark has none for
JSON); and Spark's own source for the format, which uses no SerDe (most formats have none). Only the insert-only table
checks that each row can be read again unchanged. A read makes every column of every row.
"""

import argparse
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.acid_session import Action, Cost, alternating, circumstances, consume, lakehouse
from benchmarks.acid_tables import CORES
from metastore.spark.session import AcidSession

COLUMNS = {"id": "BIGINT", "day": "INT", "amount": "DOUBLE", "customer": "STRING", "note": "STRING"}
_ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
_CSV = "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' STORED AS TEXTFILE"


@dataclass(frozen=True)
class Format:
    """A format of a table; ``source``: the name of Spark's own source; ``in_hive``: True if Spark has the SerDe."""

    stored: str
    source: str = ""
    in_hive: bool = True
    is_of_texts: bool = False


FORMATS = {
    "text": Format("ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\' STORED AS TEXTFILE", "csv"),
    "csv": Format(_CSV, "csv", is_of_texts=True),
    "json": Format("STORED AS JSONFILE", "json", in_hive=False),
    "avro": Format("STORED AS AVRO"),
    "rcfile": Format("STORED AS RCFILE"),
    "sequencefile": Format("STORED AS SEQUENCEFILE"),
}


class Contest:
    """One format: our table, Spark's, and files of Spark's own source."""

    def __init__(self, session: AcidSession, work: Path, name: str, rows: DataFrame) -> None:
        self.session, self.spark, self.form = session, session.spark, FORMATS[name]
        self.ours, self.theirs, self.files = f"bench.{name}", f"bench.{name}_of_spark", str(work / name)
        types = {column: "STRING" if self.form.is_of_texts else kind for column, kind in COLUMNS.items()}
        self.shape = f"({', '.join(f'{column} {kind}' for column, kind in types.items())}) {self.form.stored}"
        self.rows = rows.selectExpr(*(f"CAST({column} AS {kind}) AS {column}" for column, kind in types.items()))
        self.create()
        if self.form.in_hive:
            self.spark.sql(f"CREATE TABLE {self.theirs} {self.shape}")

    def create(self) -> None:
        """Create our table."""
        self.session.sql(f"CREATE TABLE {self.ours} {self.shape} {_ONLY}")

    def recreate(self) -> None:
        """Drop our table and create it without rows."""
        self.session.sql(f"DROP TABLE {self.ours}")
        self.create()

    def write_ours(self) -> None:
        """Insert all rows into our table."""
        self.session.insert(self.ours, self.rows)

    def write_theirs(self) -> None:
        """Insert all rows into Hive's table."""
        self.rows.write.insertInto(self.theirs)

    def write_files(self) -> None:
        """Write all rows with Spark's own source."""
        self.rows.write.format(self.form.source).save(self.files)

    def read_files(self) -> DataFrame:
        """Return the rows of the files, by Spark's own source."""
        return self.spark.read.schema(self.rows.schema).format(self.form.source).load(self.files)

    def writes(self) -> dict[str, Action]:
        """Return how each contestant writes, keyed by its name."""
        return self._present(
            Action(self.write_ours, self.recreate),
            Action(self.write_theirs, lambda: self.spark.sql(f"TRUNCATE TABLE {self.theirs}")),
            Action(self.write_files, lambda: shutil.rmtree(self.files)),
        )

    def reads(self) -> dict[str, Action]:
        """Return how each contestant reads, keyed by its name. Raises: RuntimeError if they differ."""
        self.write_ours()
        frames: dict[str, Callable[[], DataFrame]] = {"ours": lambda: self.session.table(self.ours)}
        if self.form.in_hive:
            self.write_theirs()
            frames["hive"] = lambda: self.spark.table(self.theirs)
        if self.form.source:
            self.write_files()
            frames["spark"] = self.read_files
        counts = {name: frame().count() for name, frame in frames.items()}
        if set(counts.values()) != {self.rows.count()}:
            raise RuntimeError(f"The contestants do not read the same rows: {counts}")
        return {name: Action(lambda frame=frame: consume(frame())) for name, frame in frames.items()}

    def _present(self, ours: Action, hive: Action, spark: Action) -> dict[str, Action]:
        actions = {"ours": ours}
        if self.form.in_hive:
            actions["hive"] = hive
        if self.form.source:
            actions["spark"] = spark
        return actions


def chosen_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default=",".join(FORMATS))
    return parser.parse_args()


def line(title: str, costs: dict[str, Cost]) -> str:
    """Return a row of the table: ours, each peer, and the ratios of time and of processor time."""
    ours = costs["ours"]
    cells = [f"{ours.seconds:.2f} s"]
    for peer in ("hive", "spark"):
        cost = costs.get(peer)
        cells += (
            ["-", "-", "-"]
            if cost is None
            else [f"{cost.seconds:.2f} s", f"{ours.seconds / cost.seconds:.2f}", f"{ours.cpu / cost.cpu:.2f}"]
        )
    return f"| {title} | {' | '.join(cells)} |"


HEAD = (
    "| | insert-only table | Hive table of Spark | ratio | CPU | Spark's own source | ratio | CPU |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)


def main() -> None:
    """Measure each format and print a line for each."""
    chosen = chosen_options()
    with lakehouse() as (session, work):
        spark = session.spark
        spark.range(0, chosen.rows, numPartitions=CORES).selectExpr(
            "id",
            "CAST(id % 365 AS INT) AS day",
            "hash(id) / 100.0D AS amount",
            "concat('customer-', id % 5000) AS customer",
            "sha1(CAST(id AS STRING)) AS note",
        ).write.orc(str(work / "rows"))
        print(circumstances(chosen.rows, chosen.runs).replace("TPC-DS store_sales", "five columns"))
        spark.sql("CREATE DATABASE bench")
        print(HEAD)
        for name in chosen.only.split(","):
            contest = Contest(session, work, name, spark.read.orc(str(work / "rows")))
            print(line(f"{name}, write", alternating(contest.writes(), chosen.runs)), flush=True)
            print(line(f"{name}, read", alternating(contest.reads(), chosen.runs)), flush=True)


if __name__ == "__main__":
    main()
