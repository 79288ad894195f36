"""Results of listings of tables and partitions, and the check that they still hold.

Rule: a kept listing may show that nothing is due, and never that a compaction is: a compaction is queued only after a
new listing. It holds until a write id is committed above those that had ended at the listing. Ids decide and not times:
a write that an open transaction hid from the listing may be older than it. Compactions have no such id, so a margin is
left for one whose commit was in progress.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from metastore.acid.names import BASE_PREFIX
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory
from metastore.compaction.queue.rules.requests import Entity

COMMIT_MARGIN = timedelta(minutes=2)
"""A commit is stamped when it begins and visible when it ends; no statement may take longer than this."""


class Measured(NamedTuple):
    """The amounts to compact. ``leftover_base``: an older base that only a compaction's clean-up would remove."""

    base_size: int = 0
    delta_size: int = 0
    deltas: int = 0
    delete_deltas: int = 0
    """The number of delete deltas among the deltas."""
    has_originals: bool = False
    has_raw_deltas: bool = False
    leftover_base: bool = False


class MeasuredListing(NamedTuple):
    """The measures of a listing. ``high_watermark``: every write id up to it had ended, and its files were listed."""

    entity: Entity
    location: str
    listed_at: datetime
    high_watermark: int
    measured: Measured


class StoredInventory(NamedTuple):
    """The last listing and what is known since. ``written``: the highest write id that was committed; 0: none is known.

    ``compacted_at``: the last commit or cleaning of a compaction; None: never.
    """

    listing: MeasuredListing
    written: int
    compacted_at: datetime | None

    def holds(self, location: str, now: datetime, max_age: timedelta) -> bool:
        """Return True if a new listing of this place would find the same, by all that is known."""
        listing = self.listing
        return (
            listing.location == location
            and self.written <= listing.high_watermark
            and (self.compacted_at is None or self.compacted_at < listing.listed_at - COMMIT_MARGIN)
            and listing.listed_at <= now < listing.listed_at + max_age
        )


def measure(state: AcidState) -> Measured:
    """Return sizes and counts of the files that a reader of this state reads; only selected directories count."""
    base = _size(state.base) if state.base else sum(file.size for file in state.originals)
    return Measured(
        base_size=base,
        delta_size=sum(_size(delta) for delta in state.deltas),
        deltas=len(state.deltas),
        delete_deltas=len(state.delete_deltas),
        has_originals=bool(state.originals),
        has_raw_deltas=any(delta.may_be_raw for delta in state.deltas),
        leftover_base=any(path.startswith(BASE_PREFIX) for path in state.obsolete),
    )


def _size(directory: BaseDirectory | DeltaDirectory) -> int:
    return sum(file.size for file in directory.files)
