"""Objects of the catalog as Thrift's JSON, and events of the log as clients get them.

Structs are the answers of the catalog's own calls. Thrift's Python library writes this protocol too, in twenty times as
long: events are written by each change.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from json.encoder import encode_basestring as quoted
from typing import Any

from thrift.protocol import fastbinary
from thrift.Thrift import TType

from metastore.catalog.model import (
    Catalog,
    ColumnStatistics,
    ConstraintColumn,
    ConstraintKind,
    Database,
    Function,
    Json,
    Table,
)
from metastore.catalog.rules.partitions import Partition
from metastore.ids import TableName
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import (
    catalog_to_thrift,
    database_to_thrift,
    function_to_thrift,
    statistics_to_thrift,
    table_to_thrift,
)
from metastore.thrift_server.convert.constraints import constraints_to_thrift
from metastore.thrift_server.convert.structs import struct_from_json
from metastore.txns.events.store import LoggedEvent

PLAIN, GZIP = "json-0.2", "gzip(json-2.0)"
"""Hive's formats of messages: text that every version reads, and the same compressed, which Hive 4 reads."""
_NO_COLUMNS: Json = {"cols": []}
_AT_A_TIME = 256 * 1024
"""Bytes of events that are sent together."""
_TAGS = {
    TType.BOOL: "tf",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "dbl",
    TType.STRING: "str",
    TType.STRUCT: "rec",
    TType.MAP: "map",
    TType.SET: "set",
    TType.LIST: "lst",
}


def struct_text(struct: Any) -> str:
    """Return a struct as Thrift's JSON; fields that are None are left out."""
    kind: Any = type(struct)
    fields = [
        f"{head}{write(value, args)}}}"
        for name, head, write, args in _fields(kind)
        if (value := getattr(struct, name)) is not None
    ]
    return "{" + ",".join(fields) + "}"


@cache
def _fields(kind: type) -> list[tuple[str, str, Callable[[Any, Any], str], Any]]:
    """Return the fields of a struct type: name, the JSON text before the value, and the writer of the value."""
    return [
        (name, f'"{number}":{{"{_TAGS[ttype]}":', _WRITERS[ttype], args)
        for number, ttype, name, args, _ in filter(None, kind.thrift_spec)  # type: ignore[attr-defined]
    ]


def _columns_text(columns: Sequence[Json]) -> str:
    """Return a list of columns, which is most of a table's text."""
    texts = [f'["rec",{len(columns)}']
    for column in columns:
        comment = column.get("comment")
        more = "" if comment is None else f',"3":{{"str":{quoted(comment)}}}'
        texts.append(f'{{"1":{{"str":{quoted(column["name"])}}},"2":{{"str":{quoted(column["type"])}}}{more}}}')
    return ",".join(texts) + "]"


def _descriptor_text(sd: Json) -> str:
    """Return a storage descriptor, which has columns and something more."""
    rest = struct_text(
        struct_from_json(ttypes.StorageDescriptor, {name: value for name, value in sd.items() if name != "cols"})
    )
    if sd.get("cols") is None:
        return rest
    return f'{{"1":{{"lst":{_columns_text(sd["cols"])}}}{"" if rest == "{}" else ","}{rest[1:]}'


def _text(value: str | bytes, args: Any) -> str:
    """Return a text, or bytes as base64 without padding."""
    if args == "BINARY" or isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode().rstrip("=")}"'  # type: ignore[arg-type]
    return quoted(value)


def _double(value: float, _args: Any) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _list(values: Sequence[Any], args: Any) -> str:
    write = _WRITERS[args[0]]
    items = "".join("," + write(value, args[1]) for value in values)
    return f'["{_TAGS[args[0]]}",{len(values)}{items}]'


def _map(entries: dict[Any, Any], args: Any) -> str:
    key_kind, key_args, kind, value_args, *_ = args
    write_key, write = _WRITERS[key_kind], _WRITERS[kind]
    quote = '"' if key_kind in {TType.BOOL, TType.BYTE, TType.I16, TType.I32, TType.I64, TType.DOUBLE} else ""
    items = ",".join(
        f"{quote}{write_key(key, key_args)}{quote}:{write(value, value_args)}" for key, value in entries.items()
    )
    return f'["{_TAGS[key_kind]}","{_TAGS[kind]}",{len(entries)},{{{items}}}]'


def _number(value: int, _args: Any) -> str:
    return str(int(value))


_WRITERS: dict[int, Callable[[Any, Any], str]] = {
    **dict.fromkeys((TType.BOOL, TType.BYTE, TType.I16, TType.I32, TType.I64), _number),
    TType.DOUBLE: _double,
    TType.STRING: _text,
    TType.STRUCT: lambda value, _args: struct_text(value),
    TType.MAP: _map,
    TType.SET: _list,
    TType.LIST: _list,
}


class EventTexts:
    """The texts of objects in messages."""

    def catalog(self, catalog: Catalog) -> str:
        """Return a catalog's text."""
        return struct_text(catalog_to_thrift(catalog))

    def database(self, database: Database) -> str:
        """Return a database's text."""
        return struct_text(database_to_thrift(database))

    def tables(self, *tables: Table) -> list[str]:
        """Return the text of each table. A descriptor that is equal to the one before it is written once."""
        texts: list[str] = []
        before, sd = None, ""
        for table in tables:
            if table.sd != before:
                before, sd = table.sd, _descriptor_text(table.sd)
            struct = table_to_thrift(replace(table, sd=_NO_COLUMNS, partition_keys=[]))
            struct.sd = struct.partitionKeys = None
            keys = _columns_text(table.partition_keys)
            texts.append(f'{{"7":{{"rec":{sd}}},"8":{{"lst":{keys}}},{struct_text(struct)[1:]}')
        return texts

    def partitions(self, table: TableName, partitions: Sequence[Partition]) -> list[str]:
        """Return the text of each partition. A descriptor that many share is written once."""
        db, name, catalog = table.db, table.table, table.catalog
        names = struct_text(ttypes.Partition(dbName=db, tableName=name, catName=catalog, writeId=None))
        shared: dict[int, str] = {}
        texts = []
        for partition in partitions:
            sd = ""
            if partition.sd is not None:
                known = shared.get(id(partition.sd))
                if known is None:
                    known = _descriptor_text(partition.sd)[1:]
                    shared[id(partition.sd)] = known
                location = "" if partition.location is None else f'"2":{{"str":{quoted(partition.location)}}},'
                sd = f'"6":{{"rec":{{{location}{known}}},'
            values = "".join("," + quoted(value) for value in partition.values)
            parameters = ",".join(f"{quoted(key)}:{quoted(value)}" for key, value in partition.parameters.items())
            texts.append(
                f'{{"1":{{"lst":["str",{len(partition.values)}{values}]}},"4":{{"i32":{partition.create_time}}},'
                f'"5":{{"i32":{partition.last_access_time}}},{sd}'
                f'"7":{{"map":["str","str",{len(partition.parameters)},{{{parameters}}}]}},'
                f'"10":{{"i64":{partition.write_id}}},{names[1:]}'
            )
        return texts

    def function(self, function: Function) -> str:
        """Return a function's text."""
        return struct_text(function_to_thrift(function))

    def constraints(self, kind: ConstraintKind, columns: Sequence[ConstraintColumn]) -> list[str]:
        """Return the text of each column of constraints of one kind."""
        return [struct_text(row) for row in constraints_to_thrift(kind, columns)]

    def statistics(self, table: TableName, partition: str, statistics: Sequence[ColumnStatistics]) -> str:
        """Return the text of the statistics of a table, or of one of its partitions."""
        description = ttypes.ColumnStatisticsDesc(
            not partition, table.db, table.table, partition or None, statistics[0].last_analyzed, table.catalog
        )
        columns = statistics_to_thrift(list(statistics))
        return struct_text(ttypes.ColumnStatistics(description, columns, engine=statistics[0].engine))


def encoded_events(events: Sequence[LoggedEvent], message_format: str) -> Iterator[bytes]:
    """Yield events in the binary protocol, some at a time: a message may be long once it is unpacked."""
    import gzip  # a format that few ask for

    spec = [ttypes.NotificationEvent, ttypes.NotificationEvent.thrift_spec]
    parts: list[bytes] = []
    size = 0
    for event in events:
        message = event.message
        if message_format == GZIP:
            message = base64.b64encode(gzip.compress(message.encode(), 1)).decode()
        parts.append(
            fastbinary.encode_binary(
                ttypes.NotificationEvent(
                    event.id, event.at, event.type, event.db, event.table, message, message_format, event.catalog
                ),
                spec,
            )
        )
        size += len(parts[-1])
        if size >= _AT_A_TIME:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)
