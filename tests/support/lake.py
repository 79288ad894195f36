"""Tables with real directories in a temporary folder, written through real transactions, and a job without Spark."""

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from threading import Event

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import acid_state
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.store import acid_history
from metastore.compaction.cleaning.service import CleanerService
from metastore.compaction.explaining.service import ExplainingService
from metastore.compaction.initiating.service import InitiatorService
from metastore.compaction.queue.rules.requests import CompactionType, Entity
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.requests import Filter, NewRequest, select_shown
from metastore.compaction.working.service import WorkerService
from metastore.config import CompactionSettings
from metastore.files import Files
from metastore.locks.rules import LockType
from metastore.loops.cleaner import Cleaner
from metastore.loops.initiator import Initiator
from metastore.loops.job_runner import JobOutcome
from metastore.loops.worker import Worker
from metastore.txns.core.rules import Operation, reader_snapshot
from tests.support.transactions import Transactions, named, seconds

ROW = 100  # bytes that a row takes in these files


class Lake:
    """Tables of database ``d`` below a folder."""

    def __init__(self, database, folder, **settings):
        self.db = database
        self.folder = folder
        self.t = Transactions(database)
        self.settings = replace(CompactionSettings(cleaner_retention=timedelta(0)), **settings)
        self.files = Files()
        self.service = CompactionService(database, self.settings)
        database.once("INSERT INTO catalogs (name, location) VALUES ('hive', %s) ON CONFLICT DO NOTHING", [str(folder)])
        database.once("INSERT INTO databases (catalog, name, location) VALUES ('hive', 'd', %s)", [str(folder / "d.db")])

    # ------------------------------------------------------------------------------------------- the catalog
    def table(self, name="t", *, keys=(), sd=None, location=None, **parameters):
        place = location or f"file://{self.path(name)}"
        self.db.once(
            "INSERT INTO tables (catalog, db, name, type, location, sd, partition_keys, parameters, owner)"
            " VALUES ('hive', 'd', %s, 'MANAGED_TABLE', %s, %s, %s, %s, 'ann')",
            [name, place, json.dumps(sd or {}), json.dumps([{"name": key, "type": "string"} for key in keys]),
             json.dumps({"transactional": "true", **parameters})])
        self.path(name).mkdir(parents=True, exist_ok=True)
        return f"d.{name}"

    def partition(self, name, table="t", **parameters):
        self.db.once(
            'INSERT INTO partitions (table_id, name, "values", location, parameters) SELECT id, %s, %s, %s, %s FROM tables'
            " WHERE name = %s", [name, [name.split("=")[1]], f"file://{self.path(table) / name}", json.dumps(parameters),
                                 table])
        (self.path(table) / name).mkdir(parents=True, exist_ok=True)
        return f"d.{table}/{name}"

    def drop(self, name="t"):
        """Delete the table from the catalog, but not yet from the transaction side."""
        self.db.once("DELETE FROM tables WHERE name = %s", [name])

    def drop_for_good(self, name="t"):
        """DROP TABLE: the transaction side forgets it too, and the directory goes."""
        with self.db.begin() as pg:
            pg.sql("DELETE FROM tables WHERE name = %s", [name])
            acid_history.delete_table_history(pg, named(f"d.{name}"))
        shutil.rmtree(self.path(name))

    def parameters(self, name="t", **parameters):
        self.db.once("UPDATE tables SET parameters = parameters || %s::jsonb WHERE name = %s",
                     [json.dumps(parameters), name])

    # --------------------------------------------------------------------------------------------- the files
    def path(self, what):
        """``t``, ``d.t`` or ``d.t/p=1``."""
        return self.folder / "d.db" / what.removeprefix("d.")

    def put(self, what, *directories, rows=2):
        for directory in directories:
            place = self.path(what) / directory
            place.mkdir(parents=True)
            (place / "bucket_00000").write_bytes(b"x" * rows * ROW)

    def state_of(self, what="d.t"):
        """Return the state that a reader who begins now chooses."""
        location = f"file://{self.path(what)}"
        txns = reader_snapshot(self.t.txns.get_open_txns())
        return acid_state(self.files.listing(location), self.t.reads(what.partition("/")[0], txns.format()), txns,
                          lambda path: self.files.read(f"{location}/{path}"))

    def directories(self, what="d.t"):
        return sorted(child.name for child in self.path(what).iterdir() if child.is_dir())

    # ------------------------------------------------------------------------------------------------ writes
    def seed(self, write_id, what="d.t"):
        """Write ids up to this one were used by transactions long ago; a single transaction left its trace."""
        self.t.write_ids.seed_write_id(named(what.partition("/")[0]), write_id)
        self.db.once(
            'INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)'
            " VALUES (0, 'hive', 'd', %s, %s, %s, false, metastore_now())",
            [named(what.partition("/")[0]).table, what.partition("/")[2], write_id])

    def begin(self, what="d.t", operation=Operation.INSERT, rows=2):
        """Open a transaction and write a delta in it: (transaction, write id)."""
        txn_id = self.t.open()
        self.t.lock(txn_id, what, operation, LockType.SHARED_WRITE)
        write_id = self.t.allocate(what.partition("/")[0], txn_id)[txn_id]
        self.put(what, str(DeltaName(write_id, write_id, 0)), rows=rows)
        return txn_id, write_id

    def insert(self, what="d.t", rows=2, times=1):
        for _ in range(times):
            self.t.commit(self.begin(what, rows=rows)[0])

    def abort(self, what="d.t", times=1):
        for _ in range(times):
            self.t.abort(self.begin(what)[0])

    # ------------------------------------------------------------------------------------------------- loops
    def initiator(self, name="host-1"):
        return Initiator(InitiatorService(self.db, self.settings), self.files, name, "test")

    def worker(self, runner=None, name="host-7", pool=None):
        return Worker(WorkerService(self.db, self.settings), self.t.locks, self.t.write_ids, self.files, runner or FakeRunner(self.files),
                      name, "test", seconds(300), pool)

    def cleaner(self, files=None):
        return Cleaner(CleanerService(self.db, self.settings), files or self.files, Event(), self.t.locks,
                       DirectoryMoves(self.db, files or self.files))

    def outcomes(self):
        """Run a round of the Cleaner and return its outcomes."""
        return [each.outcome.value for each in self.cleaner().tick()]

    def remembered(self):
        """(table, write id) of what aborted transactions wrote and nobody cleaned."""
        return sorted(self.t.rows('''SELECT c."table", w.write_id FROM txn_components AS c
            JOIN txn_write_ids AS w USING (txn_id, catalog, db, "table")'''))

    def explained(self, what="d.t"):
        """Return what `metastore compaction explain` says of a table, or of one partition."""
        table, _, partition = what.partition("/")
        return ExplainingService(self.db, self.settings, self.files).examine(named(table), partition, 100).entities

    def request(self, kind="major", what="d.t", **more):
        table, _, partition = what.partition("/")
        return self.service.compact2(NewRequest(Entity(named(table), partition), CompactionType(kind), **more))

    def compact(self, kind="major", what="d.t"):
        """Request and work; the request's id."""
        result = self.request(kind, what)
        assert result.accepted, result.message
        report = self.worker().tick()
        assert report.outcome == "compacted", report
        return result.id

    def work(self, what="d.t", kind="major", runner=None, **more):
        """Request and let a Worker do it; its report, and the request as it is then."""
        asked = self.request(kind, what, **more)
        return self.worker(runner).tick(), self.one(asked.id)

    def shown(self, **wanted):
        with self.db.begin() as pg:
            return select_shown(pg, Filter(**wanted))

    def one(self, request_id):
        [request] = self.shown(id=request_id)
        return request

    def state(self, request_id):
        return self.one(request_id).state.value


class FakeRunner:
    """Writes what the Spark job would write, from the same specification. ``during``: called in the middle."""

    def __init__(self, files, *, during=None, missing=None, fails=None):
        self.files, self.during, self.missing, self.fails = files, during, missing, fails
        self.specs = []

    ends_with_us = True

    def unavailable(self):
        return self.missing

    def run(self, spec, pulse):
        self.specs.append(spec)
        state = acid_state(self.files.listing(spec.location), ValidWriteIdList.parse(spec.write_ids).for_compactor(),
                           ValidTxnList.parse(spec.txns), lambda path: self.files.read(f"{spec.location}/{path}"))
        names = [BaseName(spec.highest_write_id, spec.txn_id)]
        if spec.kind == "minor":
            low = min(delta.name.min_write_id for delta in state.deltas)
            names = [DeltaName(low, spec.highest_write_id, None, spec.txn_id, is_delete)
                     for is_delete in (False, True)
                     if any(delta.is_delete is is_delete for delta in state.deltas)]
        for name in names:
            place = self.files_path(spec.location) / str(name)
            place.mkdir(parents=True)
            (place / "bucket_00000").write_bytes(b"x" * ROW)
        if self.during:
            self.during(spec, pulse)
        if self.fails:
            return JobOutcome(succeeded=False, message=self.fails)
        return JobOutcome(succeeded=True)

    @staticmethod
    def files_path(location):
        from metastore.files import local_path

        return local_path(location)
