"""Which events of files with the event columns count, as SQL: for the reader and for the compaction."""

from collections.abc import Sequence

from metastore.acid.events import DELETE_EVENT
from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import AcidState, hidden_write_ids


def visible(
    states: Sequence[AcidState], write_ids: ValidWriteIdList, *, deletes: bool, operation: str, by: str
) -> list[str]:
    """What an event must meet to count, beyond what the names of the directories tell already.

    ``operation`` and ``by``: what the columns with the kind of an event and with its writer's write id are called here.
    An update event (operation 1) is found only in bases that Hive before 3 compacted, where it is its row's only event.
    """
    if deletes:
        conditions = [f"{operation} = {DELETE_EVENT}"]
    elif all(part.is_marked for one in states for part in (one.base, *one.insert_deltas) if part):
        conditions = []
    else:
        conditions = [f"{operation} < {DELETE_EVENT}"]
    deltas = [part for one in states for part in (one.delete_deltas if deletes else one.insert_deltas)]
    if any(delta.visible is RangeState.SOME for delta in deltas):
        conditions.append(f"{by} <= {write_ids.high_watermark}L")
    if hidden := hidden_write_ids(deltas, write_ids):
        conditions.append(f"{by} NOT IN ({', '.join(f'{one}L' for one in hidden)})")
    return conditions
