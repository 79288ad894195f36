"""Writes of ACID tables, beside plain ORC files in the same Spark: INSERT; UPDATE, DELETE and MERGE of 1 % of the rows.

    python -m benchmarks.acid_writes [--rows 10000000] [--runs 3]

INSERT is compared with a write of the same rows as plain files; the others with a rewrite of all rows, as needed to
change rows without ACID tables. Each run changes another 1 %, so later runs read more deltas.
"""

import shutil
from itertools import count
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.acid_session import HEAD, TABLE, Action, compared, create_table, options, with_store_sales
from metastore.spark.session import AcidSession


class Contest:
    """The table, its copy as plain files, and the statements of both sides."""

    def __init__(self, session: AcidSession, work: Path, rows: DataFrame) -> None:
        self.session, self.spark, self.rows = session, session.spark, rows
        self.flat, self.written = str(work / "flat"), str(work / "written")
        self.parts = {"acid": count(1), "flat": count(1)}

    def recreate(self) -> None:
        """Drop the ACID table and create it without rows."""
        self.session.sql(f"DROP TABLE {TABLE}")
        create_table(self.session)

    def remove_written(self) -> None:
        """Remove the files that Spark alone wrote."""
        shutil.rmtree(self.written)

    def write(self, rows: DataFrame) -> None:
        """Write ``rows`` as plain ORC files."""
        rows.write.option("compression", "zlib").orc(self.written)

    def part(self, contestant: str) -> str:
        """Return the condition of a hundredth of the rows that ``contestant`` has not changed yet."""
        return f"pmod(hash(ss_ticket_number, ss_item_sk), 100) = {next(self.parts[contestant])}"

    def source(self, part: str) -> None:
        """Make the source of a MERGE for 1 % of the rows: nine in ten get new versions, the other keys new rows."""
        self.rows.where(part).selectExpr(
            "ss_item_sk",
            "IF(ss_item_sk % 10 = 0, -ss_ticket_number, ss_ticket_number) AS ss_ticket_number",
            "ss_quantity + 1 AS quantity",
        ).createOrReplaceTempView("source")

    def flat_rows(self) -> DataFrame:
        """Return the rows of the flat files."""
        return self.spark.read.orc(self.flat)

    def insert(self) -> None:
        """Insert all rows into the ACID table."""
        self.session.insert(TABLE, self.rows)

    def update(self) -> None:
        """Update a hundredth of the ACID table's rows."""
        self.session.sql(f"UPDATE {TABLE} SET ss_quantity = ss_quantity + 1 WHERE {self.part('acid')}")

    def update_flat(self) -> None:
        """Write the flat files with a hundredth of the rows updated."""
        new = f"IF({self.part('flat')}, ss_quantity + 1, ss_quantity)"
        self.write(
            self.flat_rows().selectExpr(
                *(f"{new} AS {name}" if name == "ss_quantity" else name for name in self.rows.columns)
            )
        )

    def delete(self) -> None:
        """Delete a hundredth of the ACID table's rows."""
        self.session.sql(f"DELETE FROM {TABLE} WHERE {self.part('acid')}")

    def delete_flat(self) -> None:
        """Write the flat files without a hundredth of the rows."""
        self.write(self.flat_rows().where(f"NOT coalesce({self.part('flat')}, false)"))

    def merge(self) -> None:
        """Merge the source into the ACID table."""
        self.source(self.part("acid"))
        self.session.sql(
            f"MERGE INTO {TABLE} t USING source s ON t.ss_item_sk = s.ss_item_sk AND t.ss_ticket_number = "
            "s.ss_ticket_number WHEN MATCHED THEN UPDATE SET ss_quantity = s.quantity WHEN NOT MATCHED "
            "THEN INSERT (ss_item_sk, ss_ticket_number, ss_quantity) VALUES (s.ss_item_sk, "
            "s.ss_ticket_number, s.quantity)"
        )

    def merge_flat(self) -> None:
        """Write the flat files with the source merged into them."""
        self.source(self.part("flat"))
        self.flat_rows().createOrReplaceTempView("flat")
        chosen = ", ".join(
            {
                "ss_quantity": "coalesce(s.quantity, t.ss_quantity) AS ss_quantity",
                "ss_item_sk": "coalesce(s.ss_item_sk, t.ss_item_sk) AS ss_item_sk",
                "ss_ticket_number": "coalesce(s.ss_ticket_number, t.ss_ticket_number) AS ss_ticket_number",
            }.get(name, f"t.{name}")
            for name in self.rows.columns
        )
        self.write(
            self.spark.sql(
                f"SELECT {chosen} FROM flat t FULL JOIN source s ON t.ss_item_sk = s.ss_item_sk AND "
                "t.ss_ticket_number = s.ss_ticket_number"
            )
        )


def main() -> None:
    """Measure each statement on both contestants and print a line for each."""
    chosen = options(__doc__, 10_000_000, 3)
    with with_store_sales(chosen) as (session, work, rows):
        contest = Contest(session, work, rows)
        print(HEAD)
        compared(
            "INSERT",
            Action(contest.insert, contest.recreate),
            Action(lambda: contest.write(rows), contest.remove_written),
            chosen.runs,
            1.3,
        )
        contest.insert()
        rows.write.option("compression", "zlib").orc(contest.flat)
        for title, ours, theirs in (
            ("UPDATE", contest.update, contest.update_flat),
            ("DELETE", contest.delete, contest.delete_flat),
            ("MERGE", contest.merge, contest.merge_flat),
        ):
            compared(f"{title} of 1 %", Action(ours), Action(theirs, contest.remove_written), chosen.runs, 0.5)


if __name__ == "__main__":
    main()
