"""A client of the upstream for our own questions, over own connections, in the upstream's protocol."""

import getpass
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from thrift.Thrift import TApplicationException

from metastore.acid.table_kinds import is_transactional
from metastore.catalog.service.upstream_changes import UpstreamChanges
from metastore.client.answers import domain_errors
from metastore.compaction.queue.rules.requests import Entity
from metastore.compaction.queue.store.entities import Described
from metastore.db.engine import PgTx
from metastore.errors import NoSuchObjectError
from metastore.ids import DEFAULT_CATALOG, DatabaseName, TableName
from metastore.partition_names import canonical, make_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.structs import struct_to_json
from metastore.thrift_server.upstream.endpoint import Upstream

_BATCH = 300
_EVERYTHING = ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES])


class UpstreamClient:
    """A client that makes single calls."""

    def __init__(self, upstream: Upstream) -> None:
        """Prepare a client. ``upstream``: the server to ask."""
        self.upstream = upstream
        self._user = upstream.set_ugi(os.environ.get("HADOOP_USER_NAME") or getpass.getuser())

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method, and return its result. Raises: our errors; UnavailableError if it does not answer."""
        answer, _ = self.upstream.call(method, self.upstream.written(method, *arguments), (self._user,))
        with domain_errors():
            return self.upstream.read(method, answer)

    def table(self, name: TableName) -> Any:
        """Return the table as the upstream has it; None if it has no such table."""
        try:
            return self.ask(
                "get_table_req",
                ttypes.GetTableRequest(
                    dbName=name.db, tblName=name.table, capabilities=_EVERYTHING, catName=_catalog(name.catalog)
                ),
            ).table
        except NoSuchObjectError:
            return None

    def partition(self, name: TableName, partition: str) -> Any:
        """Return a partition by its name, None if there is none."""
        try:
            return self.ask("get_partition_by_name", database_of(name.database), name.table, partition)
        except NoSuchObjectError:
            return None

    def answers(self) -> str:
        """Return why the upstream does not answer; "" if it does."""
        try:
            self.ask("getName")
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller hears it
            return str(error) or type(error).__name__
        return ""


class UpstreamTables:
    """The questions before and after changes; see `metastore.catalog.service.upstream_changes.Tables`."""

    def __init__(self, client: UpstreamClient) -> None:
        """Prepare the questions. ``client``: makes the calls."""
        self._client = client

    def identity(self, name: TableName) -> int | None:
        """Return the table's identity: see `Tables`."""
        table = self._client.table(name)
        return None if table is None else identity_of(table)

    def has_partition(self, name: TableName, partition: str) -> bool:
        """Return True if the partition exists: see `Tables`."""
        return self._client.partition(name, partition) is not None

    def is_transactional(self, name: TableName) -> bool | None:
        """Return True if the table is transactional: see `Tables`."""
        table = self._client.table(name)
        return None if table is None else is_transactional(table.parameters or {})

    def partitions(self, name: TableName) -> list[str]:
        """Return the partitions: see `Tables`."""
        table = self._client.table(name)
        if table is None or not table.partitionKeys:
            return [""]
        names = self._client.ask("get_partition_names", database_of(name.database), name.table, -1)
        return [canonical(partition) for partition in names]

    def partition_name(self, name: TableName, values: Sequence[str]) -> str:
        """Return the canonical name of the partition with these values."""
        table = self._client.table(name)
        keys = [key.name for key in table.partitionKeys or ()] if table is not None else []
        return canonical(make_name(keys, values)) if len(keys) == len(values) else ""


class UpstreamCatalog:
    """The catalog that compaction needs, from the upstream; see `entities.Catalog`."""

    def __init__(self, client: UpstreamClient, changes: UpstreamChanges) -> None:
        """Prepare the catalog. ``client``: makes the calls; ``changes``: knows the tables that must be left alone."""
        self._client, self._changes = client, changes

    def described(self, pg: PgTx, entity: Entity) -> Described | None:
        """Look up a table and its partition; None if the table does not exist. Raises: UnavailableError."""
        self._changes.require_settled(pg, entity.table)
        table = self._client.table(entity.table)
        if table is None:
            return None
        try:
            database = self._client.ask("get_database", database_of(entity.table.database))
        except NoSuchObjectError:  # The database was dropped with the table since the look-up.
            return None
        partition = self._client.partition(entity.table, entity.partition) if entity.partition else None
        location = (partition or table).sd.location or ""
        return Described(
            entity,
            identity_of(table),
            location,
            table.parameters or {},
            database.parameters or {},
            tuple(key.name for key in table.partitionKeys or ()),
            not entity.partition or partition is not None,
            (partition.parameters or {}) if partition is not None else {},
            tuple(table.sd.bucketCols or ()),
            bool(table.sd.sortCols),
            table.owner,
            table.sd.location or "",
            tuple(struct_to_json(one.sd) for one in (table, partition) if one is not None),
        )

    def described_all(self, pg: PgTx, entities: Sequence[Entity]) -> dict[Entity, Described]:
        """Look up entities: see `described`."""
        return {entity: found for entity in entities if (found := self.described(pg, entity)) is not None}

    def all_partitions(self, _pg: PgTx, table: TableName) -> list[tuple[str, str]]:
        """Return (name, location) of every partition of a table."""
        described = self._client.table(table)
        if described is None:
            return []
        keys, db = [key.name for key in described.partitionKeys or ()], database_of(table.database)
        names: Sequence[str] = self._client.ask("get_partition_names", db, table.table, -1)
        parts = [
            part
            for start in range(0, len(names), _BATCH)
            for part in self._client.ask("get_partitions_by_names", db, table.table, names[start : start + _BATCH])
        ]
        return sorted((canonical(make_name(keys, part.values)), part.sd.location) for part in parts)

    def user_of(self, _pg: PgTx, location: str, _left_by: Entity | None = None) -> str | None:
        """Return a text in place of the table that uses the location: a Hive metastore cannot be asked by location.

        So directories are never removed as unused.
        """
        return f"some table of the upstream, which cannot be asked who has {location}"

    def homes(self, _pg: PgTx, _entity: Entity) -> list[str] | None:
        """Return None: the places are unknown, so no file is removed. See `user_of`."""
        return None

    def sharer(self, _pg: PgTx, _table: Described) -> str | None:
        """Return None for unknown: see `user_of`."""
        return None

    def places_inside(self, _pg: PgTx, _table: Described, _location: str) -> list[str]:
        """Return an empty list for unknown: see `user_of`."""
        return []

    def database_parameters(self, _pg: PgTx, _table: TableName) -> dict[str, str] | None:
        """Return parameters as if the database existed: directories of databases and dropped tables are not ours."""
        return {}

    def require_available(self) -> None:
        """Raise UnavailableError: see `Catalog`."""
        with suppress(TApplicationException):  # A server without this call has answered, too.
            self._client.ask("getName")

    def columns_with_statistics(self, _pg: PgTx, entity: Entity) -> list[str]:
        """Return names of the columns that have statistics, in the table or in the partition."""
        table = self._client.table(entity.table)
        if table is None:
            return []
        columns = [column.name for column in table.sd.cols]
        if not entity.partition:
            answer = self._client.ask(
                "get_table_statistics_req",
                ttypes.TableStatsRequest(
                    dbName=entity.table.db,
                    tblName=entity.table.table,
                    colNames=columns,
                    engine="hive",
                    catName=_catalog(entity.table.catalog),
                ),
            ).tableStats
        else:
            answer = self._client.ask(
                "get_partitions_statistics_req",
                ttypes.PartitionsStatsRequest(
                    dbName=entity.table.db,
                    tblName=entity.table.table,
                    colNames=columns,
                    partNames=[entity.partition],
                    engine="hive",
                    catName=_catalog(entity.table.catalog),
                ),
            ).partStats.get(entity.partition, ())
        return sorted(statistic.colName for statistic in answer)


def identity_of(table: Any) -> int:
    """Return an id that distinguishes tables of one name: 4.x has ids, 2.3 the second of the creation."""
    return int(table.id) if (table.id or 0) > 0 else int(table.createTime or 0)


def database_of(name: DatabaseName) -> str:
    """Return the database name for calls without a catalog."""
    return name.db if name.catalog == DEFAULT_CATALOG else f"@{name.catalog}#{name.db}"


def _catalog(name: str) -> str | None:
    return None if name == DEFAULT_CATALOG else name
