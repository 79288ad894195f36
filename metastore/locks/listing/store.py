"""Locks as the bytes that go to clients: PostgreSQL writes them, in Thrift's binary protocol (ADR 59)."""

from collections.abc import Sequence

from metastore.db.engine import Database
from metastore.ids import DatabaseName
from metastore.locks.rules import LockState, LockType
from metastore.locks.store import FILTER, filtered

_MILLIS = "floor(extract(epoch FROM {}) * 1000)::bigint"
_HEARTBEAT, _ACQUIRED = _MILLIS.format("last_heartbeat_at"), _MILLIS.format("acquired_at")
# A field is its type, its id and its value; see ShowLocksResponseElement. A lock that waits says for whom.
_WIRES = rf"""
    SELECT count(*)::int, coalesce(string_agg(
        '\x0a0001'::bytea || int8send(ext_id)
        || '\x0b0002'::bytea || thrift_text(db)
        || CASE WHEN "table" = '' THEN '' ELSE '\x0b0003'::bytea || thrift_text("table") END
        || CASE WHEN partition = '' THEN '' ELSE '\x0b0004'::bytea || thrift_text(partition) END
        || '\x080005'::bytea || int4send(array_position(%(states)s::text[], state))
        || '\x080006'::bytea || int4send(array_position(%(types)s::text[], type))
        || '\x0a0007'::bytea || int8send(txn_id)
        || '\x0a0008'::bytea || int8send(coalesce({_HEARTBEAT}, 0))
        || coalesce('\x0a0009'::bytea || int8send({_ACQUIRED}), '')
        || '\x0b000a'::bytea || thrift_text("user")
        || '\x0b000b'::bytea || thrift_text(host)
        || '\x08000c'::bytea || int4send(heartbeat_count)
        || '\x0b000d'::bytea || thrift_text(agent_info)
        || CASE WHEN state = '{LockState.WAITING}'
           THEN coalesce('\x0a000e'::bytea || int8send(blocked_by_ext_id)
                || '\x0a000f'::bytea || int8send(blocked_by_int_id), '')
           ELSE '' END
        || '\x0a0010'::bytea || int8send(int_id) || '\x00'::bytea,
        '' ORDER BY state = '{LockState.WAITING}', array_position(%(strengths)s::text[], type), ext_id, int_id), '')
      FROM locks WHERE {FILTER}"""


def select_wires(
    db: Database,
    within: DatabaseName | None,
    table: str | None,
    partition: str | None,
    txn_id: int | None,
    states: Sequence[str],
    types: Sequence[str],
) -> tuple[int, bytes]:
    """How many locks equal every filter that is given, and their bytes: granted first, weaker types first.

    ``states``, ``types``: each at the place that is its number in the protocol, from 1 on.
    """
    [(count, wires)] = db.once(
        _WIRES,
        {
            **filtered(within, table, partition, txn_id),
            "states": list(states),
            "types": list(types),
            "strengths": list(LockType),
        },
        durable=False,
    )
    return count, bytes(wires)
