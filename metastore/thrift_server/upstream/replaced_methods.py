"""Methods that Hive 4 no longer has, in the words of those that took their place, and the answers back (ADR 50).

Rule: only what the newer words say without loss. It is decoded and encoded anew, which nothing else is.
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
    """The method that took the place of another."""

    method: str
    request: Callable[..., Any]
    """Of the old method's arguments."""
    result: Callable[[Any], Any]
    """What the old method answered."""


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
    """Return True if an exception outside of the method's declaration says that there is no such method."""
    return b"Invalid method name" in answer


def newer_request(upstream: Upstream, header: Header, raw: bytes) -> bytes:
    """Return the call in the newer words. Raises: MalformedError (its arguments, which nobody has looked at so far)."""
    codec, replacement = CODECS[header.method], REPLACED[header.method]
    try:
        arguments, _ = upstream.protocol.decode(codec, raw, header.end)
        request = replacement.request(*codec.read_arguments(arguments))
    except Exception as error:
        raise MalformedError(f"the arguments of {header.method} cannot be read: {error}") from error
    return upstream.written(replacement.method, request)


def older_answer(upstream: Upstream, header: Header, answer: bytes) -> bytes:
    """Return the answer as the call's own method gives it."""
    codec, replacement, protocol = CODECS[header.method], REPLACED[header.method], upstream.protocol
    try:
        result = upstream.read(replacement.method, upstream.bare(answer))
    except TApplicationException as error:
        return protocol.application_exception(header.method, header.seqid, error)
    except tuple(codec.exceptions) as error:
        return protocol.declared_exception(codec, header.seqid, error)
    return protocol.head(codec, header.seqid) + protocol.body(codec, replacement.result(result))
