"""Which events of files with the event columns count: for readers and for compactions."""

from collections.abc import Sequence
from typing import NamedTuple

from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import AcidState, hidden_write_ids


class Visibility(NamedTuple):
    """What an event must meet to count, beyond what the names of the directories tell already.

    An update event (operation 1) is met only in bases that Hive before 3 compacted, where it is its row's only event.
    """

    by_operation: bool
    """Whether the operation has to be looked at: of inserts anything but a delete event counts, of deletes only one."""
    high_watermark: int | None
    """The highest write id of a writer whose events count; None: no need to look."""
    hidden: tuple[int, ...]
    """Writers' write ids whose events do not count."""


def visibility(states: Sequence[AcidState], write_ids: ValidWriteIdList, *, deletes: bool) -> Visibility:
    """Of the insert events of directories, or of their delete events."""
    is_marked = all(part.is_marked for one in states for part in (one.base, *one.insert_deltas) if part)
    deltas = [part for one in states for part in (one.delete_deltas if deletes else one.insert_deltas)]
    is_part = any(delta.visible is RangeState.SOME for delta in deltas)
    return Visibility(
        deletes or not is_marked,
        write_ids.high_watermark if is_part else None,
        tuple(hidden_write_ids(deltas, write_ids)),
    )
