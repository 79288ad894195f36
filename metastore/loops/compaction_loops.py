"""The loops of compaction, wired: what a process runs, given its services and settings."""

from datetime import timedelta
from threading import Event

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
from metastore.loops.job import JobRunner
from metastore.loops.scheduler import Loop
from metastore.loops.worker import Worker, WorkReport
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
) -> list[Loop]:
    """Initiator, Cleaner and housekeeper for the leader; Workers everywhere.

    ``host`` and ``process`` make ids that no other process has: ``host-process.number``.
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
    pools = settings.worker_pools or (None,)
    for number in range(settings.worker_threads):
        loop = Worker(
            worker,
            locks,
            write_ids,
            files,
            runner,
            f"{host}-{process}.{number}",
            version,
            txn_timeout,
            pools[number % len(pools)],
            stopping,
            statistics,
        )
        loops.append(Loop(f"worker-{number}", loop.tick, settings.worker_sleep_time, everywhere=True, busy=_worked))
    return loops


def _worked(report: object) -> bool:
    return isinstance(report, WorkReport) and report.worked
