"""A Spark driver of the soak, by plain spark.sql: ``python -m tests.robustness.soak.driver ROLE URIS SEED DIRECTORY``.

It goes on until DIRECTORY/stop is there, and says then in DIRECTORY/ROLE.done that all it knows of is as it should be.
What is not as it should be goes into DIRECTORY/anomalies.
"""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from metastore.client import MetastoreClient
from metastore.spark import configure
from tests.robustness.soak.ledger import Ledger, Rows

ACCOUNTS, EACH = 60, 1000
WRITERS = ("w0", "w1")
MOST_ROWS, PATIENCE_S = 300, 300.0
LEASE_S = 10.0
STREAMED = 20
FAILURES = (PySparkException, Py4JJavaError)
"""How a statement fails: refused, or by its tasks."""

_LOST_FILE = ("FileNotFound", "FILE_NOT_EXIST", "does not exist", "No such file", "Malformed ORC", "not a valid ORC")


class Driver:
    """A session, what it does to tables, and where it says so."""

    def __init__(self, role: str, uris: str, seed: str, directory: str) -> None:
        self.role, self.uris, self.directory = role, uris, Path(directory)
        self.random = Random(f"{seed}/{role}/{time.time_ns()}")
        self.counts: Counter[str] = Counter()
        self.spark = session(uris, self.directory, role)
        self.clock = Clock()

    def has_to_stop(self) -> bool:
        return (self.directory / "stop").exists()

    def anomaly(self, text: str) -> None:
        with (self.directory / "anomalies").open("a") as file:
            file.write(f"{self.role}: {text}\n")

    def count(self, what: str) -> None:
        """Totals are of this process; the last line of a role's counts of each process is read at the end."""
        self.counts[what] += 1
        with (self.directory / f"{self.role}.counts").open("a") as file:
            file.write(what + "\n")

    def rows(self, sql: str) -> list[Any]:
        """The rows of a query, tried again while servers are down. A file that is missing under a reader is an anomaly."""
        ends_at = time.monotonic() + PATIENCE_S
        while True:
            started = self.clock.silent_s
            try:
                return self.spark.sql(sql).collect()
            except FAILURES as error:
                self.judge_read(error, started)
                if time.monotonic() > ends_at:
                    raise
                pause(1)

    def failed(self, what: str, error: Exception) -> bool:
        """Whether the service has said that the statement changed nothing, since somebody else was first."""
        is_refused = isinstance(error, PySparkException) and error.getSqlState() == "40001"
        self.count(f"{what} refused" if is_refused else f"{what} that failed")
        if isinstance(error, ParseException):
            self.anomaly(f"{what} of the soak itself are wrong: {error}")
        if not is_refused:
            print(f"{what}: {str(error)[:300]}", flush=True)
        return is_refused

    def judge_read(self, error: Exception, silent_before: float) -> None:
        """Whether a read may fail like this: its snapshot is held only as long as its process shows that it lives."""
        self.count("reads that failed")
        if any(word in str(error) for word in _LOST_FILE) and self.clock.silent_s - silent_before < LEASE_S / 2:
            self.anomaly(f"a file was missing under a reader: {str(error)[:600]}")

    def begins(self) -> None:
        """Its session is there: the soak begins when all are."""
        (self.directory / f"{self.role}.begun").touch()

    def done(self) -> None:
        target = self.directory / f"{self.role}.done"
        partial = target.with_suffix(".part")
        partial.write_text(json.dumps(self.counts))
        partial.rename(target)


class Clock:
    """For how many seconds in all this process was not run: a snapshot may be lost in such a time."""

    def __init__(self) -> None:
        self.silent_s = 0.0
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        last = time.monotonic()
        while True:
            pause(0.2)
            now = time.monotonic()
            if now - last > 2:
                self.silent_s += now - last
            last = now


class Writer(Driver):
    """Changes rows that are its own, in tables where others change theirs, and moves money between accounts of all."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(*arguments)
        self.number = WRITERS.index(self.role)
        self.ledgers = {table: Ledger(self.directory / f"{self.role}.{table}.ledger") for table in ("facts", "flat")}
        self.churned = 0

    def run(self) -> None:
        for table in self.ledgers:
            self.check(table)
        while not self.has_to_stop():
            self.random.choices((self.change, self.transfer, self.churn), (6, 3, 1))[0]()
        for table in self.ledgers:
            self.check(table)

    # -- rows of its own -------------------------------------------------------------------------------------------
    def change(self) -> None:
        table = self.random.choice(list(self.ledgers))
        ledger = self.ledgers[table]
        sql, after = self.statement(table, ledger.rows)
        ledger.begin(sql[:200], after)
        try:
            self.spark.sql(sql)
        except FAILURES as error:
            if self.failed("statements", error):
                ledger.end(made=False)
        else:
            ledger.end(made=True)
            self.count("statements")
        self.check(table)

    def statement(self, table: str, rows: Rows) -> tuple[str, Rows]:
        """A statement, and what the rows are after it."""
        mine, part = f"w = {self.number}", self.random.randrange(3)
        if len(rows) > MOST_ROWS:
            return f"DELETE FROM soak.{table} WHERE {mine} AND id % 3 <> {part}", {key: row for key, row in rows.items() if key % 3 == part}
        new = {max(rows, default=0) + 1 + at: (self.random.randrange(1000), f"n{at}") for at in range(self.random.randint(1, 30))}
        columns = ", ".join(f"({key}, {v}, '{note}', {self.number})" for key, (v, note) in new.items())
        kind = self.random.choice(["insert", "insert", "update", "update", "delete", "merge", "merge", "overwrite", "truncate"])
        if kind == "update":
            changed = {key: (v + 1, "u") if key % 3 == part else (v, note) for key, (v, note) in rows.items()}
            return f"UPDATE soak.{table} SET v = v + 1, note = 'u' WHERE {mine} AND id % 3 = {part}", changed
        if kind == "delete":
            return f"DELETE FROM soak.{table} WHERE {mine} AND id % 7 = {part}", {key: row for key, row in rows.items() if key % 7 != part}
        if kind == "merge":
            matched = dict.fromkeys(self.random.sample(sorted(rows), min(len(rows), 10)), (-1, "m")) if rows else {}
            source = ", ".join(f"({key}, {v}, '{note}')" for key, (v, note) in {**matched, **new}.items())
            gone = {key for key in matched if key % 2}
            after = {**rows, **matched, **new}
            sql = (f"MERGE INTO soak.{table} t USING (SELECT * FROM VALUES {source} AS r(id, v, note)) s ON t.id = s.id AND t.{mine}"
                   " WHEN MATCHED AND s.id % 2 = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, note = s.note"
                   f" WHEN NOT MATCHED THEN INSERT (id, v, note, w) VALUES (s.id, s.v, s.note, {self.number})")
            return sql, {key: row for key, row in after.items() if key not in gone}
        if kind == "overwrite" and table == "facts":
            columns = ", ".join(f"({key}, {v}, '{note}')" for key, (v, note) in new.items())
            return f"INSERT OVERWRITE soak.facts PARTITION ({mine}) VALUES {columns}", new
        if kind == "truncate" and table == "facts" and rows:
            return f"TRUNCATE TABLE soak.facts PARTITION ({mine})", {}
        return f"INSERT INTO soak.{table} VALUES {columns}", {**rows, **new}

    def check(self, table: str) -> None:
        """Its rows are those of the ledger; a statement whose end is not known was made whole or not at all."""
        ledger = self.ledgers[table]
        if ledger.pending is not None:
            self.wait_for_earlier()
        seen = {row.id: (row.v, row.note) for row in self.read(table)}
        if ledger.pending is not None and seen == ledger.pending.after:
            ledger.end(made=True)
        elif ledger.pending is not None and seen == ledger.rows:
            ledger.end(made=False)
        elif ledger.pending is not None or seen != ledger.rows:
            pending = ledger.pending.statement if ledger.pending else "nothing"
            self.anomaly(f"{table} of {self.role}: {difference(ledger.rows, seen)}; pending was {pending}")
            raise SystemExit(1)

    def read(self, table: str) -> list[Any]:
        rows = self.rows(f"SELECT id, v, note FROM soak.{table} WHERE w = {self.number}")
        if len({row.id for row in rows}) != len(rows):
            self.anomaly(f"{table}: ids of {self.role} are there twice: {Counter(row.id for row in rows).most_common(3)}")
        return rows

    def wait_for_earlier(self) -> None:
        """Until no transaction of this role's drivers is open: none may commit what is judged as not made."""
        ends_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends_at:
            try:
                with MetastoreClient(self.uris) as client:
                    open_ = [txn for txn in client.get_open_txns_info().open_txns
                             if txn.state == client.types.TxnState.OPEN and f"soak-{self.role}" in (txn.user or "")]
                if not open_:
                    return
            except Exception:  # noqa: BLE001 - servers are down; whatever it is, it is tried again
                self.count("servers away")
            pause(0.5)
        self.anomaly(f"a transaction of {self.role} did not end in {PATIENCE_S} s")

    # -- what all change -------------------------------------------------------------------------------------------
    def transfer(self) -> None:
        """Money moves between two accounts in one statement; others do the same, and one of two may lose."""
        a, b = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randrange(1, 50)
        self.count("transfers begun")
        try:
            self.spark.sql(f"MERGE INTO soak.accounts t USING (SELECT * FROM VALUES ({a}, {amount}), ({b}, -{amount}) AS r(id, more)) s"
                           " ON t.id = s.id"
                           " WHEN MATCHED THEN UPDATE SET balance = balance + more, moves = moves + 1")
            self.count("transfers")
        except FAILURES as error:
            if self.failed("transfers", error):
                self.count("transfers not made")

    def churn(self) -> None:
        """Tables come, change and go, whatever compacts them meanwhile."""
        name = f"soak.churn_{self.role}_{self.churned % 3}"
        self.churned += 1
        for sql in (f"DROP TABLE IF EXISTS {name}", f"DROP TABLE IF EXISTS {name}_renamed",
                    f"CREATE TABLE {name} (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')",
                    f"INSERT INTO {name} VALUES (1), (2)", f"ALTER TABLE {name} ADD COLUMNS (more STRING)",
                    f"INSERT INTO {name} VALUES (3, 'x')", f"DELETE FROM {name} WHERE id = 1",
                    f"ALTER TABLE {name} RENAME TO {name}_renamed"):
            try:
                self.spark.sql(sql)
            except FAILURES as error:
                self.failed("definitions", error)
                return
        rows = self.rows(f"SELECT id, more FROM {name}_renamed")
        if sorted((row.id, row.more) for row in rows) != [(2, None), (3, "x")]:
            self.anomaly(f"{name}_renamed has {rows}")


class Reader(Driver):
    """Reads slowly and quickly, and brings in files by a streaming query."""

    def run(self) -> None:
        stream: Any = None
        moves = 0
        while not self.has_to_stop():
            if stream is None or not stream.isActive:
                stream = self.stream()
            self.bring()
            act: Callable[[], None] = self.random.choice((self.slowly, self.cached, self.full_disk))
            act()
            moves = self.quickly(moves)
        self.drain(stream)
        self.quickly(moves)
        rows = self.rows("SELECT id FROM soak.streamed")
        brought = len(list((self.directory / "incoming").glob("*.json"))) * STREAMED
        if sorted(row.id for row in rows) != list(range(brought)):
            self.anomaly(f"streamed: {len(rows)} rows, {len({row.id for row in rows})} different, {brought} were brought")

    def drain(self, stream: Any) -> None:
        """All files that were brought in are in the table."""
        ends_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                if stream is None or not stream.isActive:
                    stream = self.stream()
                stream.processAllAvailable()
                stream.stop()
                return
            except FAILURES:
                self.count("streams that failed")
                if time.monotonic() > ends_at:
                    raise
                pause(1)

    def slowly(self) -> None:
        """A snapshot that is read for many seconds, while what it reads is compacted and cleaned."""
        silent = self.clock.silent_s
        try:
            self.balance(self._slow_rows())
            self.count("slow reads")
        except FAILURES as error:
            self.judge_read(error, silent)

    def _slow_rows(self) -> Iterator[Any]:
        for at, row in enumerate(self.spark.table("soak.accounts").repartition(6).toLocalIterator()):
            if at % 10 == 0:
                pause(self.random.uniform(0, 3))
            yield row

    def cached(self) -> None:
        """A cached frame shows the same rows as long as it is cached."""
        silent = self.clock.silent_s
        frame = self.spark.table("soak.accounts").cache()
        try:
            first = sorted(map(tuple, frame.collect()))
            pause(self.random.uniform(0, 5))
            if sorted(map(tuple, frame.collect())) != first:
                self.anomaly("a cached frame has changed")
            self.count("cached reads")
        except FAILURES as error:
            self.judge_read(error, silent)
        finally:
            frame.unpersist()

    def quickly(self, moves: int) -> int:
        rows = self.rows("SELECT id, balance, moves FROM soak.accounts")
        seen = self.balance(iter(rows))
        if seen < moves:
            self.anomaly(f"{moves} moves were seen, and then {seen}: a transfer was lost")
        self.count("quick reads")
        return seen

    def balance(self, rows: Iterator[Any]) -> int:
        """The moves of all accounts, whose money is always the same in all."""
        seen = list(rows)
        if sorted(row.id for row in seen) != list(range(ACCOUNTS)) or sum(row.balance for row in seen) != ACCOUNTS * EACH:
            self.anomaly(f"accounts: {len(seen)} rows with {sum(row.balance for row in seen)}, not {ACCOUNTS} with {ACCOUNTS * EACH}")
        return sum(row.moves for row in seen)

    def full_disk(self) -> None:
        """A disk that fills up, and one that cannot be written: a statement fails, and all is as before."""
        disk = self.directory / "disk"
        if not disk.is_mount():
            self.count("disks that could not be made")
            return
        before = self.rows("SELECT id FROM soak.on_disk")
        filler = disk / "filler"
        is_full = self.random.random() < 0.5
        try:
            if is_full:
                with filler.open("wb") as file:
                    for _ in range(10_000):
                        file.write(b"x" * 65536)
                        file.flush()
        except OSError:
            self.count("disks full")
        if not is_full:
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=False)
            self.count("disks read-only")
        try:
            self.spark.sql("INSERT INTO soak.on_disk SELECT id, uuid() FROM range(20000)")
            self.anomaly("a disk without room took rows")
        except FAILURES:
            self.count("statements on such disks")
        finally:
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=False)
            filler.unlink(missing_ok=True)
        if self.rows("SELECT id FROM soak.on_disk") != before:
            self.anomaly("a statement for which the disk had no room left rows")

    def bring(self) -> None:
        incoming = self.directory / "incoming"
        number = len(list(incoming.glob("*.json")))
        partial = incoming / f".{number}.part"
        partial.write_text("".join(json.dumps({"id": number * STREAMED + at}) + "\n" for at in range(STREAMED)))
        partial.rename(incoming / f"{number:06}.json")

    def stream(self) -> Any:
        return (self.spark.readStream.schema("id INT").json(str(self.directory / "incoming"))
                .writeStream.option("checkpointLocation", str(self.directory / "checkpoint"))
                .queryName("incoming").trigger(processingTime="2 seconds").toTable("soak.streamed"))


class Preparing(Driver):
    """Makes the tables."""

    def run(self) -> None:
        acid = "STORED AS ORC TBLPROPERTIES ('transactional'='true'"
        on_disk = f"ORC LOCATION '{(self.directory / 'disk' / 't').as_uri()}'"
        for sql in (
                "CREATE DATABASE soak",
                f"CREATE TABLE soak.facts (id INT, v INT, note STRING) PARTITIONED BY (w INT) {acid})",
                f"CREATE TABLE soak.flat (id INT, v INT, note STRING, w INT) CLUSTERED BY (id) INTO 2 BUCKETS {acid})",
                f"CREATE TABLE soak.accounts (id INT, balance INT, moves INT) {acid})",
                f"CREATE TABLE soak.streamed (id INT) {acid})",
                f"CREATE TABLE soak.broken (id INT, v STRING) {acid}, 'no_auto_compaction'='true')",
                f"CREATE TABLE soak.on_disk (id INT, v STRING) {acid.replace('ORC', on_disk)})",
                f"INSERT INTO soak.accounts SELECT CAST(id AS INT), {EACH}, 0 FROM range({ACCOUNTS})",
                "INSERT INTO soak.broken SELECT CAST(id AS INT), uuid() FROM range(1000)",
                "INSERT INTO soak.broken SELECT CAST(id AS INT), uuid() FROM range(1000)",
                "INSERT INTO soak.on_disk VALUES (1, 'a'), (2, 'b')"):
            self.spark.sql(sql)


def session(uris: str, directory: Path, role: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName(f"soak {role}")
    for key, value in {
            "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2", "spark.driver.memory": "700m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1", "spark.sql.warehouse.dir": (directory / "warehouse").as_uri()}.items():
        builder = builder.config(key, value)
    made = configure(builder, uris).getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def difference(expected: Rows, seen: Rows) -> str:
    lost, more = expected.keys() - seen.keys(), seen.keys() - expected.keys()
    other = [key for key in expected.keys() & seen.keys() if expected[key] != seen[key]]
    return f"lost {sorted(lost)[:5]} of {len(lost)}, more {sorted(more)[:5]} of {len(more)}, other {other[:5]} of {len(other)}"


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


ROLES: dict[str, type[Driver]] = {**dict.fromkeys(WRITERS, Writer), "reader": Reader, "prepare": Preparing}

if __name__ == "__main__":
    driver = ROLES[sys.argv[1]](*sys.argv[1:])
    driver.begins()
    driver.run()
    driver.done()
