"""Compactions of an ACID table, beside the time of plain Spark for the same rows.

    python -m benchmarks.compaction [--rows 10000000] [--runs 3]

Major: a base, 10 deltas and deletes of 1 %, beside reading plain files and writing them anew. Minor: 100 deltas of
a thousandth of the rows each, beside reading them as plain files, sorting and writing them. Rebalance: the table of the
major one, beside a range repartition by a column and writing.
"""

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame

from benchmarks.acid_session import HEAD, TABLE, Action, compared, create_table, options, with_store_sales
from metastore.acid_tables.table import AcidTable
from metastore.compaction.working.job_specification import CompactionJobSpec
from metastore.ids import table_name
from metastore.spark.compaction.job import run
from metastore.spark.session import AcidSession

DELTAS, SMALL_DELTAS = 10, 100
_TXN = 1_000_000_000
_SERVER = ("--set", "hive.compactor.initiator.on=false")  # or the server would compact first
_PART = "pmod(hash(ss_ticket_number, ss_item_sk), 1000)"


class Contest:
    """The table, its rows as plain files, and the compactions of both sides."""

    def __init__(self, session: AcidSession, work: Path, rows: DataFrame) -> None:
        self.session, self.spark, self.rows = session, session.spark, rows
        self.flat, self.written = str(work / "flat"), str(work / "written")
        self.write_id = 0

    def rewrite(self) -> None:
        """Write the table again: a base, ten deltas, 1 % of all deleted; and the remaining rows as plain files."""
        self._recreate()
        self.session.overwrite(TABLE, self.rows.where(f"{_PART} >= {10 * DELTAS}"))
        for number in range(DELTAS):
            self.session.insert(TABLE, self.rows.where(f"{_PART} BETWEEN {10 * number} AND {10 * number + 9}"))
        self.session.sql(f"DELETE FROM {TABLE} WHERE {_PART} % 100 = 7")
        self.write_id = 2 + DELTAS
        self.rows.where(f"{_PART} % 100 <> 7").write.option("compression", "zlib").orc(self.flat)

    def rewrite_small(self) -> None:
        """Write the table again, in many small deltas; and the same rows as plain files."""
        self._recreate()
        for number in range(SMALL_DELTAS):
            rows = self.rows.where(f"{_PART} = {number}")
            self.session.insert(TABLE, rows.coalesce(1))
            rows.coalesce(1).write.mode("append").option("compression", "zlib").orc(self.flat)
        self.write_id = SMALL_DELTAS

    def compaction(self, kind: str) -> Action:
        """Return the action that compacts the table, by the given ``kind``."""
        db, name = TABLE.split(".")
        described = self.session.client.get_table(db, name)
        location = unquote(urlsplit(described.sd.location).path)
        table = AcidTable.of(table_name(db, name), described)
        spec = CompactionJobSpec(
            1,
            1,
            kind,
            "hive",
            db,
            name,
            "",
            location,
            f"{TABLE}:{self.write_id}:9223372036854775807::",
            "",
            _TXN,
            self.write_id,
        )

        def tidy() -> None:
            for result in Path(location).glob(f"*_v{_TXN}"):
                shutil.rmtree(result)

        return Action(lambda: run(self.spark, spec, table.columns), tidy)

    def plain(self, *order: str, spread: bool = False) -> Action:
        """Return the action by which Spark alone rewrites the flat files, sorted by ``order`` if it names columns."""

        def write() -> None:
            rows = self.spark.read.orc(self.flat)
            if spread:
                rows = rows.repartitionByRange(*order)
            if order:
                rows = rows.sortWithinPartitions(*order)
            rows.write.option("compression", "zlib").orc(self.written)

        return Action(write, lambda: shutil.rmtree(self.written))

    def _recreate(self) -> None:
        self.session.sql(f"DROP TABLE {TABLE}")
        create_table(self.session)
        shutil.rmtree(self.flat, ignore_errors=True)


def main() -> None:
    """Measure each kind of compaction beside plain Spark and print a line for each."""
    chosen = options(__doc__, rows=10_000_000, runs=3)
    with with_store_sales(chosen, server_options=_SERVER) as (session, work, rows):
        contest = Contest(session, work, rows)
        print(HEAD)
        contest.rewrite()
        compared("major", contest.compaction("major"), contest.plain(), chosen.runs, 1.3)
        by_ticket = contest.plain("ss_ticket_number", spread=True)
        compared("rebalance", contest.compaction("rebalance"), by_ticket, chosen.runs, 1.5)
        contest.rewrite_small()
        compared("minor", contest.compaction("minor"), contest.plain("ss_ticket_number"), chosen.runs, 1.0)


if __name__ == "__main__":
    main()
