"""Conversions of clients' write events and the answers; tables and partitions travel as Thrift's JSON, as in Hive.

Rule: the objects are those of the catalog at the moment of the call; a file belongs to an existing object.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from thrift.transport.TTransport import TMemoryBuffer

from metastore.catalog.model import Table
from metastore.catalog.service.partition_reads import PartitionReads
from metastore.catalog.service.table_reads import TableReads
from metastore.errors import InvalidRequestError, NoSuchObjectError
from metastore.ids import TableName, table_name
from metastore.partition_names import canonical, make_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import table_to_thrift
from metastore.thrift_server.convert.partitions import encode_partition
from metastore.txns.events.service import EventService
from metastore.txns.write_events.rules import encoded, joined, moved
from metastore.txns.write_events.store import WriteEvent


def json_of(struct: ttypes.Table | ttypes.Partition) -> str:
    """Encode a struct as Thrift's JSON."""
    from thrift.protocol.TJSONProtocol import TJSONProtocol

    buffer = TMemoryBuffer()
    struct.write(TJSONProtocol(buffer))
    return bytes(buffer.getvalue()).decode()


class _WrittenPlace(NamedTuple):
    """A table or partition with written files."""

    table: str
    partition: str | None
    location: str


@dataclass(frozen=True)
class WriteEvents:
    """A factory of write events from requests; without the notification log it makes none and looks nothing up.

    ``cmroot``: the directory of files for replicas; "": none.
    """

    events: EventService
    tables: TableReads
    partitions: PartitionReads
    cmroot: str = ""

    def of_requests(self, catalog: str | None, sent: Sequence[ttypes.WriteNotificationLogRequest]) -> list[WriteEvent]:
        """Return the events of writers about their own files. Raises: NoSuchObjectError, InvalidRequestError."""
        if not self.events.is_on():
            return []
        by_table: dict[TableName, list[ttypes.WriteNotificationLogRequest]] = {}
        for data in sent:
            if not data.db or not data.table:
                raise InvalidRequestError("A note of written files needs the name of a database and of a table")
            by_table.setdefault(table_name(data.db, data.table, catalog), []).append(data)
        events = []
        for name, requests in by_table.items():
            table = self.tables.get_table(name)
            names = [_partition_name(table, request.partitionVals or ()) for request in requests]
            places = self._places(table, names)
            for request, partition in zip(requests, names, strict=True):
                added = request.fileInfo
                files = encoded(
                    added.filesAdded or (), added.subDirectoryList or (), added.filesAddedChecksum or (), self.cmroot
                )
                events.append(
                    WriteEvent(
                        request.txnId,
                        name,
                        partition,
                        request.writeId,
                        tuple(files),
                        places[partition].table,
                        places[partition].partition,
                    )
                )
        return events

    def of_replayed(self, sent: Sequence[ttypes.WriteEventInfo]) -> list[WriteEvent]:
        """Return the events of a replication that replays a transaction; the caller fills in its own transaction.

        Raises: NoSuchObjectError.
        """
        if not sent or not self.events.is_on():
            return []
        events = []
        for event in sent:
            name, partition = table_name(event.database, event.table), canonical(event.partition or "")
            place = self._places(self.tables.get_table(name), [partition])[partition]
            files = tuple(moved(event.files or "", place.location))
            events.append(WriteEvent(0, name, partition, event.writeId, files, place.table, place.partition))
        return events

    def _places(self, table: Table, partitions: Collection[str]) -> dict[str, _WrittenPlace]:
        """Return the places by partition; "" is the table itself."""
        described = json_of(table_to_thrift(table))
        places = {"": _WrittenPlace(described, None, table.location or "")}
        wanted = sorted(set(partitions) - {""})
        named = self.partitions.get_partitions_by_names(table.name, wanted) if wanted else None
        for partition in self.partitions.lists.partitions(named) if named is not None else ():
            struct = encode_partition(table.name, partition)
            name = make_name(table.partition_key_names, struct.values)
            places[name] = _WrittenPlace(described, json_of(struct), struct.sd.location or "")
        missing = [key for key in wanted if key not in places]
        if missing:
            raise NoSuchObjectError(f"Partition {missing[0]} of {table.name} not found")
        return places


def _partition_name(table: Table, values: Sequence[str]) -> str:
    keys = table.partition_key_names
    if len(keys) != len(values):
        raise InvalidRequestError(f"Table {table.name} has {len(keys)} partition keys, not {len(values)}")
    return make_name(keys, values) if keys else ""


def info_of(event: WriteEvent) -> ttypes.WriteEventInfo:
    """Encode an event for a replication."""
    return ttypes.WriteEventInfo(
        writeId=event.write_id,
        database=event.name.db,
        table=event.name.table,
        files=joined(event.files),
        partition=event.partition,
        tableObj=event.table_object,
        partitionObj=event.partition_object,
    )
