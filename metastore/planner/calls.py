"""The table of the planner's calls, by name."""

from collections.abc import Mapping

from metastore.planner import (
    alterations,
    change_feed,
    constraints,
    definitions,
    partitions,
    procedures,
    replacing,
    scans,
    stream_reads,
    tables,
    transactions,
    writes,
)
from metastore.planner.call import Method

CALLS: Mapping[str, Method] = {
    "table": Method(tables.table),
    "partitions": Method(tables.partitions, is_work=True),
    "begin": Method(transactions.begin),
    "lock": Method(transactions.lock),
    "snapshot": Method(transactions.snapshot),
    "heartbeat": Method(transactions.heartbeat),
    "commit": Method(transactions.commit),
    "abort": Method(transactions.abort),
    "batch": Method(transactions.has_batch),
    "write": Method(writes.write),
    "publish": Method(writes.publish, is_work=True),
    "announce": Method(writes.announce),
    "plan": Method(scans.plan, is_work=True),
    "settled": Method(stream_reads.settled),
    "appended": Method(stream_reads.appended, is_work=True),
    "changes": Method(change_feed.changes, is_work=True),
    "create": Method(definitions.create),
    "replacement": Method(replacing.replacement),
    "create_like": Method(definitions.create_like),
    "drop": Method(definitions.drop),
    "rename": Method(definitions.rename),
    "alter": Method(alterations.alter),
    "constrain": Method(constraints.constrain),
    "can_widen": Method(alterations.can_widen),
    "add_partitions": Method(partitions.add_partitions),
    "drop_partitions": Method(partitions.drop_partitions),
    "rename_partition": Method(partitions.rename_partition),
    "procedures": Method(procedures.procedures),
    "procedure": Method(procedures.procedure),
}
