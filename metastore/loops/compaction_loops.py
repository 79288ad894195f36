"""The loops of compaction, built from a process's services and settings."""

from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from threading import Event

from metastore.catalog.rules.storage_classes import Classes
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.service.statistics import StatisticsService
from metastore.compaction.cleaning.service import CleanerService
from metastore.compaction.initiating.service import InitiatorService
from metastore.compaction.working.service import WorkerService
from metastore.files import Files
from metastore.locks.service import LockService
from metastore.loops.cleaner import Cleaner
from metastore.loops.compaction_housekeeper import CompactionHousekeeper
from metastore.loops.initiator import Initiator
from metastore.loops.job_runner import JobRunner
from metastore.loops.scheduler import Loop
from metastore.loops.worker import Worker, WorkOutcome, WorkReport
from metastore.write_ids.service import WriteIdService


def compaction_loops(
    initiator: InitiatorService,
    cleaner: CleanerService,
    worker: WorkerService,
    locks: LockService,
    write_ids: WriteIdService,
    moves: DirectoryMoves | None,
    statistics: StatisticsService | None,
    files: Files,
    runner: JobRunner,
    *,
    host: str,
    process: int,
    version: str,
    txn_timeout: timedelta,
    stopping: Event,
    storage_classes: Sequence[Classes] = (),
) -> list[Loop]:
    """Return the Initiator, Cleaner and housekeeper for the leader, and Workers for every process.

    ``storage_classes``: as for `Worker`. ``host`` and ``process`` make ids that no other process has:
    ``host-process.number``. The settings say which pools a thread serves in turn.
    """
    settings, loops = worker.settings, []
    if settings.initiator_on:
        round_of = Initiator(initiator, files, f"{host}-{process}", version, stopping)
        loops += [
            Loop("initiator", round_of.tick, settings.check_interval),
            Loop("compaction-housekeeper", CompactionHousekeeper(initiator).tick, settings.history_interval),
        ]
    if settings.cleaner_on:
        loops.append(Loop("cleaner", Cleaner(cleaner, files, stopping, locks, moves).tick, settings.cleaner_interval))
    for number, pools in enumerate(settings.pools_of_threads):
        workers = [
            Worker(
                worker,
                locks,
                write_ids,
                files,
                runner,
                f"{host}-{process}.{number}",
                version,
                txn_timeout,
                pool or None,
                stopping,
                statistics,
                storage_classes,
            )
            for pool in pools
        ]
        tick = partial(_in_turn, deque(workers))
        loops.append(
            Loop(f"worker-{number}", tick, settings.worker_sleep_time, everywhere=True, busy=_worked, on_request=True)
        )
    return loops


def _in_turn(workers: deque[Worker]) -> WorkReport:
    """Return the tick of a thread with a Worker for each of its pools: the next in turn that has a request."""
    report = WorkReport(WorkOutcome.IDLE)
    for _ in range(len(workers)):
        worker = workers[0]
        workers.rotate(-1)
        report = worker.tick()
        if report.compaction_id is not None:
            break
    return report


def _worked(report: object) -> bool:
    return isinstance(report, WorkReport) and report.worked
