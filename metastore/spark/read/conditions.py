"""Conditions, as SQL, for events that count, in files with the event columns: for reads and for the compaction."""

from collections.abc import Sequence

from metastore.acid.events import DELETE_EVENT
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import AcidState
from metastore.acid_tables.visibility import visibility


def visible(
    states: Sequence[AcidState], write_ids: ValidWriteIdList, *, deletes: bool, operation: str, by: str
) -> list[str]:
    """Return the conditions for an event to count that directory names do not show: SQL, all must hold.

    ``operation`` and ``by``: the columns with the kind of an event and with its writer's write id.
    """
    rule = visibility(states, write_ids, deletes=deletes)
    conditions = [f"{operation} {'=' if deletes else '<'} {DELETE_EVENT}"] if rule.by_operation else []
    if rule.high_watermark is not None:
        conditions.append(f"{by} <= {rule.high_watermark}L")
    if rule.hidden:
        conditions.append(f"{by} NOT IN ({', '.join(f'{write_id}L' for write_id in rule.hidden)})")
    return conditions
