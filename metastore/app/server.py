"""The composition root: settings in, a running process out. The only place where parts meet.

Rule: parts start in the order in which they need each other, the HTTP port first, so that probes always get an answer;
they stop in reverse order, and stopping one that never started is nothing.
"""

import dataclasses
import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from threading import Event

from metastore.catalog.service.constraints import ConstraintService
from metastore.catalog.service.databases import DatabaseService
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.functions import FunctionService
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.service.partition_exchange import PartitionExchange
from metastore.catalog.service.partition_reads import PartitionReads
from metastore.catalog.service.partitions import PartitionService
from metastore.catalog.service.statistics import StatisticsService
from metastore.catalog.service.table_reads import TableReads
from metastore.catalog.service.tables import TableService
from metastore.catalog.service.upstream_changes import UpstreamChanges
from metastore.client import tls
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.entities import OWN_CATALOG, Catalog
from metastore.config import CompactionSettings, Settings, TlsSettings
from metastore.config.security import exposure
from metastore.db import migrate
from metastore.db.embedded import EmbeddedPostgres
from metastore.db.engine import Database
from metastore.db.leader import Leadership
from metastore.db.listener import Listener
from metastore.errors import InvalidInputError, MetastoreError, UnavailableError
from metastore.file_work import BoundedFiles, FilePool
from metastore.files import Files
from metastore.housekeeping.service import PurgeService
from metastore.locks.service import LockService
from metastore.locks.why.service import WhyService
from metastore.loops.backlog import LOOK as BACKLOG_LOOK
from metastore.loops.backlog import BacklogCounter
from metastore.loops.compaction_loops import compaction_loops
from metastore.loops.job import SubprocessRunner
from metastore.loops.lock_keeper import ORPHAN_LOOK, DeadlockSearch, Orphans
from metastore.loops.reaper import EXPIRY, PURGES, TXN_RECORDS, OpenTxnsCounter, Reaper, until_due
from metastore.loops.scheduler import Loop, Scheduler
from metastore.materialized_views.service.rebuilds import RebuildService
from metastore.materialized_views.service.sources import MaterializedViewService
from metastore.roots import Roots
from metastore.telemetry.calls import CallStats
from metastore.telemetry.locks import LockStats
from metastore.telemetry.logs import get_logger
from metastore.telemetry.metrics import Metrics
from metastore.thrift_server.auth.access import Access, Everybody, Identified
from metastore.thrift_server.call import Call
from metastore.thrift_server.changers import Changers
from metastore.thrift_server.convert_write_events import WriteEvents
from metastore.thrift_server.endings import telling
from metastore.thrift_server.handler import Handler, handlers_of
from metastore.thrift_server.handlers.catalogs import CatalogHandlers
from metastore.thrift_server.handlers.compaction import CompactionHandlers
from metastore.thrift_server.handlers.constraints import ConstraintHandlers
from metastore.thrift_server.handlers.databases import DatabaseHandlers
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.handlers.functions import FunctionHandlers
from metastore.thrift_server.handlers.indexes import IndexHandlers
from metastore.thrift_server.handlers.locks import LockHandlers, overdue
from metastore.thrift_server.handlers.materialized_views import MaterializedViewHandlers
from metastore.thrift_server.handlers.notifications import NotificationHandlers
from metastore.thrift_server.handlers.operators import OperatorHandlers
from metastore.thrift_server.handlers.partition_exchange import PartitionExchangeHandlers
from metastore.thrift_server.handlers.partition_reads import PartitionReadHandlers
from metastore.thrift_server.handlers.partitions import PartitionHandlers
from metastore.thrift_server.handlers.rebuilds import RebuildHandlers
from metastore.thrift_server.handlers.session import SessionHandlers
from metastore.thrift_server.handlers.statistics import StatisticsHandlers
from metastore.thrift_server.handlers.streams import StreamHandlers
from metastore.thrift_server.handlers.table_reads import TableReadHandlers
from metastore.thrift_server.handlers.tables import TableHandlers
from metastore.thrift_server.handlers.txns import TxnHandlers
from metastore.thrift_server.handlers.write_ids import WriteIdHandlers
from metastore.thrift_server.holders import Holders
from metastore.thrift_server.limits import Limits
from metastore.thrift_server.lock_waits import CHANNEL, Waiting
from metastore.thrift_server.server import Server
from metastore.thrift_server.shares import limited, txns_and_locks
from metastore.thrift_server.upstream.asking import Asking, UpstreamCatalog, UpstreamTables
from metastore.thrift_server.upstream.connecting import Upstream
from metastore.thrift_server.upstream.handlers import UpstreamSessionHandlers, UpstreamStreamHandlers
from metastore.thrift_server.upstream.shared import Forwarding, SharedPartitionHandlers, SharedTableHandlers
from metastore.thrift_server.workers import Seats
from metastore.tls.contexts import RenewedContext
from metastore.txns.commit.service import CommitService
from metastore.txns.core.service import TxnService
from metastore.txns.events.service import EventService
from metastore.txns.history.service import HistoryService
from metastore.web.health import Health, Part
from metastore.web.server import WebServer
from metastore.write_ids.service import WriteIdService

VERSION = version("transaction-metastore")

log = get_logger(__name__)


class App:
    """One metastore process."""

    PARTS: tuple[str, ...] = ("database", "schema", "thrift", "loops")

    def __init__(self, settings: Settings, *, data_dir: Path | None = None, loops: bool = True,
                 shares_port: bool = False) -> None:
        """``data_dir``: where the embedded PostgreSQL and, unless it is set, the warehouse are.

        ``shares_port``: other processes listen on the same Thrift port.
        """
        self.settings = _with_warehouse(settings, data_dir)
        self._data_dir, self._with_loops, self._shares_port = data_dir, loops, shares_port
        self.health = Health(*self.PARTS)
        self.metrics = Metrics(VERSION)
        self.lock_stats = LockStats()
        self.metrics.add(self.lock_stats)
        files = self.settings.catalog
        self._seats = Seats(self.settings.server.worker_threads, aside=files.files_threads)
        self._file_pool = FilePool(files.files_threads, files.files_timeout.total_seconds(), self._seats.aside)
        self._upstream = Upstream(self.settings.upstream, self.settings.server) if self.settings.upstream else None
        self.limits = Limits(self.settings.limits, forget_after=self.settings.txns.timeout)
        self._forwarded = CallStats("metastore_forwarded_call", "Calls that the upstream answered, or did not answer.")
        self._running = ExitStack()
        self._stopping = Event()
        self._server: Server | None = None
        self.thrift_uri = self.http_uri = self.database_url = ""

    def start(self) -> None:
        """Start every part. Raises: MetastoreError with what is wrong and what to do; nothing is left running then."""
        with self._running as starting:
            self._start_web()
            url = self._start_postgres()
            self.database = self._start_database(url, self._start_schema(url))
            self._start_thrift()
            self._start_loops(url)
            self._running = starting.pop_all()
        log.info("serving", thrift=self.thrift_uri, http=self.http_uri, database=self.database_url,
                 warehouse=self.settings.catalog.warehouse, version=VERSION)

    def addresses(self) -> dict[str, object]:
        """Where this process answers."""
        return {"thrift": self.thrift_uri, "http": self.http_uri, "database_url": self.database_url, "version": VERSION}

    def stop(self) -> None:
        """Finish calls and ticks in flight, side by side and within one drain time, then stop everything."""
        self.health.stopping = True
        self._stopping.set()
        if self._server is not None:
            self._server.begin_drain()
        self._running.close()

    def _start_web(self) -> None:
        server = self.settings.server
        settings = dataclasses.replace(self.settings.tls, client_certificates="none")  # what is shown there is open
        secure = settings.use_ssl and settings.http
        web = WebServer(server.host, server.http_port, self.health, self.metrics, VERSION,
                        RenewedContext(settings) if secure else None)
        host, port = _bound("HTTP", server.host, server.http_port, web.start)
        self._running.callback(web.stop)
        self.http_uri = f"{'https' if secure else 'http'}://{_reachable(host)}:{port}"

    def _start_postgres(self) -> str:
        """The URL to work with: the given one, or that of an embedded PostgreSQL."""
        if self.settings.database.url:
            self.database_url = self.settings.database.full_url
            return self.database_url
        if self._data_dir is None:
            raise InvalidInputError("Neither a database URL nor a data directory is given: nothing can be kept.")
        embedded = EmbeddedPostgres(self._data_dir, archive=self.settings.database.archive_dir)
        embedded.start()
        self._running.callback(embedded.stop)
        self.database_url = embedded.tcp_url
        return embedded.url

    def _start_schema(self, url: str) -> str:
        """Bring the database's schema up to date; the namespace that it is in."""
        before = migrate.upgrade(url)
        if before.database != before.release:
            log.info("schema_upgraded", before=before.database or "empty", now=before.release)
        self.health.report("schema", Part(ready=True))
        return before.schema

    def _start_database(self, url: str, schema: str) -> Database:
        settings = self.settings.database
        database = Database(
            url, pool_size=settings.pool_size, pool_timeout_s=settings.pool_timeout.total_seconds(),
            statement_timeout_ms=_milliseconds(settings.statement_timeout),
            lock_timeout_ms=_milliseconds(settings.lock_timeout), schema=schema)
        self._running.callback(database.close)
        database.check()
        self.metrics.watch_pool(lambda: database.pool.lent, settings.pool_size)

        def look() -> Part:
            try:
                database.once("SELECT 1")
            except MetastoreError as error:
                return Part(ready=False, reason=str(error))
            return Part(ready=True)

        self.health.probe("database", look)
        return database

    def _start_thrift(self) -> None:
        server_settings = self.settings.server
        stats = CallStats()
        exposed = exposure(server_settings.host, self.settings.tls)
        if exposed:
            log.warning("open_to_the_network", what=exposed)
        server = Server(server_settings, self._handlers(stats), stats, reuse_port=self._shares_port,
                        tls=self.settings.tls, access=_access(self.settings.tls), seats=self._seats,
                        upstream=self._upstream, forwarded=self._forwarded, limits=self.limits)
        host, port = _bound("Thrift", server_settings.host, server_settings.port, server.start)
        self._running.callback(server.drain)
        self._server = server
        self.metrics.add(stats)
        if self._upstream is not None:
            self.metrics.add(self._forwarded)
            self._watch_upstream(self._upstream)
        self.thrift_uri = f"thrift://{_reachable(host)}:{port}"
        self.health.probe("thrift", lambda: Part(
            server.ready, exposed if server.ready else "not accepting connections"))

    def _watch_upstream(self, upstream: Upstream) -> None:
        """Show in /readyz whether the upstream answers. Transactions go on without it, so this stays ready."""
        asking = Asking(upstream)
        self.health.report("upstream", Part(ready=True, reason="not asked yet"))
        self.health.probe("upstream", lambda: Part(ready=True, reason=asking.answers()))

    def _start_loops(self, url: str) -> None:
        """The house-keeper and the compaction loops, on one leader; Workers on every replica."""
        if not self._with_loops:
            self.health.report("loops", Part(ready=True, reason="switched off here"))
            return
        settings, stopping, files = self.settings, self._stopping, self._files(gives_up_removals=True)
        runner = SubprocessRunner(settings.compaction, self.thrift_uri, _for_jobs(settings.tls))
        loops = [Loop("reaper", Reaper(self.purges, EXPIRY).tick, settings.txns.reaper_interval,
                      start_after=settings.txns.reaper_start, sooner=until_due),
                 Loop("house_keeper", Reaper(self.purges, PURGES).tick, settings.txns.housekeeper_interval),
                 Loop("txn_cleaner", Reaper(self.purges, TXN_RECORDS).tick, settings.txns.cleaner_interval),
                 Loop("open_txns_counter", OpenTxnsCounter(self.txns).tick, settings.txns.count_open_txns_interval,
                      everywhere=True),
                 Loop("event_cleaner", self.events.purge, settings.events.clean_interval),
                 *self._catalog_loops(),
                 *self._lock_loops(),
                 *self._compaction_loops(settings.compaction, files, runner, stopping)]
        self._run_loops(url, loops, stopping)

    def _compaction_loops(self, settings: CompactionSettings, files: Files, runner: SubprocessRunner,
                          stopping: Event) -> list[Loop]:
        backlog = BacklogCounter(CompactionService(self.database, settings))
        self.metrics.watch_backlog(lambda: backlog.seen.waiting, lambda: backlog.seen.working)
        return [Loop("compaction-backlog", backlog.tick, BACKLOG_LOOK, everywhere=True), *compaction_loops(
            self.database, settings, self.locks, files, runner, catalog=self._catalog(),
            host=socket.gethostname(), process=os.getpid(), version=VERSION,
            txn_timeout=self.settings.txns.timeout, stopping=stopping)]

    def _run_loops(self, url: str, loops: list[Loop], stopping: Event) -> None:
        leader = Leadership(url, "loops")
        scheduler = Scheduler(loops, leader, stopping, self.metrics.loops)
        scheduler.start()
        self._running.callback(leader.release)
        self._running.callback(scheduler.stop, self.settings.server.drain_timeout)
        self.health.report("loops", Part(ready=True))

    @cached_property
    def locks(self) -> LockService:
        """The lock manager of calls and of loops: its counts are those of the process."""
        return LockService(self.database, self.settings.locks, self.lock_stats)

    def _catalog(self) -> Catalog:
        """Whom compaction asks about tables."""
        if self._upstream is None:
            return OWN_CATALOG
        return UpstreamCatalog(Asking(self._upstream), self._changes(self._upstream))

    def _changes(self, upstream: Upstream) -> UpstreamChanges:
        """What both sides have to know."""
        return UpstreamChanges(self.database, UpstreamTables(Asking(upstream)), upstream.settings.timeout)

    def _catalog_loops(self) -> list[Loop]:
        if self._upstream is not None:
            return [Loop("upstream_changes", self._changes(self._upstream).settle, timedelta(seconds=30),
                         start_after=timedelta(0))]
        return [Loop("directory_moves", self.moves.settle_moves, timedelta(seconds=30))]

    def _lock_loops(self) -> list[Loop]:
        settings = self.settings.locks
        loops = []
        if settings.detect_deadlocks:
            loops.append(Loop("deadlocks", DeadlockSearch(self.locks).tick, settings.deadlock_interval))
        loops.append(Loop("orphaned_locks", Orphans(self.locks, self.holders).tick, ORPHAN_LOOK, everywhere=True))
        return loops

    def _start_waiting(self, db: Database) -> Waiting[Call] | None:
        """Where calls wait for locks, if they may."""
        patience = self.settings.locks.check_wait
        if not patience:
            return None
        waiting: Waiting[Call] = Waiting(patience, Call.again, overdue, Listener(db.url, CHANNEL), self.lock_stats)
        db.pool.tell = waiting.told
        waiting.start()
        self._running.callback(waiting.stop)
        return waiting

    def _files(self, *, gives_up_removals: bool = False) -> Files:
        """Files of which only those below the roots can be changed."""
        catalog = self.settings.catalog
        roots = Roots(tuple(filter(None, (catalog.warehouse, catalog.external_warehouse, *catalog.more_roots))))
        return BoundedFiles(roots=roots, pool=self._file_pool, schemes=catalog.schemes,
                            gives_up_removals=gives_up_removals)

    def _handlers(self, stats: CallStats) -> dict[str, Handler]:
        """What is answered here."""
        db, settings = self.database, self.settings
        self.txns = TxnService(db, settings.txns)
        self.metrics.watch_open_txns(lambda: self.txns.gauge.count)
        self.waiting = self._start_waiting(db)
        self.holders = Holders()
        self.purges = PurgeService.of_new_server(db, settings.txns)
        here = self._upstream is None
        self.events = EventService(db, settings.events if here else dataclasses.replace(settings.events, listeners=""))
        if self.events.switch():
            log.info("notification_log_switched", on=self.events.wanted)
        history, commits = HistoryService(db, settings.txns), CommitService(db, settings.txns)
        writes = WriteEvents(self.events, TableReads(db), PartitionReads(db, settings.catalog))
        files, locks = self._files(), self.locks
        handlers = handlers_of(
            Fb303Handlers(stats, int(time.time())),  # noqa: TID251 - when this process started, for people
            TxnHandlers(self.txns, commits, writes),
            WriteIdHandlers(WriteIdService(db)),
            RebuildHandlers(RebuildService(db)),
            LockHandlers(locks, self.waiting, self.holders, self.purges),
            CompactionHandlers(CompactionService(db, settings.compaction, files.roots, self._catalog())),
            OperatorHandlers(history, WhyService(db, settings.txns, settings.locks.orphan_timeout,
                                                 self.purges.not_before),
                             locks),
            *(self._catalog_handlers(files, commits, writes) if self._upstream is None
              else self._upstream_handlers(self._upstream)),
        )
        for name, share in txns_and_locks(settings.limits, settings.txns.max_open_batch, self.txns.still_open,
                                          locks.still_there).items():
            handlers[name] = limited(handlers[name], share, self.limits)
        return telling(handlers, history)

    def _catalog_handlers(self, files: Files, commits: CommitService, writes: WriteEvents) -> list[object]:
        """Everything about the catalog, which is here."""
        db, settings, changers = self.database, self.settings, Changers(self.holders)
        directories, moves = Directories(files), DirectoryMoves(db, files)
        self.moves = moves
        databases = DatabaseService(db, settings.catalog, directories, moves)
        databases.ensure_default_objects()
        moves.settle_moves()
        return [
            SessionHandlers(settings),
            CatalogHandlers(databases),
            DatabaseHandlers(databases, changers),
            TableHandlers(TableService(db, settings.catalog, directories, moves), changers),
            TableReadHandlers(writes.tables),
            PartitionHandlers(PartitionService(db, settings.catalog, directories, moves), changers),
            PartitionReadHandlers(writes.partitions),
            PartitionExchangeHandlers(PartitionExchange(db, moves)),
            FunctionHandlers(FunctionService(db)),
            IndexHandlers(),
            StatisticsHandlers(StatisticsService(db)),
            ConstraintHandlers(ConstraintService(db)),
            NotificationHandlers(self.events, writes),
            StreamHandlers(commits),
            MaterializedViewHandlers(MaterializedViewService(db)),
        ]

    def _upstream_handlers(self, upstream: Upstream) -> list[object]:
        """What both this service and the upstream have to know."""
        tables = UpstreamTables(Asking(upstream))
        forwarding = Forwarding(upstream, self._forwarded, self._seats.aside)
        changes, changers = self._changes(upstream), Changers(self.holders)
        return [UpstreamSessionHandlers(self.settings), UpstreamStreamHandlers(),
                SharedTableHandlers(changes, forwarding, changers),
                SharedPartitionHandlers(changes, forwarding, tables, changers)]


class WorkerApp(App):
    """A process that only compacts. It serves no calls, runs no other loop, and leaves the schema to the servers."""

    PARTS = ("database", "schema", "loops")

    def __init__(self, settings: Settings, uri: str) -> None:
        """``uri``: the servers from which the jobs take their snapshots."""
        super().__init__(settings)
        self.thrift_uri = uri

    def start(self) -> None:
        """Start claiming. Raises: MetastoreError with what is wrong and what to do; nothing is left running then."""
        with self._running as starting:
            self._start_web()
            url = self._start_postgres()
            self.database = self._start_database(url, self._require_schema(url))
            settings, stopping = self.settings, self._stopping
            runner = SubprocessRunner(settings.compaction, self.thrift_uri, _for_jobs(settings.tls, by_name=True))
            alone = dataclasses.replace(settings.compaction, initiator_on=False, cleaner_on=False)
            self._run_loops(url, self._compaction_loops(
                alone, self._files(gives_up_removals=True), runner, stopping), stopping)
            self._running = starting.pop_all()
        log.info("working", thrift=self.thrift_uri, http=self.http_uri, threads=settings.compaction.worker_threads,
                 version=VERSION)

    def _require_schema(self, url: str) -> str:
        found = migrate.versions(url)
        if found.database != found.release:
            raise UnavailableError(
                f"The database has schema version {found.database or 'none'}, this worker needs {found.release}. Start "
                "a server of the same release first, or run `metastore db upgrade`.")
        self.health.report("schema", Part(ready=True))
        return found.schema


def _with_warehouse(settings: Settings, data_dir: Path | None) -> Settings:
    if settings.catalog.warehouse:
        return settings
    if data_dir is None:
        raise InvalidInputError("hive.metastore.warehouse.dir is not set, and there is no data directory to put it in.")
    catalog = dataclasses.replace(settings.catalog, warehouse=f"file:{data_dir.resolve() / 'warehouse'}")
    return dataclasses.replace(settings, catalog=catalog)


def _bound(name: str, host: str, port: int, start: Callable[[], tuple[str, int]]) -> tuple[str, int]:
    try:
        return start()
    except OSError as error:
        raise InvalidInputError(f"The {name} port {port} on {host} cannot be used: {error.strerror}. Choose another "
                                "one, or 0 for a free one.") from error


def _reachable(host: str) -> str:
    """An address that clients on this machine can use."""
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _access(settings: TlsSettings) -> Access:
    return Identified() if settings.client_certificates == "required" else Everybody()


def _for_jobs(settings: TlsSettings, *, by_name: bool = False) -> dict[str, str]:
    """The environment in which a job that this process starts reaches the metastore.

    ``by_name``: by a name that the certificate must have; else by loopback, which no certificate needs to name. The job
    shows this process's certificate if it has no other.
    """
    if not settings.use_ssl:
        return {}
    own, password = ((settings.client_keystore, settings.client_keystore_password) if settings.client_keystore
                     else (settings.keystore, settings.keystore_password))
    values = {tls.USE_SSL: "true", tls.TRUSTSTORE: ",".join(settings.truststore),
              tls.TRUSTSTORE_PASSWORD: settings.truststore_password, tls.KEYSTORE: ",".join(own),
              tls.KEYSTORE_PASSWORD: password, tls.VERIFY_HOSTNAME: str(by_name).lower()}
    return {tls.variable(key): text for key, text in values.items()}


def _milliseconds(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1000)
