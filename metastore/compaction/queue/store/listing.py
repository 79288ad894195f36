"""SHOW COMPACTIONS as the bytes that go to clients: PostgreSQL writes them (ADR 59)."""

from metastore.compaction.queue.rules.requests import OLD_CLIENT_TYPES, CompactionType
from metastore.compaction.queue.store.requests import Filter, shown
from metastore.db import wires
from metastore.db.wires import Field, Kind, SortedList

_SHAPE = [
    Field(1, Kind.TEXT, "db"),
    Field(2, Kind.TEXT, '"table"'),
    Field(3, Kind.TEXT, "nullif(partition, '')", optional=True),
    Field(4, Kind.I32, wires.number(((kind, kind.number) for kind in CompactionType), "type")),
    Field(5, Kind.TEXT, "replace(state, '_', ' ')"),
    Field(6, Kind.TEXT, "worker_id", optional=True),
    Field(7, Kind.I64, f"coalesce({wires.millis('started_at')}, 0)"),
    Field(8, Kind.TEXT, "run_as", optional=True),
    Field(9, Kind.I64, "coalesce(highest_write_id, 0)"),
    Field(10, Kind.TEXT, "meta_info", optional=True),
    Field(11, Kind.I64, wires.millis("ended_at"), optional=True),
    Field(12, Kind.TEXT, "coalesce(nullif(hadoop_job_id, ''), 'None')"),
    Field(13, Kind.I64, "id"),
    Field(14, Kind.TEXT, "error_message", optional=True),
    Field(15, Kind.I64, wires.millis("enqueued_at"), optional=True),
    Field(16, Kind.TEXT, "worker_version", optional=True),
    Field(17, Kind.TEXT, "initiator_id", optional=True),
    Field(18, Kind.TEXT, "initiator_version", optional=True),
    Field(19, Kind.I64, wires.millis("cleaner_started_at"), optional=True),
    Field(20, Kind.TEXT, "coalesce(nullif(pool, ''), 'default')"),
    Field(21, Kind.I64, "coalesce(next_txn_id, 0)"),
    Field(22, Kind.I64, "coalesce(txn_id, 0)"),
    Field(23, Kind.I64, f"coalesce({wires.millis('committed_at')}, 0)"),
    Field(24, Kind.I64, "coalesce(highest_write_id, 0)"),
]
_WIRE = wires.struct(_SHAPE)


def list_of(wanted: Filter, *, is_old_client: bool) -> SortedList:
    """What is wanted, of the queue and of the history; an old client does not know every type."""
    rows, order, values = shown(wanted)
    known = [str(kind) for kind in OLD_CLIENT_TYPES]
    return SortedList(
        _WIRE, f"({rows}) AS shown WHERE (%s OR type = ANY(%s))", order, [*values, not is_old_client, known]
    )
