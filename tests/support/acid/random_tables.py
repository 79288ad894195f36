"""Random directories of a table with transactions, and what their rows are: for tests that have them compacted and read.

A directory follows from its seed. Files are written event by event, without Spark, or by Hive's own writer. A row is known
by its ROW__ID; its values are those that Hive's reader answers.
"""

import base64
import shutil
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pyorc

from metastore.acid.bucket import decode, encode
from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import NO_OPEN, ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, acid_state
from metastore.files import Files
from tests.support.acid.old_names import MARKER, copied, plain
from tests.support.hive_oracle.oracle import HiveOracle

RowId: TypeAlias = tuple[int, int, int]
Event: TypeAlias = tuple[int, RowId, int, list[Any] | None]
"""Operation, id, the write id of who did it, values."""
INSERT, DELETE = 0, 2
WORDS = ("", "a", "ü", "zwölf", "x y")
TYPES = ("int", "bigint", "string", "double", "boolean", "decimal(10,2)", "varchar(5)", "binary", "date", "timestamp",
         "array<int>", "map<string,int>", "struct<x:int,y:string>", "array<struct<x:int,y:string>>")
WIDER = {"int": ("bigint", "double"), "varchar(5)": ("string",), "decimal(10,2)": ("decimal(14,2)",)}
"""What ALTER TABLE may make of a column: whatever the files hold is a value of the new type."""


class RandomTable:
    """``rows``: what a reader must see of ``directory``. ``step`` changes both."""

    def __init__(self, directory: Path, oracle: HiveOracle, seed: int) -> None:
        self.directory, self.oracle, self.random = directory, oracle, Random(seed)
        self.columns = {f"c{number}": self.random.choice(TYPES) for number in range(self.random.randint(1, 3))}
        self.buckets = self.random.randint(1, 3)
        self.rows: dict[RowId, list[Any]] = {}
        self.aborted: set[int] = set()
        self.mark = 0
        self.is_widened = False
        self.log = [f"seed {seed}: {self.columns}, {self.buckets} buckets"]
        directory.mkdir()
        if self.random.random() < 0.4:
            self._originals()

    def snapshot(self) -> ValidWriteIdList:
        """All that was done."""
        aborted = tuple(sorted(self.aborted))
        return ValidWriteIdList("db.t", self.mark, None, aborted, frozenset(aborted))

    def text(self) -> str:
        return f"db.t:{self.mark}:{NO_OPEN}::{','.join(map(str, sorted(self.aborted)))}"

    def state(self) -> AcidState:
        files = Files()
        return acid_state(files.listing(str(self.directory)), self.snapshot(), ValidTxnList.everything(),
                          lambda path: files.read(f"{self.directory}/{path}"))

    def for_hive(self) -> Path:
        """Copy the files that a reader reads, without the ``_v`` that Hive 2.3 cannot read, and without original files.

        Hive 2.3 numbers the rows of original files in its own way: deletes of later Hives do not find them.
        """
        place = self.directory.parent / "for_hive"
        shutil.rmtree(place, ignore_errors=True)
        state = self.state()
        copied(self.directory, place, replace(state, originals=()))
        if state.base:  # it takes every base as a compactor's
            (place / plain(state.base.path) / "_metadata_acid").write_text(MARKER)
        return place

    def rows_for_hive(self) -> dict[RowId, list[Any]]:
        """Return the rows that are in ``for_hive``."""
        return {key: row for key, row in self.rows.items() if key[0] or not self.state().originals}

    def rebalanced(self, buckets: int) -> None:
        """Renumber rows as a rebalance does (COMP-W18): ids in their order, dealt evenly; write ids stay."""
        count = min(buckets, len(self.rows))
        self.rows = {(row_id[0], encode(number * count // len(self.rows)), number): row
                     for number, (row_id, row) in enumerate(sorted(self.rows.items(), key=lambda pair: pair[0]))}
        self.buckets = max(self.buckets, buckets)

    def clean(self) -> None:
        """Remove what is obsolete, as the Cleaner does."""
        for path in self.state().obsolete:
            place = self.directory / path
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        self.log.append("clean")

    def step(self) -> None:
        """Run a random statement."""
        kinds = {self._insert: 4, self._change: 4, self._batch: 1, self._by_hive: 2, self._overwrite: 1, self._add_column: 1,
                 self._widen: 1}
        [kind] = self.random.choices(list(kinds), list(kinds.values()))
        kind()

    # -- statements ------------------------------------------------------------------------------------------------
    def _originals(self) -> None:
        """Files from before the table had transactions."""
        for bucket in range(self.buckets):
            at = 0
            for name in (f"{bucket:06}_0", f"{bucket:06}_0_copy_1")[:self.random.randint(0, 2)]:
                values = [self._values() for _ in range(self.random.randint(1, 4))]
                self._write(name, f"struct<{self._fields()}>", [self._stored(row) for row in values])
                self.rows |= {(0, encode(bucket), at + number): row for number, row in enumerate(values)}
                at += len(values)
        self.log.append(f"originals: {len(self.rows)} rows")

    def _insert(self) -> None:
        self._statement(self._new_rows, lambda _: [])

    def _change(self) -> None:
        """Run an UPDATE, a DELETE or a MERGE."""
        share = self.random.choice((0.1, 0.5, 1.0))
        gone = [row_id for row_id in self.rows if self.random.random() < share]
        self._statement(self._new_rows if self.random.random() < 0.6 else lambda *_: {}, lambda _: gone)

    def _statement(self, new: Any, gone: Any) -> None:
        """One or two statements of a transaction, which may be aborted."""
        self.mark += 1
        is_aborted = self.random.random() < 0.15
        after = dict(self.rows)
        for statement in range(self.random.choice((1, 1, 2))):
            made, deleted = new(self.mark, statement), [row_id for row_id in gone(statement) if row_id in after]
            self._events(DeltaName(self.mark, self.mark, statement), [(INSERT, key, self.mark, row) for key, row in made.items()])
            self._events(DeltaName(self.mark, self.mark, statement, is_delete=True), [(DELETE, key, self.mark, None) for key in deleted])
            after = {key: row for key, row in after.items() if key not in deleted} | made
            self.log.append(f"{self.mark}: {len(made)} in, {len(deleted)} out{', aborted' if is_aborted else ''}")
        if is_aborted:
            self.aborted.add(self.mark)
        else:
            self.rows = after

    def _batch(self) -> None:
        """Write a delta of several write ids, as streaming clients do; some of them were aborted."""
        first, self.mark = self.mark + 1, self.mark + self.random.randint(2, 3)
        events = []
        for write_id in range(first, self.mark + 1):
            made = self._new_rows(write_id, 0)
            events += [(INSERT, key, write_id, row) for key, row in made.items()]
            if self.random.random() < 0.3:
                self.aborted.add(write_id)
            else:
                self.rows |= made
        self._events(DeltaName(first, self.mark), events)
        self.log.append(f"{first} to {self.mark}: a batch, aborted are {sorted(self.aborted)}")

    def _by_hive(self) -> None:
        """Hive 2.3's writer, whose bucket numbers are of the older kind."""
        self.mark += 1
        bucket, values = self.random.randrange(self.buckets), [self._values() for _ in range(self.random.randint(1, 4))]
        self.oracle.write(self.directory, self.columns, write_id=self.mark, bucket=bucket, inserts=values)
        self.rows |= {(self.mark, bucket, number): row for number, row in enumerate(values)}
        self.log.append(f"{self.mark}: {len(values)} by Hive")

    def _overwrite(self) -> None:
        self.mark += 1
        self.rows = self._new_rows(self.mark, 0)
        self._events(BaseName(self.mark), [(INSERT, key, self.mark, row) for key, row in self.rows.items()])
        self.log.append(f"{self.mark}: overwrite with {len(self.rows)}")

    def _add_column(self) -> None:
        """ALTER TABLE ADD COLUMNS: files that are there lack it."""
        if len(self.columns) > 4:
            return
        self.columns[f"c{len(self.columns)}"] = kind = self.random.choice(TYPES)
        self.rows = {key: [*row, None] for key, row in self.rows.items()}
        self.log.append(f"column {kind}")

    def _widen(self) -> None:
        """ALTER TABLE CHANGE COLUMN: files that are there have the narrower type."""
        name, kind = self.random.choice(list(self.columns.items()))
        if kind in WIDER:
            self.columns[name] = wider = self.random.choice(WIDER[kind])
            self.is_widened = True
            self.log.append(f"{name}: {kind} becomes {wider}")

    # -- rows and files --------------------------------------------------------------------------------------------
    def _new_rows(self, write_id: int, statement: int) -> dict[RowId, list[Any]]:
        return {(write_id, encode(bucket, statement), number): self._values()
                for bucket in range(self.buckets) for number in range(self.random.choice((0, 1, 3, 8)))}

    def _values(self) -> list[Any]:
        return [made(kind, self.random) for kind in self.columns.values()]

    def _events(self, name: BaseName | DeltaName, events: list[Event]) -> None:
        """Write a file for each bucket with rows; of a base also for each without."""
        schema = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
                  f"row:struct<{self._fields()}>>")
        by_bucket: dict[int, list[Event]] = {}
        for event in sorted(events, key=lambda event: (event[1], -event[2])):
            by_bucket.setdefault(bucket_of(event[1]), []).append(event)
        if isinstance(name, BaseName):
            by_bucket = {bucket: by_bucket.get(bucket, []) for bucket in range(self.buckets)}
        for bucket, of_bucket in by_bucket.items():
            last = ",".join(map(str, of_bucket[-1][1])) + ";" if of_bucket else ""
            self._write(f"{name}/bucket_{bucket:05}", schema, [
                (operation, *row_id, by, row and self._stored(row)) for operation, row_id, by, row in of_bucket],
                **{"hive.acid.key.index": last.encode(), "hive.acid.version": b"2"})

    def _fields(self) -> str:
        return ",".join(f"{name}:{kind}" for name, kind in self.columns.items())

    def _stored(self, row: list[Any]) -> tuple[Any, ...]:
        return tuple(stored(value, kind) for value, kind in zip(row, self.columns.values(), strict=True))

    def _write(self, name: str, schema: str, rows: list[tuple[Any, ...]], **notes: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file, pyorc.Writer(file, schema, timezone=ZoneInfo("UTC")) as writer:
            writer.writerows(rows)
            writer.set_user_metadata(**notes)


def bucket_of(row_id: RowId) -> int:
    """Return the number of the file that a row is in."""
    return decode(row_id[1]).writer_id


def made(kind: str, random: Random) -> Any:
    """Choose a value of the type, as Hive's reader answers it."""
    if random.random() < 0.15:
        return None
    number = random.randrange(1, 100)
    simple = {"int": number - 50, "bigint": number << 40, "string": random.choice(WORDS), "double": number / 4, "boolean": number % 2 == 0,
              "decimal(10,2)": f"{number}.{number % 9 + 1}{number % 9 + 1}", "decimal(14,2)": f"{number}.{number % 9 + 1}{number % 9 + 1}",
              "varchar(5)": random.choice(WORDS),
              "binary": base64.b64encode(bytes([0, number, 255])).decode(), "date": f"20{number:02}-02-28".replace("20100", "2099"),
              "timestamp": f"2013-03-{number % 9 + 10} 02:30:{number % 50 + 10}.{number % 9 + 1}"}
    if kind in simple:
        return simple[kind]
    if kind == "array<int>":
        return [made("int", random) for _ in range(number % 4)]
    if kind == "map<string,int>":
        return [[word, made("int", random)] for word in WORDS[:number % 3]]
    if kind == "struct<x:int,y:string>":
        return [made("int", random), made("string", random)]
    return [made("struct<x:int,y:string>", random) for _ in range(number % 3)]


def stored(value: Any, kind: str) -> Any:
    """Convert the value to the form in which it is written into a file."""
    if value is None:
        return None
    plain = {"decimal(10,2)": Decimal, "decimal(14,2)": Decimal, "binary": base64.b64decode, "date": date.fromisoformat,
             "timestamp": lambda text: datetime.fromisoformat(f"{text:0<26}").replace(tzinfo=ZoneInfo("UTC")),
             "map<string,int>": dict, "struct<x:int,y:string>": tuple,
             "array<struct<x:int,y:string>>": lambda items: [item and tuple(item) for item in items]}
    return plain[kind](value) if kind in plain else value
