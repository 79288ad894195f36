"""Services of a process, each built once and handed to its users.

Rule: building has no side effects. No statement is sent, no thread started, no file read; each effect of a process is a
named step of `metastore.app.server` and `metastore.app.worker`.
"""

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta

from metastore.catalog.events.store import CatalogEvents
from metastore.catalog.rare.service import RareService
from metastore.catalog.service.change_management import KeptFiles
from metastore.catalog.service.constraints import ConstraintService
from metastore.catalog.service.databases import DatabaseService
from metastore.catalog.service.directories import Directories
from metastore.catalog.service.functions import FunctionService
from metastore.catalog.service.listener_events import ListenerEvents
from metastore.catalog.service.moves import DirectoryMoves
from metastore.catalog.service.partition_exchange import PartitionExchange
from metastore.catalog.service.partition_reads import PartitionReads
from metastore.catalog.service.partitions import PartitionService
from metastore.catalog.service.statistics import StatisticsService
from metastore.catalog.service.table_reads import TableReads
from metastore.catalog.service.tables import TableService
from metastore.catalog.service.upstream_changes import UpstreamChanges
from metastore.compaction.cleaning.service import CleanerService
from metastore.compaction.explaining.service import ExplainingService
from metastore.compaction.initiating.service import InitiatorService
from metastore.compaction.measuring.service import MeasuringService
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.entities import OWN_CATALOG, EntityCatalog
from metastore.compaction.working.service import WorkerService
from metastore.config import Settings
from metastore.db.engine import Database
from metastore.file_work import BoundedFiles, FilePool
from metastore.files import Files
from metastore.housekeeping.service import PurgeService
from metastore.locks.service import LockService
from metastore.locks.why.service import WhyService
from metastore.materialized_views.service.rebuilds import RebuildService
from metastore.materialized_views.service.sources import MaterializedViewService
from metastore.roots import Roots
from metastore.telemetry.locks import LockStats
from metastore.telemetry.txns import TxnStats
from metastore.thrift_server.auth.local_user import groups_of
from metastore.thrift_server.convert.event_texts import EventTexts
from metastore.thrift_server.upstream.client import UpstreamCatalog, UpstreamClient, UpstreamTables
from metastore.thrift_server.upstream.mirrored_handlers import Forwarding
from metastore.thrift_server.waiting.lock_connections import LockConnections
from metastore.tokens.service import TokenService
from metastore.txns.commit.service import CommitService
from metastore.txns.core.service import TxnService
from metastore.txns.events.service import EventService
from metastore.txns.history.service import HistoryService
from metastore.write_ids.service import WriteIdService


@dataclass(frozen=True)
class CatalogServices:
    """The services of the catalog."""

    databases: DatabaseService
    tables: TableService
    table_reads: TableReads
    partitions: PartitionService
    partition_reads: PartitionReads
    partition_exchange: PartitionExchange
    functions: FunctionService
    statistics: StatisticsService
    constraints: ConstraintService
    listener_events: ListenerEvents
    materialized_views: MaterializedViewService
    moves: DirectoryMoves
    rare: RareService

    @classmethod
    def of(cls, db: Database, settings: Settings, files: Files, events: CatalogEvents) -> "CatalogServices":
        """Build each service. ``events``: the recorder of changes."""
        directories = Directories(files)
        moves = DirectoryMoves(db, files, has_trash=settings.catalog.trash_interval > timedelta(0))
        return cls(
            databases=DatabaseService(db, settings.catalog, directories, moves, events),
            tables=TableService(db, settings.catalog, directories, moves, events),
            table_reads=TableReads(db),
            partitions=PartitionService(db, settings.catalog, directories, moves, events),
            partition_reads=PartitionReads(db, settings.catalog),
            partition_exchange=PartitionExchange(db, moves, events),
            functions=FunctionService(db, events),
            statistics=StatisticsService(db, events),
            constraints=ConstraintService(db, events),
            listener_events=ListenerEvents(db, settings.catalog, events),
            materialized_views=MaterializedViewService(db),
            moves=moves,
            rare=RareService(db, settings.rare, events),
        )


@dataclass(frozen=True)
class UpstreamServices:
    """The additional services if another metastore has the catalog."""

    forwarding: Forwarding
    client: UpstreamClient
    tables: UpstreamTables
    changes: UpstreamChanges
    catalog: UpstreamCatalog

    @classmethod
    def of(cls, db: Database, forwarding: Forwarding) -> "UpstreamServices":
        """Build each service. ``forwarding``: passes calls on."""
        client = UpstreamClient(forwarding.upstream)
        tables = UpstreamTables(client)
        changes = UpstreamChanges(db, tables, forwarding.upstream.settings.timeout)
        return cls(forwarding, client, tables, changes, UpstreamCatalog(client, changes))


@dataclass(frozen=True)
class CompactionServices:
    """The services of compaction: the queue, and the loops' sides of the database."""

    queue: CompactionService
    initiator: InitiatorService
    cleaner: CleanerService
    worker: WorkerService
    explaining: ExplainingService
    measuring: MeasuringService

    @classmethod
    def of(cls, db: Database, settings: Settings, files: Files, catalog: EntityCatalog) -> "CompactionServices":
        """Build each service. ``catalog``: answers questions about tables."""
        return cls(
            queue=CompactionService(db, settings.compaction, files.roots, catalog),
            initiator=InitiatorService(db, settings.compaction, catalog),
            cleaner=CleanerService(db, settings.compaction, catalog),
            worker=WorkerService(db, settings.compaction, catalog),
            explaining=ExplainingService(db, settings.compaction, files, catalog),
            measuring=MeasuringService(db, settings.compaction),
        )


@dataclass(frozen=True)
class Services:
    """All services of a process."""

    txns: TxnService
    commits: CommitService
    history: HistoryService
    purges: PurgeService
    events: EventService
    rebuilds: RebuildService
    write_ids: WriteIdService
    locks: LockService
    waits: WhyService
    holders: LockConnections
    compaction: CompactionServices
    catalog: CatalogServices
    upstream: UpstreamServices | None
    kept_files: KeptFiles
    tokens: TokenService
    loop_files: Files
    """Files for the loops: they give up a removal that takes too long, and repeat it in the next round."""

    @classmethod
    def of(
        cls,
        db: Database,
        settings: Settings,
        lock_stats: LockStats,
        txn_stats: TxnStats,
        file_pool: FilePool,
        *,
        started_at: datetime,
        forwarding: Forwarding | None = None,
    ) -> "Services":
        """Build each service.

        ``lock_stats``, ``txn_stats``: counters of locks and ends of transactions.
        ``started_at``: the start of the process, by the database's clock.
        ``forwarding``: to the metastore that has the catalog; None: the catalog is here.
        """
        files, loop_files = _files(settings, file_pool), _files(settings, file_pool, gives_up_removals=True)
        upstream = None if forwarding is None else UpstreamServices.of(db, forwarding)
        purges = PurgeService.of_new_server(db, settings.txns, started_at)
        # If an upstream has the catalog, its log reports changes to it; ours could not.
        wanted = (
            settings.events
            if upstream is None
            else dataclasses.replace(settings.events, listeners="", plain_listeners=())
        )
        events = EventService(db, wanted)
        recorder = CatalogEvents(EventTexts() if events.of_catalog else None, together=wanted.together)
        return cls(
            txns=TxnService(db, settings.txns, stats=txn_stats),
            commits=CommitService(db, settings.txns, txn_stats),
            history=HistoryService(db, settings.txns),
            purges=purges,
            events=events,
            rebuilds=RebuildService(db),
            write_ids=WriteIdService(db),
            locks=LockService(db, settings.locks, lock_stats),
            waits=WhyService(db, settings.txns, settings.locks.orphan_timeout, purges.not_before),
            holders=LockConnections(),
            compaction=CompactionServices.of(
                db, settings, files, OWN_CATALOG if upstream is None else upstream.catalog
            ),
            catalog=CatalogServices.of(db, settings, files, recorder),
            upstream=upstream,
            kept_files=KeptFiles(db, loop_files, settings.catalog.cm_retain),
            tokens=TokenService(db, settings.identity, settings.foreign, groups_of),
            loop_files=loop_files,
        )


def _files(settings: Settings, pool: FilePool, *, gives_up_removals: bool = False) -> Files:
    """Return files that can be changed only below the roots."""
    catalog = settings.catalog
    cmroot = (catalog.cmroot or f"{catalog.warehouse.rstrip('/')}/.cmroot") if catalog.cm_enabled else ""
    places = (catalog.warehouse, catalog.external_warehouse, cmroot, *catalog.more_roots)
    return BoundedFiles(
        stores=settings.stores,
        roots=Roots(tuple(filter(None, places))),
        cmroot=cmroot,
        pool=pool,
        schemes=catalog.schemes,
        gives_up_removals=gives_up_removals,
    )
