"""The rows that transactions have added to a table, in the order of their write ids, as streams read them.

Rules: a stream goes up to the first write id that may still be committed, never past it, and a transaction is read
whole. It reads tables to which rows are only added: the names of deltas tell which transactions changed rows, and for
compacted directories only the metastore's record does. Rows keep their write id in a base, so a compaction hides none
of them; only rows that were deleted since are missing there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from metastore.acid.names import BaseName, DeltaName, parse_directory
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import NotEnoughHistoryError
from metastore.acid_tables.listing import Directory
from metastore.errors import InvalidOperationError


class Range(NamedTuple):
    """The write ids above ``after``, up to ``up_to``."""

    after: int
    up_to: int

    def overlap(self, low: int, high: int) -> range:
        """Return the write ids of another range, ends included, that are in this one."""
        return range(max(low, self.after + 1), min(high, self.up_to) + 1)


@dataclass(frozen=True)
class Changes:
    """Write ids whose transactions changed existing rows (``certain``) or may have done so (``unclear``)."""

    certain: frozenset[int]
    unclear: frozenset[int]


def settled(write_ids: ValidWriteIdList, after: int, most: int | None) -> int:
    """Return the write id up to which a stream may read behind ``after``; ``most``: at most so many transactions."""
    end = max(after, min([number - 1 for number in write_ids.open] or [write_ids.high_watermark]))
    if most is None:
        return end
    committed = (number for number in range(after + 1, end + 1) if not write_ids.is_aborted(number))
    for count, write_id in enumerate(committed, start=1):
        if count == most:
            return write_id
    return end


def changes(directories: Iterable[Directory], wanted: Range, write_ids: ValidWriteIdList) -> Changes:
    """Return the changes that the names of bases and deltas show."""
    certain: set[int] = set()
    unclear: set[int] = set()
    for state in (directory.state for directory in directories):
        for delta in state.delete_deltas:
            touched = wanted.overlap(delta.name.min_write_id, delta.name.max_write_id)
            (certain if delta.name.min_write_id == delta.name.max_write_id else unclear).update(touched)
        if state.base is not None and state.base.compacted:
            unclear.update(wanted.overlap(1, state.base.name.write_id))
        elif state.base is not None:  # An overwrite wrote this base and removed all earlier rows.
            certain.update(wanted.overlap(state.base.name.write_id, state.base.name.write_id))
    aborted = write_ids.aborted
    return Changes(frozenset(certain - aborted), frozenset(unclear - certain - aborted))


def changed(name: str, changes: Changes, record: Mapping[int, bool], *, skips: bool) -> frozenset[int]:
    """Return the write ids whose rows a stream leaves out.

    ``record``: tells for each write id if its transaction changed rows.
    Raises: InvalidOperationError if rows were changed and the stream does not skip such transactions;
    NotEnoughHistoryError.
    """
    unknown = changes.unclear - record.keys()
    if unknown:
        raise NotEnoughHistoryError(
            f"{name} was compacted, and it is not on record any more whether the transaction with write id "
            f"{min(unknown)} only added rows: start the stream with a new checkpoint. Without startingVersion it "
            "begins with all rows that are there"
        )
    all_changed = changes.certain.union(write_id for write_id in changes.unclear if record[write_id])
    if all_changed and not skips:
        raise InvalidOperationError(
            f"The transaction with write id {min(all_changed)} updated, deleted, overwrote or rebalanced rows of {name}"
            ", and a stream reads rows that are added: set the option skipChangeCommits to true to leave out what such "
            "transactions did."
        )
    return all_changed


def is_in(location: str, path: str, wanted: Range) -> bool:
    """Return True if a file of a directory can have rows of these write ids."""
    match parse_directory(path.removeprefix(f"{location}/").partition("/")[0]):
        case BaseName(write_id=write_id):
            return write_id > wanted.after
        case DeltaName(min_write_id=low, max_write_id=high):
            return bool(wanted.overlap(low, high))
    return wanted.after < 0 <= wanted.up_to
