"""Access of a client to a table, judged by the capabilities that it names, for get_tables_ext. It refuses nothing.

Rule: each kind of table has the capabilities that a reader and a writer need; a table may name its own instead.
Source: CAT-T10.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from metastore.acid.table_kinds import TableKind, table_kind
from metastore.catalog.model import TableType

UNFILTERED = "MANAGERAWMETADATA"
"""A client with this word gets no such list."""
_OWN_WORDS = "OBJCAPABILITIES"

_Words = frozenset[str]


class AccessType(IntEnum):
    """Access as on the wire. In Hive it is a sum of bits, of which only these values are used."""

    NONE = 1
    READ_ONLY = 2
    READ_WRITE = 8


class TableAccess(NamedTuple):
    """The access, and the capabilities that the client lacks to read and to write; None: none is needed."""

    type: AccessType
    reads: list[str] | None = None
    writes: list[str] | None = None


@dataclass(frozen=True)
class _Needs:
    """The capabilities that a kind of table needs: those named to clients, and the sets of which one is enough."""

    reads: tuple[str, ...] = ()
    enough_to_read: tuple[_Words, ...] = ()
    writes: tuple[str, ...] | None = None
    enough_to_write: tuple[_Words, ...] = ()


def _any_of(*words: str) -> tuple[_Words, ...]:
    return tuple(frozenset((word,)) for word in words)


def _transactional(kind: str) -> _Needs:
    reads, writes = ("CONNECTORREAD", f"{kind}READ"), (f"{kind}WRITE", "CONNECTORWRITE")
    told = (f"{kind}WRITE", "HIVEMANAGESTATS", "HIVECACHEINVALIDATE", "CONNECTORWRITE")
    return _Needs(reads, _any_of(*reads), told, _any_of(*writes))


_NOTHING: _Words = frozenset()
_FREE = _Needs(enough_to_write=(_NOTHING,))
_KINDS = {
    TableKind.FULL_ACID: _transactional("HIVEFULLACID"),
    TableKind.INSERT_ONLY: _transactional("HIVEMANAGEDINSERT"),
    TableKind.PLAIN: _FREE,
}
_EXTERNAL = _Needs(("EXTREAD",), _any_of("EXTREAD"), ("EXTWRITE",), (frozenset(("EXTREAD", "EXTWRITE")),))
_BUCKETED = _Needs((), (_NOTHING,), ("HIVEBUCKET2",), _any_of("HIVEBUCKET2"))
_VIEW = _Needs(("HIVESQL", "CONNECTORREAD"), _any_of("HIVESQL", "CONNECTORREAD"))
_MATERIALIZED = _Needs(("CONNECTORREAD", "HIVEMQT"), (frozenset(("CONNECTORREAD", "HIVEMQT")),))


def table_access(
    table_type: str, parameters: Mapping[str, str], said: Collection[str], *, bucketed: bool
) -> TableAccess:
    """Return the access of a client that names these capabilities."""
    needs, words = _needs(table_type, parameters, bucketed=bucketed), frozenset(said)
    if any(enough <= words for enough in needs.enough_to_write):
        return TableAccess(AccessType.READ_WRITE)
    writes = None if needs.writes is None else list(needs.writes)
    if any(enough <= words for enough in needs.enough_to_read):
        return TableAccess(AccessType.READ_ONLY, None, writes)
    return TableAccess(AccessType.NONE, list(needs.reads), writes)


def _needs(table_type: str, parameters: Mapping[str, str], *, bucketed: bool) -> _Needs:
    own = frozenset(filter(None, parameters.get(_OWN_WORDS, "").split(",")))
    match table_type:
        case TableType.EXTERNAL if own:
            writes = tuple(sorted(word for word in own if word.endswith("WRITE")))
            return _Needs((*_reads(own), "EXTREAD"), (), writes, (own,))
        case TableType.EXTERNAL:
            return _BUCKETED if bucketed else _EXTERNAL
        case TableType.VIEW if own:
            return _Needs(_reads(own), (own,))
        case TableType.VIEW:
            return _VIEW
        case TableType.MATERIALIZED_VIEW:
            return _MATERIALIZED
    return _FREE if own else _KINDS[table_kind(parameters)]


def _reads(own: _Words) -> tuple[str, ...]:
    return tuple(sorted(word for word in own if word.endswith("READ")))
