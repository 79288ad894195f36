"""Locks as the bytes that go to clients: PostgreSQL writes them, in Thrift's binary protocol (ADR 59)."""

from collections.abc import Mapping, Sequence
from functools import cache

from metastore.db import wires
from metastore.db.wires import Field, Kind, SortedList
from metastore.ids import DatabaseName
from metastore.locks.rules import LockState, LockType
from metastore.locks.store import FILTER, filtered

_WAITS = f"state = '{LockState.WAITING}'"
_STRENGTH = wires.number(((kind, place) for place, kind in enumerate(LockType)), "type")
_ORDER = f"((CASE WHEN {_WAITS} THEN {len(LockType)} ELSE 0 END + {_STRENGTH})::bigint << 60) + ext_id, int_id"
"""Granted first, weaker types first, then as they asked: as one number, which is sorted in less time than four keys."""


def list_of(
    within: DatabaseName | None,
    table: str | None,
    partition: str | None,
    txn_id: int | None,
    states: Mapping[LockState, int],
    types: Mapping[LockType, int],
) -> SortedList:
    """The locks that equal every filter: granted first, weaker types first.

    ``states``, ``types``: the numbers of the stored texts in the protocol.
    """
    wire = _wire(tuple(states.items()), tuple(types.items()))
    return SortedList(wire, f"locks WHERE {FILTER}", _ORDER, filtered(within, table, partition, txn_id))


@cache
def _wire(states: Sequence[tuple[LockState, int]], types: Sequence[tuple[LockType, int]]) -> str:
    """Put together once: that takes 0.1 ms."""
    shape = [
        Field(1, Kind.I64, "ext_id"),
        Field(2, Kind.TEXT, "db"),
        Field(3, Kind.TEXT, "nullif(\"table\", '')", optional=True),
        Field(4, Kind.TEXT, "nullif(partition, '')", optional=True),
        Field(5, Kind.I32, wires.number(states, "state")),
        Field(6, Kind.I32, wires.number(types, "type")),
        Field(7, Kind.I64, "txn_id"),
        Field(8, Kind.I64, f"coalesce({wires.millis('last_heartbeat_at')}, 0)"),
        Field(9, Kind.I64, wires.millis("acquired_at"), optional=True),
        Field(10, Kind.TEXT, '"user"'),
        Field(11, Kind.TEXT, "host"),
        Field(12, Kind.I32, "heartbeat_count"),
        Field(13, Kind.TEXT, "agent_info"),
        # A lock that waits says for whom.
        Field(14, Kind.I64, f"CASE WHEN {_WAITS} THEN blocked_by_ext_id END", optional=True),
        Field(15, Kind.I64, f"CASE WHEN {_WAITS} THEN blocked_by_int_id END", optional=True),
        Field(16, Kind.I64, "int_id"),
    ]
    return wires.struct(shape)
