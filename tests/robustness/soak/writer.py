"""A Spark driver that changes rows of its own, moves money, and makes and drops tables."""

import os
import signal
import time
from collections import Counter
from typing import Any

from metastore.client import MetastoreClient
from tests.robustness.soak.driver import FAILURES, Driver
from tests.robustness.soak.ledger import Ledger, Rows, judged
from tests.robustness.soak.role import PATIENCE_S, pause
from tests.robustness.soak.tables import ACCOUNTS, WRITERS

MOST_ROWS, SLOW_S = 300, 20.0
CHURNED, LONGEST_S = 100_000, 20.0
"""Rows of each statement on a table that comes and goes; how long a job has been at work on it, at most, when it is to change: its lock is in the way."""
KINDS = {"insert": 4, "update": 4, "delete": 2, "merge": 4, "overwrite": 1, "truncate": 1}
"""How often; the last two lock out everybody, and wait for compactions of what they replace."""


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
        if self.role == WRITERS[-1]:  # also where there are three minutes in all
            self.churn()
        while not self.has_to_stop():
            self.random.choices((self.change, self.transfer, self.undo, self.churn), (6, 3, 1, 1))[0]()
        for table in self.ledgers:
            self.check(table)

    # -- rows of its own -------------------------------------------------------------------------------------------
    def change(self) -> None:
        table = self.random.choice(list(self.ledgers))
        ledger = self.ledgers[table]
        sql, after = self.statement(table, ledger.rows)
        ledger.begin(sql[:200], after)
        began = time.monotonic()
        try:
            self.spark.sql(sql)
        except FAILURES as error:
            if self.failed("statements", error):
                ledger.end(made=False)
        else:
            ledger.end(made=True)
            self.count("statements")
        if (took := time.monotonic() - began) > SLOW_S:
            print(f"{took:.0f} s: {sql[:100]}", flush=True)
        self.check(table)

    def undo(self) -> None:
        """Two statements of a transaction that is rolled back, or whose driver dies before: nothing of it is there."""
        table = self.random.choice(list(self.ledgers))
        ledger = self.ledgers[table]
        statements = [f"INSERT INTO soak.{table} VALUES ({max(ledger.rows, default=0) + 1}, 1, 'undone', {self.number})",
                      f"UPDATE soak.{table} SET note = 'undone' WHERE w = {self.number} AND id % 3 = 1"]
        ledger.begin(f"rolled back: {statements}", ledger.rows)
        try:
            for sql in ("CALL spark_catalog.system.begin()", *statements):
                self.spark.sql(sql)
            pause(self.random.uniform(0, 2))
            if self.random.random() < 0.2:
                os.killpg(os.getpgrp(), signal.SIGKILL)
        except FAILURES as error:
            self.failed("statements of transactions", error)
        self.roll_back()
        ledger.end(made=False)
        self.check(table)

    def roll_back(self) -> None:
        """Until the session has no transaction."""
        for _ in range(60):
            try:
                self.spark.sql("CALL spark_catalog.system.rollback()")
            except FAILURES as error:
                if "No transaction is open" in str(error):
                    return
                self.count("rollbacks that failed")
                pause(1)
            else:
                self.count("rollbacks")
                return
        raise SystemExit("a transaction could not be rolled back")

    def statement(self, table: str, rows: Rows) -> tuple[str, Rows]:
        """Return a statement, and the rows after it."""
        mine, part = f"w = {self.number}", self.random.randrange(3)
        if len(rows) > MOST_ROWS:
            return f"DELETE FROM soak.{table} WHERE {mine} AND id % 3 <> {part}", {key: row for key, row in rows.items() if key % 3 == part}
        new = {max(rows, default=0) + 1 + at: (self.random.randrange(1000), f"n{at}") for at in range(self.random.randint(1, 30))}
        columns = ", ".join(f"({key}, {v}, '{note}', {self.number})" for key, (v, note) in new.items())
        [kind] = self.random.choices(list(KINDS), list(KINDS.values()))
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
        is_made = judged(ledger, seen)
        if is_made is None:
            pending = ledger.pending.statement if ledger.pending else "nothing"
            self.anomaly(f"{table} of {self.role}: {difference(ledger.rows, seen)}; pending was {pending}")
            raise SystemExit(1)
        if ledger.pending is not None:
            ledger.end(made=is_made)

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
        """Tables come, change and go, in the middle of a job that compacts them; it reads for seconds."""
        name = f"soak.churn_{self.role}_{self.churned % 3}"
        self.churned += 1
        for sql in (f"DROP TABLE IF EXISTS {name}", f"DROP TABLE IF EXISTS {name}_renamed",
                    f"CREATE TABLE {name} (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')",
                    f"INSERT INTO {name} SELECT CAST(id AS INT) FROM range({CHURNED})", f"ALTER TABLE {name} ADD COLUMNS (more STRING)",
                    f"INSERT INTO {name} SELECT CAST(id + {CHURNED} AS INT), uuid() FROM range({CHURNED})", f"DELETE FROM {name} WHERE id % 7 = 1",
                    f"ALTER TABLE {name} RENAME TO {name}_renamed"):
            if "RENAME" in sql and self.met(name.removeprefix("soak.")):
                pause(self.random.uniform(0, LONGEST_S))
                self.count("renames that met a job")
            try:
                self.spark.sql(sql)
            except FAILURES as error:
                self.failed("definitions", error)
                return
        left = [number for number in range(2 * CHURNED) if number % 7 != 1]
        expected = (len(left), sum(left), sum(number >= CHURNED for number in left))
        [row] = self.rows(f"SELECT count(*), sum(id), count(more) FROM {name}_renamed")
        if tuple(row) != expected:
            self.anomaly(f"{name}_renamed has {tuple(row)}, not {expected}")


def difference(expected: Rows, seen: Rows) -> str:
    lost, more = expected.keys() - seen.keys(), seen.keys() - expected.keys()
    other = [key for key in expected.keys() & seen.keys() if expected[key] != seen[key]]
    return f"lost {sorted(lost)[:5]} of {len(lost)}, more {sorted(more)[:5]} of {len(more)}, other {other[:5]} of {len(other)}"
