"""A server: it answers calls, and runs the loops unless the settings forbid it."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from metastore.app.handlers import handlers
from metastore.app.loops import server_loops
from metastore.app.planner import PlannerBeside
from metastore.app.process import VERSION, Process, bound, environment_of_jobs, reachable
from metastore.app.services import Services
from metastore.config import Settings
from metastore.config.security import exposure
from metastore.db import migrate
from metastore.db.embedded import EmbeddedPostgres
from metastore.db.engine import Database
from metastore.db.listener import Listener
from metastore.telemetry.calls import CallStats
from metastore.telemetry.logs import get_logger
from metastore.telemetry.tables import TableStats
from metastore.thrift_server.auth.access import Access, Everybody, Guarded, Identified
from metastore.thrift_server.auth.mechanisms import mechanisms
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.loop.address_limits import AddressLimits
from metastore.thrift_server.server import Server
from metastore.thrift_server.waiting.lock_waits import CHANNEL, Waiting
from metastore.thrift_server.waiting.parked_calls import end_patience
from metastore.web.health import HealthPart

log = get_logger(__name__)


class App(Process):
    """One metastore server."""

    PARTS = ("database", "schema", "thrift", "loops")

    def __init__(
        self,
        settings: Settings,
        *,
        data_dir: Path | None = None,
        loops: bool = True,
        shares_port: bool = False,
        planner: Sequence[str] | None = None,
        postgres: EmbeddedPostgres | None = None,
    ) -> None:
        """Prepare a server.

        ``data_dir``: the directory of the embedded PostgreSQL and, unless it is set, the warehouse.
        ``shares_port``: other processes listen on the same Thrift port. ``planner``: the options of a planner beside
        this server, with which it has the same settings; None: there is none. ``postgres``: the embedded PostgreSQL, if
        it is being started already.
        """
        super().__init__(settings, data_dir=data_dir, postgres=postgres)
        self._with_loops, self._shares_port, self._planner_options = loops, shares_port, planner
        self.table_stats = TableStats()
        self.metrics.add(self.table_stats)
        self.limits = AddressLimits(self.settings.limits, forget_after=self.settings.txns.timeout)

    def _start_parts(self) -> None:
        self._start_web()
        url = self._start_postgres()
        self.database = self._start_database(url, self._start_schema(url))
        self.services = self._compose(self.database)
        self.metrics.watch_open_txns(lambda: self.services.txns.gauge.count)
        self._switch_event_log(self.services)
        self._settle_catalog(self.services)
        self.waiting = self._start_waiting(self.database)
        planner = self._planner_beside()
        self.server = self._start_thrift(self.services)
        if planner is not None:
            planner.start(self.thrift_uri, environment_of_jobs(self.settings.tls))
        if self._with_loops:
            jobs = environment_of_jobs(self.settings.tls)
            self._start_loops(url, [*server_loops(self.services, self.settings), *self.compaction_loops(jobs)])
        else:
            self.health.report("loops", HealthPart(ready=True, reason="switched off here"))
        self.running.callback(self.server.begin_drain)  # first of all, so that calls and ticks end side by side
        log.info(
            "serving",
            thrift=self.thrift_uri,
            http=self.http_uri,
            database=self.database_url,
            warehouse=self.settings.catalog.warehouse,
            version=VERSION,
        )

    def addresses(self) -> dict[str, object]:
        """Return the addresses of this process and of the planner."""
        configured = self.settings.planner.uri
        return {**super().addresses(), **({"planner": configured} if configured else {})}

    def _planner_beside(self) -> PlannerBeside | None:
        """Return the planner that this server starts; None if it is switched off, is elsewhere, or cannot run here."""
        settings = self.settings.planner
        if self._planner_options is None or not settings.enabled or settings.uri:
            return None
        if not PlannerBeside.is_installed():
            log.info("no_planner_here", reason="pyarrow is not installed; metastore.planner.uri can name another")
            return None
        planner = PlannerBeside(self.settings, self._planner_options)
        uris: list[str] = []

        def listen() -> tuple[str, int]:
            uris.append(planner.listen())
            return self.settings.server.host, settings.port

        bound("planner", self.settings.server.host, settings.port, listen)
        self.running.callback(planner.stop)
        self.settings = dataclasses.replace(self.settings, planner=dataclasses.replace(settings, uri=uris[0]))
        return planner

    def _start_schema(self, url: str) -> str:
        """Bring the database's schema up to date; return its namespace."""
        before = migrate.upgrade(url)
        if before.database > before.release:
            log.warning("schema_is_newer", database=before.database, release=before.release)
        elif before.database < before.release:
            log.info("schema_upgraded", before=before.database or "empty", now=before.release)
        self.health.report("schema", HealthPart(ready=True))
        return before.schema

    def _switch_event_log(self, services: Services) -> None:
        """Switch the notification log on or off, as the settings say."""
        if services.events.switch():
            log.info("notification_log_switched", on=services.events.wanted)

    def _settle_catalog(self, services: Services) -> None:
        """Make the catalog's default objects, and end moves of directories that another process left."""
        if services.upstream is None:
            services.catalog.databases.ensure_default_objects()
            services.catalog.moves.settle_moves()

    def _start_waiting(self, db: Database) -> Waiting[Call] | None:
        """Return the place where calls wait for locks, if they may."""
        patience = self.settings.locks.check_wait
        if not patience:
            return None
        waiting: Waiting[Call] = Waiting(patience, Call.again, end_patience, Listener(db.url, CHANNEL), self.lock_stats)
        db.pool.tell = waiting.told
        waiting.start()
        self.running.callback(waiting.stop)
        return waiting

    def _start_thrift(self, services: Services) -> Server:
        settings, stats = self.settings.server, CallStats()
        exposed = exposure(settings.host, self.settings.tls, self.settings.identity)
        if exposed:
            log.warning("open_to_the_network", what=exposed)
        server = Server(
            settings,
            handlers(services, self.settings, stats, self.limits, tables=self.table_stats, waiting=self.waiting),
            stats,
            reuse_port=self._shares_port,
            tls=self.settings.tls,
            mechanisms=mechanisms(
                self.settings.identity, services.tokens.password_of, use_ssl=self.settings.tls.use_ssl
            ),
            access=_access(self.settings),
            seats=self.seats,
            upstream=self.upstream,
            forwarded=self.forwarded,
            limits=self.limits,
        )
        host, port = bound("Thrift", settings.host, settings.port, server.start)
        self.running.callback(server.drain)
        self.metrics.add(stats)
        if services.upstream is not None:
            self.metrics.add(self.forwarded)
            self._watch_upstream(services.upstream.client.answers)
        self.thrift_uri = f"thrift://{reachable(host)}:{port}"
        self.health.probe(
            "thrift", lambda: HealthPart(server.ready, exposed if server.ready else "not accepting connections")
        )
        return server

    def _watch_upstream(self, answers: Callable[[], str]) -> None:
        """Show in /readyz whether the upstream answers. Transactions go on without it, so this stays ready."""
        self.health.report("upstream", HealthPart(ready=True, reason="not asked yet"))
        self.health.probe("upstream", lambda: HealthPart(ready=True, reason=answers()))


def _access(settings: Settings) -> Access:
    proof = settings.tls.client_certificates == "required" or settings.identity.requires_proof
    return Guarded(Identified() if proof else Everybody(), settings.tls.operators)
