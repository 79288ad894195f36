"""Past snapshots of tables: the check that all files of a point in the past are still there.

Rule: an answer is right, or refused. The Cleaner removes files that a base has replaced, directory by directory, and a
removed directory leaves no trace in the listing. So a directory is not read once the Cleaner has begun behind a base
that the past does not see.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from metastore.acid.names import BaseName, parse_directory
from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import NotEnoughHistoryError
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.listing import Directory
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.partition_names import canonical

AsOf: TypeAlias = int | datetime
"""A point in a table's past: a write id, or an instant."""


def as_of_write_id(write_ids: ValidWriteIdList, write_id: int) -> ValidWriteIdList:
    """Return the list of a reader at ``write_id``, if all transactions that are finished now were finished then.

    Raises: InvalidOperationError for a write id above the list's high-water mark, or below 0.
    """
    if write_id < 0 or write_id > write_ids.high_watermark:
        raise InvalidOperationError(
            f"{write_ids.table} has write ids up to {write_ids.high_watermark}; as_of_write_id="
            f"{write_id} is not among them."
        )
    kept = tuple(other for other in write_ids.invalid if other <= write_id)
    open_ids = [other for other in kept if other not in write_ids.aborted]
    return ValidWriteIdList(
        write_ids.table,
        write_id,
        min(open_ids, default=None),
        kept,
        frozenset(other for other in kept if other in write_ids.aborted),
    )


def require_kept(
    files: Files,
    kind: TableKind,
    directories: Iterable[Directory],
    write_ids: ValidWriteIdList,
    cleaned: dict[str, int],
) -> None:
    """Raise NotEnoughHistoryError for directories of a past snapshot that may not be complete any more.

    ``cleaned``: by partition name ("" for a table without partitions) the highest write id up to which the Cleaner has
    removed files. The caller asks for it after it has listed the directories.
    """
    for directory in directories:
        if kind is TableKind.INSERT_ONLY:
            _require_whole_deltas(directory, write_ids)
        up_to = cleaned.get(canonical(directory.partition), 0)
        if sees_all(write_ids, up_to):
            continue
        seen = directory.state.base.name.write_id if directory.state.base else 0
        if replaced_by := [base for base in bases(files, directory.location) if seen < base.write_id <= up_to]:
            raise NotEnoughHistoryError(
                f"{directory.location} was compacted or overwritten since then ({min(replaced_by)}), and what that "
                "replaced has been cleaned up, or is just being"
            )


def sees_all(write_ids: ValidWriteIdList, up_to: int) -> bool:
    """Return True if a list sees whatever was committed up to a write id."""
    hidden = [write_id for write_id in write_ids.invalid if write_id <= up_to and write_id not in write_ids.aborted]
    return up_to <= write_ids.high_watermark and not hidden


def _require_whole_deltas(directory: Directory, write_ids: ValidWriteIdList) -> None:
    """Require whole deltas: rows of insert-only files have no write id, so a delta is read whole, or not at all."""
    for delta in directory.state.deltas:
        if delta.visible is RangeState.SOME and not sees_all(write_ids, delta.name.max_write_id):
            raise NotEnoughHistoryError(f"{directory.location}/{delta.path} holds rows from before and from after then")


def bases(files: Files, location: str) -> Sequence[BaseName]:
    """Return the bases of a directory, visible to any reader."""
    names = {entry.path.partition("/")[0] for entry in files.listing(location)}
    return [
        parsed for name in names if name.startswith("base_") and isinstance(parsed := parse_directory(name), BaseName)
    ]
