"""Conditions by which events of files with the event columns count, for readers and for compactions."""

from collections.abc import Sequence
from typing import NamedTuple

from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import AcidState, hidden_write_ids


class Visibility(NamedTuple):
    """The conditions for an event to count, beyond those in the names of the directories.

    An update event (operation 1) occurs only in bases that Hive before 3 compacted, where it is its row's only event.
    """

    by_operation: bool
    """Whether the operation matters: among inserts all but delete events count, among deletes only delete events."""
    high_watermark: int | None
    """The highest write id of a writer whose events count; None: all count."""
    hidden: tuple[int, ...]
    """Writers' write ids whose events do not count."""


def visibility(states: Sequence[AcidState], write_ids: ValidWriteIdList, *, deletes: bool) -> Visibility:
    """Return the conditions on the insert events of directories, or with ``deletes`` on their delete events."""
    is_marked = all(part.is_marked for state in states for part in (state.base, *state.insert_deltas) if part)
    deltas = [part for state in states for part in (state.delete_deltas if deletes else state.insert_deltas)]
    is_part = any(delta.visible is RangeState.SOME for delta in deltas)
    return Visibility(
        deletes or not is_marked,
        write_ids.high_watermark if is_part else None,
        tuple(hidden_write_ids(deltas, write_ids)),
    )
