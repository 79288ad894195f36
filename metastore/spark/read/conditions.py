"""Which events of files with the event columns count, as SQL: for the reader and for the compaction."""

from collections.abc import Sequence

from metastore.acid.events import DELETE_EVENT
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import AcidState
from metastore.acid_tables.visibility import visibility


def visible(
    states: Sequence[AcidState], write_ids: ValidWriteIdList, *, deletes: bool, operation: str, by: str
) -> list[str]:
    """What an event must meet to count, beyond what the names of the directories tell already.

    ``operation`` and ``by``: what the columns with the kind of an event and with its writer's write id are called here.
    """
    told = visibility(states, write_ids, deletes=deletes)
    conditions = [f"{operation} {'=' if deletes else '<'} {DELETE_EVENT}"] if told.by_operation else []
    if told.high_watermark is not None:
        conditions.append(f"{by} <= {told.high_watermark}L")
    if told.hidden:
        conditions.append(f"{by} NOT IN ({', '.join(f'{one}L' for one in told.hidden)})")
    return conditions
