"""Locks as the bytes that go to clients: PostgreSQL writes them, in Thrift's binary protocol (ADR 59)."""

from collections.abc import Sequence

from metastore.db.engine import Database
from metastore.db.statements import Statements
from metastore.ids import DatabaseName
from metastore.locks.rules import LockState, LockType
from metastore.locks.store import FILTER, filtered

_SQL = Statements(__file__)

_MILLIS = "floor(extract(epoch FROM {}) * 1000)::bigint"
_HEARTBEAT, _ACQUIRED = _MILLIS.format("last_heartbeat_at"), _MILLIS.format("acquired_at")
_WIRES = _SQL.text(
    "select_wires", heartbeat=_HEARTBEAT, acquired_at=_ACQUIRED, waiting=LockState.WAITING, filter=FILTER
)


def select_wires(
    db: Database,
    within: DatabaseName | None,
    table: str | None,
    partition: str | None,
    txn_id: int | None,
    states: Sequence[str],
    types: Sequence[str],
) -> tuple[int, bytes]:
    """How many locks equal every filter, and their bytes: granted first, weaker types first.

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
