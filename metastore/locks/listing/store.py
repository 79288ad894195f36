"""Locks as the bytes that go to clients: PostgreSQL writes them, in Thrift's binary protocol (ADR 59).

What of a lock never changes is kept as bytes beside it (ADR 108); what does is encoded by each list.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from metastore.db import wires
from metastore.db.wires import SortedList, ThriftField, WireType
from metastore.ids import DatabaseName
from metastore.locks.rules import LockState, LockType
from metastore.locks.store import FILTER, filtered

_WAITS = f"state = '{LockState.WAITING}'"
_KEPT = 'coalesce(wire, lock_wire(ext_id, int_id, txn_id, db, "table", partition, type, "user", host, agent_info))'
_STRENGTH = wires.number(((kind, place) for place, kind in enumerate(LockType)), "type")
_ORDER = f"((CASE WHEN {_WAITS} THEN {len(LockType)} ELSE 0 END + {_STRENGTH})::bigint << 60) + ext_id, int_id"
"""Granted first, weaker types first, then as they asked: as one number, which is sorted in less time than four keys."""


def list_of(
    within: DatabaseName | None,
    table: str | None,
    partition: str | None,
    txn_id: int | None,
    states: Mapping[LockState, int],
) -> SortedList:
    """The locks that equal every filter: granted first, weaker types first.

    ``states``: the numbers of the stored states in the protocol.
    """
    wire = _wire(tuple(states.items()))
    return SortedList(wire, f"locks WHERE {FILTER}", _ORDER, filtered(within, table, partition, txn_id))


@cache
def _wire(states: Sequence[tuple[LockState, int]]) -> str:
    """Put together once: that takes 0.1 ms."""
    changing = [
        ThriftField(5, WireType.I32, wires.number(states, "state")),
        ThriftField(8, WireType.I64, f"coalesce({wires.millis('last_heartbeat_at')}, 0)"),
        ThriftField(9, WireType.I64, wires.millis("acquired_at"), optional=True),
        ThriftField(12, WireType.I32, "heartbeat_count"),
        # A lock that waits says for whom.
        ThriftField(14, WireType.I64, f"CASE WHEN {_WAITS} THEN blocked_by_ext_id END", optional=True),
        ThriftField(15, WireType.I64, f"CASE WHEN {_WAITS} THEN blocked_by_int_id END", optional=True),
    ]
    return f"{_KEPT} || {wires.struct(changing)}"
