"""Random stories about one ACID table, each step also done on a plain Python list: what the table shows must be the list.

A story follows from its seed. Readers are opened on the way and asked for their rows only later, after whatever
changes, compactions and cleanings came in between.
"""

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import pytest

from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table

KEYS = ["a", "b/ü", "c"]
SHAPES = ["", "CLUSTERED BY (id) INTO 3 BUCKETS", "PARTITIONED BY (p STRING)",
          "PARTITIONED BY (p STRING) CLUSTERED BY (id) INTO 2 BUCKETS"]


class Row(NamedTuple):
    id: int
    name: str | None
    p: str = ""


class UndoneError(Exception):
    """What ends a transaction that is meant to be undone."""


@dataclass
class Held:
    """A reader that has not read yet, and what it must find."""

    frame: object
    rows: list
    since: int


class Story:
    """One table. ``tell(steps)`` runs; a failure's message is the story so far."""

    def __init__(self, seed, session, db, compacting):
        self.rng = Random(seed)
        self.session, self.compacting, self.db = session, compacting, db
        self.shape = SHAPES[seed % len(SHAPES)]
        self.is_partitioned = "PARTITIONED" in self.shape
        self.name = f"{db}.t"
        self.rows: list[Row] = []
        self.held: list[Held] = []
        self.log = [f"seed {seed}: {self.shape or 'flat'}"]
        self.counts: Counter[str] = Counter()
        session.sql(f"CREATE TABLE {self.name} (id INT, name STRING) {self.shape} STORED AS ORC "
                    "TBLPROPERTIES ('transactional'='true')")

    def tell(self, steps):
        try:
            self.insert()
            for _ in range(steps):
                step = self.rng.choices(list(STEPS), weights=list(STEPS.values()))[0]
                self.counts[step] += 1
                getattr(self, step)()
                self.check()
            while self.held:
                self.read_held()
            self.compact()
            self.clean()
            self.check()
            with_faults = [one for one in check_table(self.session.client, Files(), table_name(self.db, "t"))
                           if not one.finding.is_unneeded]
            assert with_faults == [], with_faults
        except BaseException as error:
            error.add_note("\n".join(self.log))
            raise

    # ------------------------------------------------------------------------------------------- what is checked
    def check(self):
        assert self.shown(self.session.table(self.name)) == sorted(self.rows, key=repr), "after this step"
        if self.rng.random() < 0.2:
            low = self.rng.randrange(20)
            found = self.session.sql(f"SELECT count(*), count(DISTINCT ROW__ID) FROM {self.name} WHERE id >= {low}").first()
            assert found[0] == sum(row.id >= low for row in self.rows)

    def shown(self, frame):
        return sorted((Row(*row) for row in frame.collect()), key=repr)

    # ------------------------------------------------------------------------------------------------- changes
    def insert(self):
        self._insert(self._new(self.rng.choice([1, 3, 20])))

    def update(self):
        where, holds = self._condition()
        suffix = self.rng.choice("!?#")
        self.log.append(f"update {suffix} where {where}")
        hit = [row for row in self.rows if holds(row)]
        assert self.session.update(self.name, {"name": f"concat(name, '{suffix}')"}, where) == len(hit)
        self.rows = [row._replace(name=row.name and row.name + suffix) if holds(row) else row for row in self.rows]

    def delete(self):
        where, holds = self._condition()
        self.log.append(f"delete where {where}")
        gone = [row for row in self.rows if holds(row)]
        assert self.session.delete(self.name, where) == len(gone)
        self.rows = [row for row in self.rows if not holds(row)]

    def merge(self):
        known = sorted({row.id for row in self.rows})
        ids = self.rng.sample(known, min(len(known), 4)) + [one.id for one in self._new(2)]
        source = {number: Row(number, f"m{number}", self._key()) for number in ids}
        self.log.append(f"merge {ids}")
        frame = self.session.spark.createDataFrame(list(source.values()), "id INT, name STRING, p STRING")
        values = "(id, name, p) VALUES (s.id, s.name, s.p)" if self.is_partitioned else "(id, name) VALUES (s.id, s.name)"
        self.session.merge(self.name, frame, "t.id = s.id", [
            "WHEN MATCHED AND t.id % 3 = 0 THEN DELETE", "WHEN MATCHED THEN UPDATE SET name = s.name",
            f"WHEN NOT MATCHED AND s.id % 5 != 0 THEN INSERT {values}"])
        fresh = [row for row in source.values() if row.id not in known and row.id % 5 != 0]
        kept = [row for row in self.rows if row.id not in source or row.id % 3 != 0]
        self.rows = [row._replace(name=source[row.id].name) if row.id in source else row for row in kept] + fresh

    def overwrite(self):
        while self.held:  # of this session: it would wait for itself, and is told so
            self.read_held()
        new = self._new(self.rng.choice([0, 5]))
        self.log.append(f"overwrite with {new}")
        if self.is_partitioned and self.rng.random() < 0.5:
            key = self._key()
            new = [row._replace(p=key) for row in new]
            self.session.overwrite(self.name, self._frame(new).drop("p"), partition={"p": key})
            replaced = {key}
        else:
            self.session.overwrite(self.name, self._frame(new))
            replaced = {row.p for row in new} if self.is_partitioned else {""}
        self.rows = [row for row in self.rows if row.p not in replaced] + new

    # -------------------------------------------------------------------------------------------- transactions
    def several(self):
        """Two changes in one transaction, the second of which sees the first."""
        self.log.append("begin")
        with self.session.transaction():
            self._changes()
        self.log.append("commit")

    def abort(self):
        before = self.rows
        self.log.append("begin")
        with pytest.raises(UndoneError), self.session.transaction():
            self._changes()
            raise UndoneError
        self.log.append("rollback")
        self.rows = before

    def _changes(self):
        for _ in range(2):
            getattr(self, self.rng.choice(["insert", "update", "delete", "merge"]))()
            assert self.shown(self.session.table(self.name)) == sorted(self.rows, key=repr), "inside the transaction"

    # ----------------------------------------------------------------------------- readers, compaction, cleaning
    def hold(self):
        self.log.append(f"reader {len(self.held)} opens")
        self.held.append(Held(self.session.table(self.name), sorted(self.rows, key=repr), len(self.log)))

    def read_held(self):
        if self.held:
            held = self.held.pop(self.rng.randrange(len(self.held)))
            self.log.append(f"the reader of line {held.since} reads")
            assert self.shown(held.frame) == held.rows, "what the reader was promised"

    def compact(self):
        kind = self.rng.choice(["minor", "major"])
        partition = ""
        if self.is_partitioned:
            names = self.session.client.get_partition_names(self.db, "t", -1)
            partition = self.rng.choice(sorted(names)) if names else ""
            if not names:
                return
        self.log.append(f"{kind} compaction {partition}")
        outcome = self.compacting.compact(self.db, "t", kind, partition)
        self.log.append(f"... {outcome}")
        self.counts[str(outcome)] += 1
        # None: not accepted, since one that covers as much has ended and waits for the Cleaner
        assert outcome in ("compacted", "nothing to compact", "refused", None), self.compacting.report

    def clean(self):
        self.log.append("clean")
        self.compacting.clean()

    # ------------------------------------------------------------------------------------------------ made up
    def _key(self):
        return self.rng.choice(KEYS) if self.is_partitioned else ""

    def _new(self, count):
        return [Row(number, self.rng.choice([f"n{number}", None]), self._key())
                for number in (self.rng.randrange(1000) for _ in range(count))]

    def _frame(self, rows):
        frame = self.session.spark.createDataFrame(rows, "id INT, name STRING, p STRING")
        return frame if self.is_partitioned else frame.drop("p")

    def _insert(self, new):
        self.log.append(f"insert {new}")
        assert self.session.insert(self.name, self._frame(new)) == len(new)
        self.rows = self.rows + new

    def _condition(self):
        number = self.rng.randrange(2, 6)
        found = [(f"id % {number} = 1", lambda row: row.id % number == 1), (None, lambda row: True),
                 (f"id < {number * 100}", lambda row: row.id < number * 100),
                 ("name IS NULL", lambda row: row.name is None)]
        if self.is_partitioned:
            key = self._key()
            found.append((f"p = '{key}'", lambda row: row.p == key))
        return self.rng.choices(found, weights=[4, 1, 2, 2, *([3] if self.is_partitioned else [])])[0]


STEPS = {"insert": 5, "update": 4, "delete": 3, "merge": 3, "overwrite": 1, "several": 2, "abort": 2, "hold": 2,
         "read_held": 1, "compact": 4, "clean": 3}
