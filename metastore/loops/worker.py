"""The Worker: it claims a request, decides whether a job is worthwhile, runs the job, and commits.

Rule: the Worker writes only under its claim. Every way out either commits (result visible, request ready for cleaning)
or aborts the compaction's transaction first and removes what the job wrote afterwards: never the other way round. Steps
after the job are repeated while the lease lives; the outcome of a commit without an answer is looked up.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from threading import Event, Thread
from time import perf_counter
from typing import Any, NamedTuple

from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import AcidState, acid_state
from metastore.catalog.model import Json
from metastore.catalog.rules.storage_classes import Classes, refused_storage
from metastore.catalog.service.statistics import StatisticsService
from metastore.compaction.cleaning.rules import results_of, staging_of, top_directories
from metastore.compaction.initiating.rules import Action, decide
from metastore.compaction.queue.rules.properties import job_properties, refused_format, refused_output, refused_property
from metastore.compaction.queue.rules.requests import Compaction, CompactionType
from metastore.compaction.queue.store.entities import Described
from metastore.compaction.queue.store.requests import Job
from metastore.compaction.working.job_specification import CompactionJobResult, CompactionJobSpec, JobProgress
from metastore.compaction.working.rules import later_deletes
from metastore.compaction.working.service import Started, WorkerService, claim_of
from metastore.db import failpoints
from metastore.errors import ClaimLostError, MetastoreError, OutcomeUnknownError, TxnAbortedError, UnavailableError
from metastore.files import Files
from metastore.locks.rules import LockObject, LockRequest, LockState, LockType, Operation, WantedLock
from metastore.locks.service import LockService
from metastore.loops.job_process import JobLivesError
from metastore.loops.job_runner import JobRunner
from metastore.roots import refusal
from metastore.telemetry.logs import get_logger
from metastore.write_ids.rules import Allocation
from metastore.write_ids.service import WriteIdService

LOCK_RETRY = timedelta(minutes=1)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
_log = get_logger(__name__)


class WorkOutcome(StrEnum):
    """The outcomes of a tick."""

    IDLE = "idle"
    UNAVAILABLE = "no Spark here"
    COMPACTED = "compacted"
    NOTHING_TO_COMPACT = "nothing to compact"
    REFUSED = "refused"
    FAILED = "failed"
    UNPROVEN = "failed: what was written is not what was read"
    RELEASED = "released"
    LOST = "claim lost"


class WorkReport(NamedTuple):
    """The report of a tick."""

    outcome: WorkOutcome
    compaction_id: int | None = None
    reason: str = ""

    @property
    def step(self) -> str:
        """The name in the metrics, which distinguish a wrong compaction from one that could not be done."""
        return "compaction_proof" if self.outcome is WorkOutcome.UNPROVEN else "compaction"

    @property
    def is_failure(self) -> bool:
        """True if the tick counts as failed."""
        return self.outcome in {WorkOutcome.FAILED, WorkOutcome.UNPROVEN}

    @property
    def worked(self) -> bool:
        """True if more work may be waiting."""
        return self.outcome in {WorkOutcome.COMPACTED, WorkOutcome.NOTHING_TO_COMPACT}


class _RefusedError(Exception):
    """Error: the request is not to be carried out."""


class _LaterError(Exception):
    """Error: the request is to be tried again, here or elsewhere."""


class _UnprovenError(Exception):
    """Error: the job's outputs do not follow from its inputs."""


@dataclass(frozen=True)
class Worker:
    """A Worker; several may share the services. ``worker_id`` is unique: ``host-number``."""

    compactions: WorkerService
    locks: LockService
    write_ids: WriteIdService
    files: Files
    runner: JobRunner
    worker_id: str
    version: str
    txn_timeout: timedelta
    pool: str | None = None
    stopping: Event = field(default_factory=Event)
    statistics: StatisticsService | None = None
    """The service of column statistics; None: they are not in this database."""
    storage_classes: Sequence[Classes] = ()
    """The classes that may store insert-only tables, besides the known ones."""

    def tick(self) -> WorkReport:
        """Work on a request, if there is one."""
        missing = self.runner.unavailable()
        if missing is not None:
            reason = f"Worker {self.worker_id} cannot run it: {missing}"
            if self.compactions.note_waiting(reason, self.pool):
                _log.warning("compaction_no_spark", worker_id=self.worker_id, reason=missing)
            return WorkReport(WorkOutcome.UNAVAILABLE, reason=reason)
        claimed = self.compactions.claim(self.worker_id, self.version, self.pool)
        if claimed is None:
            return WorkReport(WorkOutcome.IDLE)
        log = _log.bind(
            compaction_id=claimed.id,
            entity=str(claimed.entity),
            type=claimed.type.value,
            worker_id=self.worker_id,
            attempt=claimed.attempt,
        )
        log.info("compaction_claimed")
        report = _Work(self, claimed, log).done()
        log.info("compaction_ended", outcome=report.outcome.value, reason=report.reason)
        return report


class _Work:
    """A claimed request in progress."""

    def __init__(self, worker: Worker, claimed: Compaction, log: Any) -> None:
        self._worker = worker
        self._claimed = claimed
        self._log = log
        self._claim = claim_of(claimed)
        self._started: Started | None = None
        self._location = ""
        self._may_write = False
        self._progress: JobProgress | None = None
        self._started_at = perf_counter()
        self._beat_at = self._held_since = perf_counter()

    def done(self) -> WorkReport:
        """Carry the request out and record every failure."""
        try:
            outcome, reason = self._carry_out()
        except OutcomeUnknownError as error:
            # The database was unavailable while the lease lived. Either the commit is there, or another Worker starts
            # anew: nothing may be removed.
            outcome, reason = WorkOutcome.LOST, str(error)
        except _RefusedError as error:
            outcome, reason = self._undone(WorkOutcome.REFUSED, str(error))
        except (_LaterError, UnavailableError) as error:
            outcome, reason = self._undone(WorkOutcome.RELEASED, str(error))
        except ClaimLostError as error:
            outcome, reason = self._undone(WorkOutcome.LOST, str(error))
        except _UnprovenError as error:
            outcome, reason = self._undone(WorkOutcome.UNPROVEN, str(error))
        except JobLivesError as error:
            self._may_write = True
            outcome, reason = self._undone(WorkOutcome.FAILED, str(error))
        except (MetastoreError, OSError, ValueError, RuntimeError) as error:
            outcome, reason = self._undone(WorkOutcome.FAILED, str(error) or type(error).__name__)
        return WorkReport(outcome, self._claimed.id, reason)

    def _carry_out(self) -> tuple[WorkOutcome, str]:
        worker, claimed = self._worker, self._claimed
        table = self._checked(worker.compactions.describe(claimed.entity))
        user = claimed.run_as or worker.compactions.settings.run_as_user or table.owner or ""
        self._started = started = worker.compactions.begin(claimed, user, worker.worker_id.rpartition("-")[0])
        self._lock(started)
        if table.lacks_partition:
            self._commit(started)
            return WorkOutcome.NOTHING_TO_COMPACT, "no partition is named: aborted directories are left to the Cleaner"
        self._location = table.location.rstrip("/")
        if claimed.type is CompactionType.REBALANCE:
            self._started = started = self._with_write_id(started)
            self._require_no_later_deletes(started)
        decision = decide(
            claimed.type,
            self._state(started),
            started.write_ids.for_compactor(),
            worker.compactions.settings.aborted_txn_threshold,
            insert_only=table.is_insert_only,
        )
        if decision.action is Action.REFUSE:
            raise _RefusedError(decision.reason)
        if decision.action is Action.CLEAN_ONLY:
            self._commit(started)
            return WorkOutcome.NOTHING_TO_COMPACT, decision.reason
        statistics = self._run(table, started)
        self._within_lease(self._require_results)
        failpoints.hit("worker.before_commit")
        self._commit(started)
        failpoints.hit("worker.after_commit")
        self._renew_statistics(statistics, started)
        return WorkOutcome.COMPACTED, decision.reason

    def _checked(self, table: Described | None) -> Described:
        entity, rebalance = self._claimed.entity, self._claimed.type is CompactionType.REBALANCE
        if table is None:
            raise _RefusedError(f"Table {entity.table} does not exist (any more)")
        if not table.partition_exists:
            raise _RefusedError(f"Partition {entity} does not exist (any more)")
        roots = self._worker.files.roots
        if roots is not None and not roots.covers(table.location):
            raise _RefusedError(refusal(table.location))
        if rebalance and table.bucket_columns:
            raise _RefusedError(f"Table {entity.table} is bucketed: its rows cannot be dealt to other buckets")
        if rebalance and table.is_insert_only:
            raise _RefusedError(
                f"Table {entity.table} is insert-only: its rows have no ids; request a major compaction instead"
            )
        if table.is_sorted:
            raise _RefusedError(f"Table {entity.table} is sorted: compaction would lose the order")
        self._require_harmless(table)
        if not table.is_transactional:
            raise ValueError(f"Table {entity.table} is not transactional: there is nothing to compact")
        if table.is_insert_only and not self._worker.compactions.settings.compact_insert_only:
            raise ValueError("Compaction of insert-only tables is switched off (hive.compactor.compact.insert.only)")
        if self._claimed.number_of_buckets and not rebalance:
            self._log.warning("compaction_buckets_ignored", number_of_buckets=self._claimed.number_of_buckets)
        return table

    def _require_harmless(self, table: Described) -> None:
        worker, request = self._worker, self._claimed.properties
        database, own = table.database_parameters, table.parameters
        refused = (
            refused_property(database)
            or refused_property(own)
            or refused_property(request)
            or refused_output(request)
            or refused_format(job_properties(database, own, request))
            or next(filter(None, (refused_storage(sd, own, worker.storage_classes) for sd in table.descriptors)), None)
        )
        if refused is not None:
            raise _RefusedError(refused)

    def _lock(self, started: Started) -> None:
        """Exclude every other process that would replace the files, without waiting."""
        entity, rebalance = self._claimed.entity, self._claimed.type is CompactionType.REBALANCE
        wanted = WantedLock(
            LockType.EXCL_WRITE if rebalance else LockType.SHARED_READ,
            LockObject(*entity.table, entity.partition),
            Operation.UPDATE if rebalance else Operation.SELECT,
            is_transactional=True,
        )
        [answer] = self._worker.locks.lock(
            [
                LockRequest(
                    (wanted,), started.txn_id, "compactor", self._worker.worker_id, f"compaction {self._claimed.id}"
                )
            ]
        )
        if isinstance(answer, MetastoreError):
            raise answer
        if answer.state is not LockState.ACQUIRED:
            text = f"The {wanted.type.value} lock on {entity} is not free; see SHOW LOCKS"
            raise ValueError(text) if rebalance else _LaterError(text)

    def _with_write_id(self, started: Started) -> Started:
        """Give a rebalance a write id, so that its base lies above every other.

        Of two bases with equal write ids Hive reads the first.
        """
        name = self._claimed.entity.table
        [answer] = self._worker.write_ids.allocate_table_write_ids([Allocation(name, (started.txn_id,))])
        if isinstance(answer, Exception):
            raise answer
        return self._worker.compactions.begin_again(started, self._claimed.entity, answer[started.txn_id])

    def _require_no_later_deletes(self, started: Started) -> None:
        """Require that no rows were deleted by ids that the rebalance changes, in a directory that it does not read."""
        mark, open_ids = started.highest_write_id, started.write_ids.open
        later = later_deletes(self._state(started, started.write_ids), mark)
        base = self._state(started).base
        if later is not None:
            raise _LaterError(
                f"{later} deletes rows by their ids, and a rebalance can only go up to write id {mark} as long as the "
                f"write id {open_ids[0] if open_ids else mark + 1} is open; see SHOW TRANSACTIONS"
            )
        if base is not None and base.name.write_id == mark:
            raise _LaterError(
                f"{base.path} goes up to write id {mark} already, and so would a rebalance as long as the write id "
                f"{open_ids[0] if open_ids else mark + 1} is open; see SHOW TRANSACTIONS"
            )

    def _state(self, started: Started, write_ids: ValidWriteIdList | None = None) -> AcidState:
        """Return the compaction's view of the location, by its own or another list of write ids."""
        with self._kept_alive():
            listing = self._worker.files.listing(self._location)
        return acid_state(
            listing,
            write_ids or started.write_ids.for_compactor(),
            started.txns,
            lambda path: self._worker.files.read(f"{self._location}/{path}"),
        )

    def _run(self, table: Described, started: Started) -> Mapping[str, Json]:
        """Run the job; return its statistics of columns."""
        claimed = self._claimed
        catalog, db, name = claimed.entity.table
        outcome = self._worker.runner.run(
            CompactionJobSpec(
                compaction_id=claimed.id,
                attempt=claimed.attempt,
                kind=claimed.type.value,
                catalog=catalog,
                database=db,
                table=name,
                partition=claimed.entity.partition,
                location=self._location,
                write_ids=started.write_ids.format(),
                txns=started.txns.format(),
                txn_id=started.txn_id,
                highest_write_id=started.highest_write_id,
                properties=job_properties(table.database_parameters, table.parameters, claimed.properties),
                number_of_buckets=claimed.number_of_buckets,
                order_by=claimed.order_by,
                statistics=self._columns_with_statistics(),
                max_num_delta=self._worker.compactions.settings.max_num_delta,
            ),
            self._pulse,
        )
        if outcome.result is not None and outcome.result.differences:
            self._log.error("compaction_unproven", differences=outcome.result.differences)
            raise _UnprovenError(outcome.message)
        if not outcome.succeeded:
            raise RuntimeError(outcome.message)
        if outcome.result is not None:
            self._log.info(
                "compaction_job_done",
                directories=outcome.result.directories,
                rows_in=outcome.result.rows_in,
                rows_out=outcome.result.rows_out,
                rows_deleted=outcome.result.rows_deleted,
            )
            self._note_end(outcome.result)
        return outcome.result.statistics if outcome.result is not None else {}

    def _columns_with_statistics(self) -> tuple[str, ...]:
        """Return the columns whose statistics this compaction renews.

        A compaction never fails for lack of them.
        """
        statistics, entity = self._worker.statistics, self._claimed.entity
        is_wanted = self._worker.compactions.settings.gather_stats and self._claimed.type is CompactionType.MAJOR
        if statistics is None or not is_wanted:
            return ()
        try:
            return tuple(statistics.columns(entity.table, entity.partition))
        except MetastoreError as error:
            self._log.warning("compaction_statistics_unknown", error=str(error))
            return ()

    def _renew_statistics(self, statistics: Mapping[str, Json], started: Started) -> None:
        """Store the job's statistics of columns; the compaction is committed whatever the outcome of this."""
        service, entity = self._worker.statistics, self._claimed.entity
        if service is None or not statistics:
            return
        try:
            seen = started.write_ids.for_compactor()
            columns = service.renew(entity.table, entity.partition, statistics, started.at, seen)
            self._log.info("compaction_statistics_renewed", columns=columns)
        except MetastoreError as error:
            self._log.warning("compaction_statistics_not_renewed", error=str(error))

    def _note_end(self, result: CompactionJobResult) -> None:
        """Record the job's id and result."""
        if result.application_id:
            where = f", {self._progress.tracking_url}" if self._progress and self._progress.tracking_url else ""
            self._beat(Job(result.application_id, f"{result.rows_in} rows read, {result.rows_out} written{where}"))

    def _require_results(self) -> None:
        with self._kept_alive():
            results = self._results()
        if not results:
            raise RuntimeError(f"The compaction job reported success but left nothing in {self._location}")

    def _commit(self, started: Started) -> None:
        """Make the result visible; if the answer was lost, look up the outcome before a repetition."""
        compactions = self._worker.compactions
        unknown: list[OutcomeUnknownError] = []

        def attempt() -> None:
            if unknown and compactions.is_committed(started):
                return
            try:
                compactions.complete(started)
            except OutcomeUnknownError as error:
                unknown.append(error)
                raise

        try:
            self._within_lease(attempt)
        except (UnavailableError, OSError) as error:
            if unknown:
                raise unknown[-1] from error
            raise

    def _within_lease(self, step: Callable[[], None]) -> None:
        """Repeat a step after the job until it is done or another Worker may have the claim.

        Raises: a permanent error of the step at once; a temporary one when the lease is over or we are stopped.
        """
        pause = _FIRST_PAUSE_S
        while True:
            try:
                step()
            except (UnavailableError, OutcomeUnknownError, OSError) as error:
                ends_at = self._held_since + self._lease().total_seconds()
                if perf_counter() + pause > ends_at or self._worker.stopping.wait(pause):
                    raise
                self._log.warning("compaction_end_tried_again", error=str(error))
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                return

    def _pulse(self, progress: JobProgress | None = None) -> None:
        """Keep the claim and the transaction alive; raise when the job must stop.

        The progress goes to the database together with the heartbeat; the job's name once, as soon as it has one.
        """
        worker, is_new = self._worker, progress is not None and self._progress is None
        if worker.stopping.is_set():
            raise _LaterError(f"Worker {worker.worker_id} was stopped")
        if perf_counter() - self._started_at > worker.compactions.settings.worker_timeout.total_seconds():
            raise RuntimeError(f"The compaction ran longer than {worker.compactions.settings.worker_timeout}")
        self._progress = progress or self._progress
        if is_new or perf_counter() - self._beat_at >= self._lease().total_seconds() / 4:
            self._beat(Job(self._progress.application_id, str(self._progress)) if self._progress else None)

    @contextmanager
    def _kept_alive(self) -> Iterator[None]:
        """Renew the lease while a file system answers: listing a directory of a million files may take minutes.

        Raises: ClaimLostError, TxnAbortedError.
        """
        answered, lost = Event(), list[MetastoreError]()

        def beat() -> None:
            while not lost and not answered.wait(max(self._lease().total_seconds() / 4, _FIRST_PAUSE_S)):
                try:
                    self._beat(None)
                except MetastoreError as error:
                    lost.append(error)

        keeper = Thread(target=beat, name=f"compaction-{self._claimed.id}", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            answered.set()
            keeper.join()
        if lost:
            raise lost[0]

    def _beat(self, job: Job | None) -> None:
        self._beat_at = perf_counter()
        try:
            self._worker.compactions.heartbeat(self._started_txn(), job)
        except (UnavailableError, OutcomeUnknownError) as error:
            # The lease outlives a short outage of the database, and a heartbeat may be sent twice.
            self._log.warning("compaction_heartbeat_missed", error=str(error))
        else:
            self._held_since = self._beat_at

    def _lease(self) -> timedelta:
        """Return how long after a heartbeat the claim and the transaction are safe from others."""
        return min(self._worker.compactions.settings.worker_lease, self._worker.txn_timeout)

    def _started_txn(self) -> Started:
        if self._started is None:
            raise TxnAbortedError("The compaction has no transaction yet")
        return self._started

    def _undone(self, outcome: WorkOutcome, reason: str) -> tuple[WorkOutcome, str]:
        """End the request and its transaction; then, if the transaction is certainly aborted, remove its files.

        Once the files are gone and cannot be written any more, the abort need not be remembered.
        """
        try:
            if self._ended(outcome, reason):
                for name in [*self._results(), *self._staging()]:
                    self._worker.files.delete(f"{self._location}/{name}")
                if not self._may_write and not self._results():
                    self._worker.compactions.forget(self._started_txn())
        except MetastoreError as error:  # The lease runs out, and the claim is taken back with its transaction.
            self._log.warning("compaction_end_not_recorded", error=str(error))
        except OSError as error:  # No reader sees these files; the Cleaner removes them with other aborted directories.
            self._log.warning("compaction_results_left", error=str(error))
        return outcome, reason

    def _ended(self, outcome: WorkOutcome, reason: str) -> bool:
        """Record the end; return whether the transaction is certainly aborted."""
        compactions, started = self._worker.compactions, self._started
        if outcome is WorkOutcome.REFUSED:
            return compactions.refuse(self._claim, reason, started)
        if outcome is WorkOutcome.RELEASED:
            return compactions.release(self._claimed, reason, LOCK_RETRY, started)
        return compactions.fail(self._claim, reason, started)

    def _results(self) -> list[str]:
        if not self._location:
            return []
        listing = self._worker.files.listing(self._location)
        return results_of(top_directories(listing), self._started_txn().txn_id)

    def _staging(self) -> list[str]:
        """Return the leftovers of a killed job, which no other job may use."""
        if not self._location:
            return []
        return staging_of(self._worker.files.children(self._location), self._started_txn().txn_id)
