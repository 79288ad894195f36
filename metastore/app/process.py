"""The common base of a server and a worker: settings in, a running process out.

Rule: parts start in the order in which they need each other, the HTTP port first, so that probes always get an answer;
they stop in reverse order, and stopping a part that never started does nothing.
"""

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event

from metastore import __version__
from metastore.app.loops import compaction
from metastore.app.services import Services
from metastore.client import tls
from metastore.config import Settings, TlsSettings
from metastore.db.embedded import EmbeddedPostgres
from metastore.db.engine import Database
from metastore.db.leader import Leadership
from metastore.errors import InvalidInputError, MetastoreError
from metastore.file_work import FilePool
from metastore.loops.backlog import BacklogCounter
from metastore.loops.job_runner import SubprocessRunner
from metastore.loops.measures import Measuring
from metastore.loops.requests_heard import RequestsHeard
from metastore.loops.scheduler import Loop, Scheduler
from metastore.loops.warm_sparks import IDLE_LOOK
from metastore.telemetry.calls import CallStats
from metastore.telemetry.compactions import CompactionCollector
from metastore.telemetry.locks import LockStats
from metastore.telemetry.metrics import Metrics
from metastore.telemetry.txns import TxnStats
from metastore.thrift_server.dispatch.workers import Seats
from metastore.thrift_server.upstream.endpoint import Upstream
from metastore.thrift_server.upstream.mirrored_handlers import Forwarding
from metastore.tls.contexts import RenewedContext
from metastore.web.health import Health, HealthPart
from metastore.web.server import WebServer

VERSION = __version__


class Process:
    """One process, with the parts that each kind of it has."""

    PARTS: tuple[str, ...]
    services: Services

    def __init__(
        self, settings: Settings, *, data_dir: Path | None = None, postgres: EmbeddedPostgres | None = None
    ) -> None:
        """Prepare a process.

        ``data_dir``: the directory of the embedded PostgreSQL and, unless it is set, the warehouse.
        ``postgres``: that PostgreSQL, if it is being started already.
        """
        self.settings = _with_warehouse(settings, data_dir)
        self._data_dir, self._postgres = data_dir, postgres
        self.health = Health(*self.PARTS)
        self.metrics = Metrics(VERSION)
        self.lock_stats = LockStats()
        self.metrics.add(self.lock_stats)
        self.txn_stats = TxnStats()
        self.metrics.add(self.txn_stats)
        files = self.settings.catalog
        self.seats = Seats(self.settings.server.worker_threads, aside=files.files_threads)
        self._file_pool = FilePool(files.files_threads, files.files_timeout.total_seconds(), self.seats.aside)
        self.forwarded = CallStats("metastore_forwarded_call", "Calls that the upstream answered, or did not answer.")
        self.upstream = Upstream(self.settings.upstream, self.settings.server) if self.settings.upstream else None
        self.running = ExitStack()
        self.stopping = Event()
        self.thrift_uri = self.http_uri = self.database_url = ""

    def start(self) -> None:
        """Start every part. Raises: MetastoreError with cause and remedy; no part is left running then."""
        with self.running as starting:
            self._start_parts()
            self.running = starting.pop_all()

    def _start_parts(self) -> None:
        raise NotImplementedError

    def addresses(self) -> dict[str, object]:
        """Return the addresses of this process."""
        return {"thrift": self.thrift_uri, "http": self.http_uri, "database_url": self.database_url, "version": VERSION}

    def stop(self) -> None:
        """Finish calls and ticks in progress, side by side and within one drain time, then stop all parts."""
        self.health.stopping = True
        self.stopping.set()
        self.running.close()

    def _start_web(self) -> None:
        server = self.settings.server
        settings = dataclasses.replace(self.settings.tls, client_certificates="none")  # /metrics is public.
        secure = settings.use_ssl and settings.http
        web = WebServer(
            server.host,
            server.http_port,
            self.health,
            self.metrics,
            VERSION,
            RenewedContext(settings) if secure else None,
            settings.http_hosts,
        )
        host, port = bound("HTTP", server.host, server.http_port, web.start)
        self.running.callback(web.stop)
        self.http_uri = f"{'https' if secure else 'http'}://{reachable(host)}:{port}"

    def _start_postgres(self) -> str:
        """Return the URL of the database: from the settings, or of an embedded PostgreSQL."""
        if self.settings.database.url:
            self.database_url = self.settings.database.full_url
            return self.database_url
        if self._data_dir is None:
            raise InvalidInputError("Neither a database URL nor a data directory is given: nothing can be kept.")
        embedded = self._postgres or EmbeddedPostgres(self._data_dir, archive=self.settings.database.archive_dir)
        embedded.start()
        self.running.callback(embedded.stop)
        self.database_url = embedded.tcp_url
        return embedded.url

    def _start_database(self, url: str, schema: str) -> Database:
        settings = self.settings.database
        database = Database(
            url,
            pool_size=settings.pool_size,
            pool_timeout_s=settings.pool_timeout.total_seconds(),
            statement_timeout_ms=_milliseconds(settings.statement_timeout),
            lock_timeout_ms=_milliseconds(settings.lock_timeout),
            schema=schema,
        )
        self.running.callback(database.close)
        database.check()
        self.metrics.watch_pool(lambda: database.pool.lent, settings.pool_size)

        def look() -> HealthPart:
            try:
                database.once("SELECT 1")
            except MetastoreError as error:
                return HealthPart(ready=False, reason=str(error))
            return HealthPart(ready=True)

        self.health.probe("database", look)
        return database

    def _compose(self, database: Database) -> Services:
        """Return the services; building them has no effect yet."""
        forwarding = None if self.upstream is None else Forwarding(self.upstream, self.forwarded, self.seats.aside)
        return Services.of(
            database,
            self.settings,
            self.lock_stats,
            self.txn_stats,
            self._file_pool,
            forwarding=forwarding,
            started_at=_now(database),
        )

    def compaction_loops(self, environment: Mapping[str, str]) -> list[Loop]:
        """Return the loops of compaction. ``environment``: the one in which jobs reach the metastore."""
        backlog = BacklogCounter(self.services.compaction.queue)
        measuring = Measuring(self.services.compaction.measuring)
        self.metrics.add(CompactionCollector(lambda: measuring.seen))
        self.metrics.watch_backlog(lambda: backlog.seen.waiting, lambda: backlog.seen.working, lambda: backlog.wanted)
        runner = SubprocessRunner(
            self.settings.compaction,
            self.thrift_uri,
            environment,
            self.settings.catalog.storage_classes,
            self.settings.stores,
        )
        self.running.callback(runner.close)
        return [
            *compaction(
                self.services, self.settings, runner, backlog, measuring, version=VERSION, stopping=self.stopping
            ),
            Loop("compaction-sparks", runner.end_idle, IDLE_LOOK, everywhere=True),
        ]

    def _start_loops(self, url: str, loops: list[Loop]) -> None:
        """Run loops: those that need a leader only if this process leads, the others on every replica."""
        leader = Leadership(url)
        scheduler = Scheduler(loops, leader, self.stopping, self.metrics.loops)
        scheduler.start()
        self.running.callback(leader.release)
        self.running.callback(scheduler.stop, self.settings.server.drain_timeout)
        if woken := [loop for loop in loops if loop.on_request]:
            heard = RequestsHeard(url, lambda: scheduler.wake(woken))
            heard.start()
            self.running.callback(heard.stop)
        self.health.report("loops", HealthPart(ready=True))


def bound(name: str, host: str, port: int, start: Callable[[], tuple[str, int]]) -> tuple[str, int]:
    """Start a part and return the address that it listens on. Raises: InvalidInputError if it is not available."""
    try:
        return start()
    except OSError as error:
        raise InvalidInputError(
            f"The {name} port {port} on {host} cannot be used: {error.strerror}. Choose another "
            "one, or 0 for a free one."
        ) from error


def reachable(host: str) -> str:
    """Return an address that clients on this machine can use."""
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def environment_of_jobs(settings: TlsSettings, *, by_name: bool = False) -> dict[str, str]:
    """Return the environment in which a job that this process starts reaches the metastore.

    ``by_name``: by a name that the certificate must have; else by loopback, which needs no name in a certificate. The
    job shows this process's certificate if it has no other.
    """
    if not settings.use_ssl:
        return {}
    own, password = (
        (settings.client_keystore, settings.client_keystore_password)
        if settings.client_keystore
        else (settings.keystore, settings.keystore_password)
    )
    values = {
        tls.USE_SSL: "true",
        tls.TRUSTSTORE: ",".join(settings.truststore),
        tls.TRUSTSTORE_PASSWORD: settings.truststore_password,
        tls.KEYSTORE: ",".join(own),
        tls.KEYSTORE_PASSWORD: password,
        tls.VERIFY_HOSTNAME: str(by_name).lower(),
    }
    return {tls.variable(key): text for key, text in values.items()}


def _with_warehouse(settings: Settings, data_dir: Path | None) -> Settings:
    if settings.catalog.warehouse:
        return settings
    if data_dir is None:
        raise InvalidInputError("hive.metastore.warehouse.dir is not set, and there is no data directory to put it in.")
    catalog = dataclasses.replace(settings.catalog, warehouse=f"file:{data_dir.resolve() / 'warehouse'}")
    return dataclasses.replace(settings, catalog=catalog)


def _now(database: Database) -> datetime:
    with database.begin(durable=False) as pg:
        return pg.now


def _milliseconds(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1000)
