"""The loops of a process with these services."""

import os
import socket
from datetime import timedelta
from threading import Event

from metastore.app.services import Services
from metastore.catalog.service.trash import TrashKeeper
from metastore.config import LockSettings, Settings
from metastore.loops.backlog import LOOK as BACKLOG_LOOK
from metastore.loops.backlog import BacklogCounter
from metastore.loops.compaction_loops import compaction_loops
from metastore.loops.job_runner import JobRunner
from metastore.loops.lock_keeper import ORPHAN_LOOK, DeadlockSearch, Orphans
from metastore.loops.measures import Measuring
from metastore.loops.reaper import EXPIRY, PURGES, TXN_RECORDS, OpenTxnsCounter, Reaper, until_due
from metastore.loops.scheduler import Loop

_TOKEN_INTERVAL = timedelta(hours=1)
"""The time between removals of expired delegation tokens, as Hadoop's ExpiredTokenRemover has it."""

_TRASH_INTERVAL = timedelta(hours=1)
"""The longest time between two looks at the trash."""


def server_loops(services: Services, settings: Settings) -> list[Loop]:
    """Return every loop of a server, except those of compaction."""
    txns = settings.txns
    return [
        Loop(
            "reaper",
            Reaper(services.purges, EXPIRY).tick,
            txns.reaper_interval,
            start_after=txns.reaper_start,
            sooner=until_due,
        ),
        Loop("house_keeper", Reaper(services.purges, PURGES).tick, txns.housekeeper_interval),
        Loop("txn_cleaner", Reaper(services.purges, TXN_RECORDS).tick, txns.cleaner_interval),
        Loop("open_txns_counter", OpenTxnsCounter(services.txns).tick, txns.count_open_txns_interval, everywhere=True),
        Loop("event_cleaner", services.events.purge, settings.events.clean_interval),
        *([Loop("token_cleaner", services.tokens.purge, _TOKEN_INTERVAL)] if settings.identity.uses_kerberos else []),
        *_catalog_loops(services, settings),
        Loop("table_opens", services.write_ids.note_opens, timedelta(minutes=1), everywhere=True),
        *_change_management(services, settings),
        *_trash(services, settings.catalog.trash_interval),
        *_lock_loops(services, settings.locks),
    ]


def compaction(
    services: Services,
    settings: Settings,
    runner: JobRunner,
    backlog: BacklogCounter,
    measuring: Measuring,
    *,
    version: str,
    stopping: Event,
) -> list[Loop]:
    """Return the loops of compaction.

    ``runner`` starts the jobs, ``backlog`` and ``measuring`` keep the figures of /metrics.
    """
    of_metrics = Loop("compaction-measures", measuring.tick, settings.compaction.metrics_interval, everywhere=True)
    return [
        *([of_metrics] if settings.compaction.metrics_on else []),
        Loop("compaction-backlog", backlog.tick, BACKLOG_LOOK, everywhere=True),
        *compaction_loops(
            services.compaction.initiator,
            services.compaction.cleaner,
            services.compaction.worker,
            services.locks,
            services.write_ids,
            services.catalog.moves if services.upstream is None else None,
            services.catalog.statistics if services.upstream is None else None,
            services.loop_files,
            runner,
            host=socket.gethostname(),
            process=os.getpid(),
            version=version,
            txn_timeout=settings.txns.timeout,
            stopping=stopping,
            storage_classes=settings.catalog.storage_classes,
        ),
    ]


def _catalog_loops(services: Services, settings: Settings) -> list[Loop]:
    often = timedelta(seconds=30)
    if services.upstream is not None:
        return [Loop("upstream_changes", services.upstream.changes.settle, often, start_after=timedelta(0))]
    return [
        Loop("directory_moves", services.catalog.moves.settle_moves, often),
        Loop("rare_objects", services.catalog.rare.purge, settings.rare.clean_interval),
        Loop("scheduled_queries", services.catalog.rare.end_silent_executions, settings.rare.execution_interval),
    ]


def _change_management(services: Services, settings: Settings) -> list[Loop]:
    if not settings.catalog.cm_enabled:
        return []
    return [Loop("kept_files", services.kept_files.purge, settings.catalog.cm_interval)]


def _trash(services: Services, interval: timedelta) -> list[Loop]:
    if not interval or services.upstream is not None:
        return []
    keeper = TrashKeeper(services.catalog.moves, interval)
    return [Loop("trash", keeper.tidy, min(interval, _TRASH_INTERVAL))]


def _lock_loops(services: Services, settings: LockSettings) -> list[Loop]:
    loops = []
    if settings.detect_deadlocks:
        loops.append(Loop("deadlocks", DeadlockSearch(services.locks).tick, settings.deadlock_interval))
    loops.append(Loop("orphaned_locks", Orphans(services.locks, services.holders).tick, ORPHAN_LOOK, everywhere=True))
    return loops
