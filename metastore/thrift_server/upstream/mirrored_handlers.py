"""Handlers for calls that both sides have to know: their bytes go upstream, their effect is followed here (ADR 50)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from metastore.acid.table_kinds import is_transactional
from metastore.catalog.service.upstream_changes import Forward, Forwarded, UpstreamChanges
from metastore.ids import TableName, database_name, split_catalog
from metastore.partition_names import canonical
from metastore.telemetry.calls import CallStats
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import table_name_of
from metastore.thrift_server.convert.partitions import table_of
from metastore.thrift_server.dispatch.call import Call, PassedOn, shared
from metastore.thrift_server.upstream.client import UpstreamTables
from metastore.thrift_server.upstream.endpoint import Upstream
from metastore.thrift_server.waiting.own_locks import OwnLocks


@dataclass(frozen=True)
class Forwarding:
    """A sender of calls to the upstream, from a thread that may wait."""

    upstream: Upstream
    stats: CallStats
    aside: Callable[[], AbstractContextManager[None]]
    """A context in which others may have this thread's seat."""

    def of(self, call: Call) -> Forward:
        """Return a function that sends this call to the upstream."""

        def forward() -> Forwarded:
            began, outcome = time.perf_counter(), "UPSTREAM_UNAVAILABLE"
            try:
                with self.aside():
                    reply, outcome = self.upstream.call(
                        call.method, call.raw, self.upstream.said_first(call.connection)
                    )
            finally:
                self.stats.record(call.method, outcome, time.perf_counter() - began)
            return Forwarded(reply, outcome)

        return forward


class SharedTableHandlers:
    """The calls about databases and tables."""

    def __init__(self, changes: UpstreamChanges, forwarding: Forwarding, changers: OwnLocks) -> None:
        """Prepare the handlers.

        ``changes``: follows; ``forwarding``: passes on; ``changers``: knows the caller's locks.
        """
        self._changes, self._forwarding, self._changers = changes, forwarding, changers

    @shared
    def drop_database(self, call: Call, name: str | None, _delete_data: bool | None, _cascade: bool | None) -> PassedOn:
        """Remove a database."""
        return self._drop_database(call, name, None, None)

    @shared
    def drop_database_req(self, call: Call, request: ttypes.DropDatabaseRequest) -> PassedOn:
        """Remove a database."""
        return self._drop_database(call, request.name, request.catalogName, request.txnId)

    @shared
    def drop_table(self, call: Call, db: str | None, name: str | None, _delete_data: bool | None) -> PassedOn:
        """Remove a table."""
        return self._drop_table(call, table_name_of(db, name), None)

    @shared
    def drop_table_with_environment_context(
        self,
        call: Call,
        db: str | None,
        name: str | None,
        _delete_data: bool | None,
        environment: ttypes.EnvironmentContext | None,
    ) -> PassedOn:
        """Remove a table."""
        return self._drop_table(call, table_name_of(db, name), environment)

    @shared
    def drop_table_req(self, call: Call, request: ttypes.DropTableRequest) -> PassedOn:
        """Remove a table."""
        return self._drop_table(
            call, table_name_of(request.dbName, request.tableName, request.catalogName), request.envContext
        )

    @shared
    def alter_table(self, call: Call, db: str | None, name: str | None, table: ttypes.Table) -> PassedOn:
        """Replace a table's definition."""
        return self._alter(call, table_name_of(db, name), table, None)

    @shared
    def alter_table_with_environment_context(
        self,
        call: Call,
        db: str | None,
        name: str | None,
        table: ttypes.Table,
        environment: ttypes.EnvironmentContext | None,
    ) -> PassedOn:
        """Replace a table's definition."""
        return self._alter(call, table_name_of(db, name), table, environment)

    @shared
    def alter_table_with_cascade(
        self, call: Call, db: str | None, name: str | None, table: ttypes.Table, _cascade: bool | None
    ) -> PassedOn:
        """Replace a table's definition."""
        return self._alter(call, table_name_of(db, name), table, None)

    @shared
    def alter_table_req(self, call: Call, request: ttypes.AlterTableRequest) -> PassedOn:
        """Replace a table's definition."""
        return self._alter(
            call,
            table_name_of(request.dbName, request.tableName, request.catName),
            request.table,
            request.environmentContext,
        )

    @shared
    def truncate_table_req(self, call: Call, request: ttypes.TruncateTableRequest) -> PassedOn:
        """Empty a table or some of its partitions."""
        forward = self._forwarding.of(call)
        if not request.writeId or request.writeId <= 0:
            return PassedOn(*forward())
        names = None if request.partNames is None else [canonical(name) for name in request.partNames]
        return PassedOn(
            *self._changes.truncate(table_name_of(request.dbName, request.tableName), names, request.writeId, forward)
        )

    def _drop_database(self, call: Call, name: str | None, catalog: str | None, txn_id: int | None) -> PassedOn:
        in_name, plain = split_catalog(name)
        return PassedOn(
            *self._changes.drop_database(
                database_name(plain or "", catalog or in_name),
                self._forwarding.of(call),
                self._changers.of(call, txn_id=txn_id),
            )
        )

    def _drop_table(self, call: Call, name: TableName, environment: Any) -> PassedOn:
        call.log(table=str(name))
        return PassedOn(
            *self._changes.drop_table(name, self._forwarding.of(call), self._changers.of(call, environment))
        )

    def _alter(self, call: Call, name: TableName, table: Any, environment: Any) -> PassedOn:
        forward = self._forwarding.of(call)
        if table is None or not table.tableName or not table.dbName:
            return PassedOn(*forward())  # The upstream refuses this.
        new = table_name_of(table.dbName, table.tableName, table.catName or name.catalog)
        if new != name:
            call.log(table=str(name), renamed_to=str(new))
            return PassedOn(*self._changes.rename_table(name, new, forward, self._changers.of(call, environment)))
        if is_transactional(table.parameters or {}):
            return PassedOn(*self._changes.convert(name, forward))
        return PassedOn(*forward())


class SharedPartitionHandlers:
    """The calls about partitions."""

    def __init__(
        self, changes: UpstreamChanges, forwarding: Forwarding, tables: UpstreamTables, changers: OwnLocks
    ) -> None:
        """Prepare the handlers as `SharedTableHandlers`; ``tables``: knows the names of partitions by their values."""
        self._changes, self._forwarding, self._tables, self._changers = changes, forwarding, tables, changers

    @shared
    def drop_partition(self, call: Call, db: str, name: str, values: list[str] | None, _delete_data: bool) -> PassedOn:
        """Remove a partition."""
        return self._drop(call, table_of(db, name), self._named(table_of(db, name), values), None)

    @shared
    def drop_partition_with_environment_context(
        self,
        call: Call,
        db: str,
        name: str,
        values: list[str] | None,
        _delete_data: bool,
        environment: ttypes.EnvironmentContext | None,
    ) -> PassedOn:
        """Remove a partition."""
        return self._drop(call, table_of(db, name), self._named(table_of(db, name), values), environment)

    @shared
    def drop_partition_by_name(self, call: Call, db: str, name: str, partition: str, _delete_data: bool) -> PassedOn:
        """Remove a partition."""
        return self._drop(call, table_of(db, name), [canonical(partition)], None)

    @shared
    def drop_partition_by_name_with_environment_context(
        self,
        call: Call,
        db: str,
        name: str,
        partition: str,
        _delete_data: bool,
        environment: ttypes.EnvironmentContext | None,
    ) -> PassedOn:
        """Remove a partition."""
        return self._drop(call, table_of(db, name), [canonical(partition)], environment)

    @shared
    def drop_partition_req(self, call: Call, request: ttypes.DropPartitionRequest) -> PassedOn:
        """Remove a partition, by values or by name."""
        table = table_of(request.dbName, request.tblName, request.catName)
        named = (
            self._named(table, request.partVals)
            if request.partVals is not None
            else [canonical(request.partName or "")]
        )
        return self._drop(call, table, named, request.environmentContext)

    @shared
    def drop_partitions_req(self, call: Call, request: ttypes.DropPartitionsRequest) -> PassedOn:
        """Remove several, by names or by expressions; the upstream evaluates expressions."""
        names = request.parts.names if request.parts is not None else None
        return self._drop(
            call,
            table_of(request.dbName, request.tblName, request.catName),
            None if names is None else [canonical(name) for name in names],
            request.environmentContext,
        )

    @shared
    def rename_partition(
        self, call: Call, db: str, name: str, values: list[str] | None, new: ttypes.Partition
    ) -> PassedOn:
        """Give a partition other values."""
        return self._rename(call, table_of(db, name), values, new)

    @shared
    def rename_partition_req(self, call: Call, request: ttypes.RenamePartitionRequest) -> PassedOn:
        """Give a partition other values."""
        return self._rename(
            call, table_of(request.dbName, request.tableName, request.catName), request.partVals, request.newPart
        )

    def _drop(self, call: Call, table: TableName, partitions: list[str] | None, environment: Any) -> PassedOn:
        call.log(table=str(table))
        return PassedOn(
            *self._changes.drop_partitions(
                table, partitions, self._forwarding.of(call), self._changers.of(call, environment)
            )
        )

    def _rename(self, call: Call, table: TableName, values: list[str] | None, new: Any) -> PassedOn:
        forward = self._forwarding.of(call)
        old, renamed = (
            self._tables.partition_name(table, part) if part else ""
            for part in (values, new.values if new is not None else None)
        )
        if not old or not renamed:
            return PassedOn(*forward())  # The upstream refuses this.
        return PassedOn(*self._changes.rename_partition(table, old, renamed, forward, self._changers.of(call)))

    def _named(self, table: TableName, values: list[str] | None) -> list[str]:
        name = self._tables.partition_name(table, values) if values else ""
        return [name] if name else []
