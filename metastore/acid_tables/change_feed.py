"""Changes of rows between two points of a table's history, and the check that its files still tell all of them.

Rules: the changes between two points are those that the later one sees and the earlier one does not: rows that were
inserted, and rows that were deleted, as they had been. They are final: no write id among them may still be committed. A
base that a compaction made holds what is left of its write ids, so it may hide none of the changes; one of an overwrite
is a change itself, which deletes all that was there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from metastore.acid.names import BaseName, DeltaName, parse_directory
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid.state import NotEnoughHistoryError
from metastore.acid_tables.appended import settled
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.time_travel import as_of_write_id
from metastore.errors import InvalidOperationError

_NOTHING = -1
"""The write id before 0, which is that of files from before the table was transactional."""


@dataclass(frozen=True)
class ChangeRange:
    """The changes that ``until`` sees and ``before`` does not."""

    before: ValidWriteIdList
    until: ValidWriteIdList

    @property
    def after(self) -> int:
        """The last write id before the changes: they have higher ones, or are among ``late``."""
        return self.before.high_watermark

    @property
    def late(self) -> tuple[int, ...]:
        """The write ids up to ``after`` that were committed only after the beginning."""
        return tuple(number for number in self.before.invalid if number <= self.after and self.until.is_valid(number))

    def has_any(self, low: int, high: int) -> bool:
        """Return True if the changes may include a write id from ``low`` to ``high``, both included."""
        is_new = max(low, self.after + 1) <= min(high, self.until.high_watermark)
        return is_new or any(low <= number <= high for number in self.late)


def between(write_ids: ValidWriteIdList, first: int, last: int | None) -> ChangeRange:
    """Return the changes of the write ids from ``first`` to ``last``, both included; None: all that are final by now.

    Raises: InvalidOperationError for write ids that the table has not allocated, or that may still be committed.
    """
    if last is None:
        last = settled(write_ids, first - 1, None)
    if first > last + 1:
        raise InvalidOperationError(
            f"The changes of {write_ids.table} are read from one write id to a later one, not from {first} to {last}."
        )
    until = as_of_write_id(write_ids, last)
    if unsure := [number for number in until.open if number >= first]:
        raise InvalidOperationError(
            f"The write id {unsure[0]} of {write_ids.table} belongs to a transaction that is still open, so the "
            f"changes up to {last} are not final: leave the end out, or wait. `metastore show transactions` says who "
            "has it."
        )
    return ChangeRange(_before(write_ids, first), until)


def _before(write_ids: ValidWriteIdList, first: int) -> ValidWriteIdList:
    if first > 0:
        return as_of_write_id(write_ids, first - 1)
    return ValidWriteIdList(write_ids.table, _NOTHING, None, (), frozenset())


def require_changes(directories: Iterable[Directory], wanted: ChangeRange) -> None:
    """Raise NotEnoughHistoryError if a compaction has made a base of the changes, which loses single changes."""
    for directory in directories:
        base = directory.state.base
        if base is not None and base.compacted and wanted.has_any(0, base.name.write_id):
            raise _lost(directory, "compacted", base.name.write_id)


def overwritten_by(directory: Directory, wanted: ChangeRange) -> int | None:
    """Return the write id among the changes that replaced all rows of a directory.

    It deleted all earlier rows.
    """
    base = directory.state.base
    if base is None or base.compacted or not wanted.has_any(base.name.write_id, base.name.write_id):
        return None
    return base.name.write_id


def require_no_overwrite(directories: Iterable[Directory], wanted: ChangeRange) -> None:
    """Raise NotEnoughHistoryError if the changes have replaced all rows of a directory."""
    for directory in directories:
        if (write_id := overwritten_by(directory, wanted)) is not None:
            raise _lost(directory, "overwritten", write_id)


def _lost(directory: Directory, how: str, write_id: int) -> NotEnoughHistoryError:
    return NotEnoughHistoryError(
        f"{directory.location} was {how} up to write id {write_id}: changes can be read after that write id only, so "
        f"begin with write id {write_id + 1}"
    )


def require_ids(directories: Iterable[Directory]) -> None:
    """Raise InvalidOperationError if rows have no ids."""
    for directory in directories:
        if unnamed := directory.sources.unnamed:
            raise InvalidOperationError(
                f"{unnamed[0]} has no bucket number in its name, so its rows have no ids and no write id: rename it "
                "like 000000_0."
            )


def can_have_deletes(directory: Directory, wanted: ChangeRange) -> bool:
    """Return True if the changes can have deleted rows of a directory: then all its files have to be read."""
    return any(
        wanted.has_any(delta.name.min_write_id, delta.name.max_write_id) for delta in directory.state.delete_deltas
    )


def can_have_inserts(directory: Directory, path: str, wanted: ChangeRange) -> bool:
    """Return True if a file of a directory can have rows that the changes inserted."""
    match parse_directory(path.removeprefix(f"{directory.location}/").partition("/")[0]):
        case BaseName(write_id=write_id):
            return wanted.has_any(0, write_id)
        case DeltaName(min_write_id=low, max_write_id=high):
            return wanted.has_any(low, high)
    return wanted.has_any(0, 0)
