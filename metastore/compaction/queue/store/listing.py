"""SHOW COMPACTIONS as the bytes that clients get: PostgreSQL writes them (ADR 59)."""

from metastore.compaction.queue.rules.requests import OLD_CLIENT_TYPES, CompactionType
from metastore.compaction.queue.store.requests import Filter, shown
from metastore.db import wires
from metastore.db.wires import SortedList, ThriftField, WireType

_SHAPE = [
    ThriftField(1, WireType.TEXT, "db"),
    ThriftField(2, WireType.TEXT, '"table"'),
    ThriftField(3, WireType.TEXT, "nullif(partition, '')", optional=True),
    ThriftField(4, WireType.I32, wires.number(((kind, kind.number) for kind in CompactionType), "type")),
    ThriftField(5, WireType.TEXT, "replace(state, '_', ' ')"),
    ThriftField(6, WireType.TEXT, "worker_id", optional=True),
    ThriftField(7, WireType.I64, f"coalesce({wires.millis('started_at')}, 0)"),
    ThriftField(8, WireType.TEXT, "run_as", optional=True),
    ThriftField(9, WireType.I64, "coalesce(highest_write_id, 0)"),
    ThriftField(10, WireType.TEXT, "meta_info", optional=True),
    ThriftField(11, WireType.I64, wires.millis("ended_at"), optional=True),
    ThriftField(12, WireType.TEXT, "coalesce(nullif(hadoop_job_id, ''), 'None')"),
    ThriftField(13, WireType.I64, "id"),
    ThriftField(14, WireType.TEXT, "error_message", optional=True),
    ThriftField(15, WireType.I64, wires.millis("enqueued_at"), optional=True),
    ThriftField(16, WireType.TEXT, "worker_version", optional=True),
    ThriftField(17, WireType.TEXT, "initiator_id", optional=True),
    ThriftField(18, WireType.TEXT, "initiator_version", optional=True),
    ThriftField(19, WireType.I64, wires.millis("cleaner_started_at"), optional=True),
    ThriftField(20, WireType.TEXT, "coalesce(nullif(pool, ''), 'default')"),
    ThriftField(21, WireType.I64, "coalesce(next_txn_id, 0)"),
    ThriftField(22, WireType.I64, "coalesce(txn_id, 0)"),
    ThriftField(23, WireType.I64, f"coalesce({wires.millis('committed_at')}, 0)"),
    ThriftField(24, WireType.I64, "coalesce(highest_write_id, 0)"),
]
_WIRE = wires.struct(_SHAPE)


def list_of(wanted: Filter, *, is_old_client: bool) -> SortedList:
    """What is wanted, of the queue and of the history; an old client does not know every type."""
    rows, order, values = shown(wanted)
    known = [str(kind) for kind in OLD_CLIENT_TYPES]
    return SortedList(
        _WIRE, f"({rows}) AS shown WHERE (%s OR type = ANY(%s))", order, [*values, not is_old_client, known]
    )
