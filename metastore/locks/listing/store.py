"""Locks as the bytes that go to clients: PostgreSQL writes them, in Thrift's binary protocol (ADR 59)."""

from collections.abc import Mapping, Sequence
from functools import cache

from metastore.db import wires
from metastore.db.engine import Database
from metastore.db.wires import Field, Kind
from metastore.ids import DatabaseName
from metastore.locks.rules import LockState, LockType
from metastore.locks.store import FILTER, filtered

_WAITS = f"state = '{LockState.WAITING}'"


def select_wires(
    db: Database,
    within: DatabaseName | None,
    table: str | None,
    partition: str | None,
    txn_id: int | None,
    states: Mapping[LockState, int],
    types: Mapping[LockType, int],
) -> tuple[int, bytes]:
    """How many locks equal every filter, and their bytes: granted first, weaker types first.

    ``states``, ``types``: the numbers of the stored texts in the protocol.
    """
    count, encoded = db.binary(
        _query(tuple(states.items()), tuple(types.items())), filtered(within, table, partition, txn_id)
    )
    return int.from_bytes(count), encoded


@cache
def _query(states: Sequence[tuple[LockState, int]], types: Sequence[tuple[LockType, int]]) -> str:
    """The query, put together once: that takes 0.1 ms."""
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
    strengths = wires.number(((kind, place) for place, kind in enumerate(LockType)), "type")
    return f"SELECT {wires.listed(shape, f'{_WAITS}, {strengths}, ext_id, int_id')} FROM locks WHERE {FILTER}"
