"""Translation of methods that Hive 4 no longer has to their replacements, and of the answers back (ADR 50).

Rule: only calls that the newer methods express without loss are translated. They are decoded and encoded anew, unlike
all other calls.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from thrift.Thrift import TApplicationException

from metastore.ids import DEFAULT_CATALOG, split_catalog
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.upstream.endpoint import Upstream
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import Header
from metastore.thrift_server.wire.scanner import MalformedError


class Replacement(NamedTuple):
    """The method that replaced another."""

    method: str
    request: Callable[..., Any]
    """A function that converts the old method's arguments."""
    result: Callable[[Any], Any]
    """A function that converts the result to that of the old method."""


def _database(name: str | None) -> dict[str, str | None]:
    catalog, plain = split_catalog(name)
    return {"dbName": plain or "", "catName": None if catalog == DEFAULT_CATALOG else catalog}


def _table(db: str | None, name: str | None) -> Any:
    return ttypes.GetTableRequest(tblName=name or "", **_database(db))


def _tables(db: str | None, names: list[str] | None) -> Any:
    return ttypes.GetTablesRequest(tblNames=names, **_database(db))


REPLACED: Mapping[str, Replacement] = {
    "get_table": Replacement("get_table_req", _table, lambda result: result.table),
    "get_table_objects_by_name": Replacement("get_table_objects_by_name_req", _tables, lambda result: result.tables),
}


def is_unknown(answer: bytes | bytearray) -> bool:
    """Return True if an exception outside of the method's declaration reports an unknown method."""
    return b"Invalid method name" in answer


def newer_request(upstream: Upstream, header: Header, raw: bytes) -> bytes:
    """Translate a call to the newer method. Raises: MalformedError (its arguments, which were not decoded so far)."""
    codec, replacement = CODECS[header.method], REPLACED[header.method]
    try:
        arguments, _ = upstream.protocol.decode(codec, raw, header.end)
        request = replacement.request(*codec.read_arguments(arguments))
    except Exception as error:
        raise MalformedError(f"the arguments of {header.method} cannot be read: {error}") from error
    return upstream.written(replacement.method, request)


def older_answer(upstream: Upstream, header: Header, answer: bytes) -> bytes:
    """Translate an answer back to the call's own method."""
    codec, replacement, protocol = CODECS[header.method], REPLACED[header.method], upstream.protocol
    try:
        result = upstream.read(replacement.method, upstream.bare(answer))
    except TApplicationException as error:
        return protocol.application_exception(header.method, header.seqid, error)
    except tuple(codec.exceptions) as error:
        return protocol.declared_exception(codec, header.seqid, error)
    return protocol.head(codec, header.seqid) + protocol.body(codec, replacement.result(result))
