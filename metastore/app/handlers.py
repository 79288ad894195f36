"""The handlers of the methods in a process with these services."""

import time

from metastore.app.services import Services, UpstreamServices
from metastore.config import Settings
from metastore.telemetry.calls import CallStats
from metastore.telemetry.tables import TableStats
from metastore.thrift_server.auth.mechanisms import local_names
from metastore.thrift_server.convert.write_events import WriteEvents
from metastore.thrift_server.dispatch.address_quotas import limited, txns_and_locks
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.dispatch.ended_txn_errors import explained
from metastore.thrift_server.dispatch.registry import Handler, handlers_of
from metastore.thrift_server.dispatch.table_access import TableAccess
from metastore.thrift_server.handlers.catalogs import CatalogHandlers
from metastore.thrift_server.handlers.compaction import CompactionHandlers
from metastore.thrift_server.handlers.compaction_operators import CompactionOperatorHandlers
from metastore.thrift_server.handlers.constraints import ConstraintHandlers
from metastore.thrift_server.handlers.databases import DatabaseHandlers
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.handlers.functions import FunctionHandlers
from metastore.thrift_server.handlers.indexes import IndexHandlers
from metastore.thrift_server.handlers.listener_events import ListenerEventHandlers
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.thrift_server.handlers.materialized_views import MaterializedViewHandlers
from metastore.thrift_server.handlers.notifications import NotificationHandlers
from metastore.thrift_server.handlers.operators import OperatorHandlers
from metastore.thrift_server.handlers.partition_exchange import PartitionExchangeHandlers
from metastore.thrift_server.handlers.partition_reads import PartitionReadHandlers
from metastore.thrift_server.handlers.partitions import PartitionHandlers
from metastore.thrift_server.handlers.rare import RareHandlers
from metastore.thrift_server.handlers.rebuilds import RebuildHandlers
from metastore.thrift_server.handlers.session import SessionHandlers
from metastore.thrift_server.handlers.statistics import StatisticsHandlers
from metastore.thrift_server.handlers.streams import StreamHandlers
from metastore.thrift_server.handlers.table_reads import TableReadHandlers
from metastore.thrift_server.handlers.tables import TableHandlers
from metastore.thrift_server.handlers.tokens import ForeignTokenHandlers, TokenHandlers
from metastore.thrift_server.handlers.txns import TxnHandlers
from metastore.thrift_server.handlers.unsupported import UnsupportedHandlers
from metastore.thrift_server.handlers.write_ids import WriteIdHandlers
from metastore.thrift_server.loop.address_limits import AddressLimits
from metastore.thrift_server.upstream.local_handlers import (
    UpstreamSessionHandlers,
    UpstreamStreamHandlers,
    UpstreamTableHandlers,
)
from metastore.thrift_server.upstream.mirrored_handlers import SharedPartitionHandlers, SharedTableHandlers
from metastore.thrift_server.waiting.lock_waits import Waiting
from metastore.thrift_server.waiting.own_locks import OwnLocks


def handlers(
    services: Services,
    settings: Settings,
    stats: CallStats,
    limits: AddressLimits,
    *,
    tables: TableStats,
    waiting: Waiting[Call] | None = None,
) -> dict[str, Handler]:
    """Return the handlers by method. ``tables``: counts refusals.

    ``waiting``: the place where calls wait for locks, if any.
    """
    writes = WriteEvents(
        services.events, services.catalog.table_reads, services.catalog.partition_reads, services.loop_files.cmroot
    )
    changers = OwnLocks(services.holders)
    answered = handlers_of(
        Fb303Handlers(stats, int(time.time()), settings.server.hive_version),  # noqa: TID251 - when this process started, for people
        TxnHandlers(services.txns, services.commits, writes),
        WriteIdHandlers(services.write_ids),
        RebuildHandlers(services.rebuilds),
        LockHandlers(services.locks, waiting, services.holders, services.purges),
        CompactionHandlers(services.compaction.queue, services.compaction.measuring),
        CompactionOperatorHandlers(services.compaction.explaining, services.compaction.measuring),
        TokenHandlers(services.tokens, local_names(settings.identity)),
        ForeignTokenHandlers(services.tokens),
        OperatorHandlers(services.history, services.waits, services.locks),
        *(
            _catalog(services, settings, limits, changers, writes, TableAccess(settings.abilities, tables))
            if services.upstream is None
            else _shared(services.upstream, settings, changers, limits)
        ),
    )
    shares = txns_and_locks(
        settings.limits, settings.txns.max_open_batch, services.txns.still_open, services.locks.still_there
    )
    for name, share in shares.items():
        answered[name] = limited(answered[name], share, limits)
    return explained(answered, services.history)


def _catalog(
    services: Services,
    settings: Settings,
    limits: AddressLimits,
    changers: OwnLocks,
    writes: WriteEvents,
    access: TableAccess,
) -> list[object]:
    """Return the handlers of the catalog, which is here."""
    catalog = services.catalog
    return [
        SessionHandlers(settings, limits),
        CatalogHandlers(catalog.databases),
        DatabaseHandlers(catalog.databases, changers),
        TableHandlers(catalog.tables, changers),
        TableReadHandlers(catalog.table_reads, access, catalog.statistics),
        PartitionHandlers(catalog.partitions, changers),
        PartitionReadHandlers(catalog.partition_reads, in_pieces=True),
        PartitionExchangeHandlers(catalog.partition_exchange),
        FunctionHandlers(catalog.functions),
        IndexHandlers(),
        StatisticsHandlers(catalog.statistics),
        ConstraintHandlers(catalog.constraints),
        NotificationHandlers(services.events, writes),
        ListenerEventHandlers(catalog.listener_events, services.loop_files.cmroot),
        StreamHandlers(services.commits),
        MaterializedViewHandlers(catalog.materialized_views),
        RareHandlers(catalog.rare),
        UnsupportedHandlers(),
    ]


def _shared(upstream: UpstreamServices, settings: Settings, changers: OwnLocks, limits: AddressLimits) -> list[object]:
    """Return the handlers of methods that both this service and the upstream have to know."""
    return [
        UpstreamSessionHandlers(settings, upstream.forwarding, limits),
        UpstreamStreamHandlers(),
        UpstreamTableHandlers(),
        SharedTableHandlers(upstream.changes, upstream.forwarding, changers),
        SharedPartitionHandlers(upstream.changes, upstream.forwarding, upstream.tables, changers),
    ]
