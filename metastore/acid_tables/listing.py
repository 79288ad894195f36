"""ACID directories of a table, each with its sources in a snapshot: a single recursive listing per table."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from metastore.acid.names import BaseName, is_hidden, parse_directory
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, Listed, ListedFile, NotEnoughHistoryError, acid_state
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.sources import Sources, acid_sources, insert_only_sources
from metastore.acid_tables.table import AcidTable, FileFormat
from metastore.files import FileEntry, Files

_LISTED_ALONE = 32


@dataclass(frozen=True)
class Directory:
    """An ACID directory: a partition's location, or an unpartitioned table's; ``values`` are None for the default."""

    partition: str
    values: tuple[str | None, ...]
    location: str
    state: AcidState
    sources: Sources
    stored_as: FileFormat | None = None
    """How its files are stored; None: as the table's."""


def acid_directories(
    files: Files,
    table: AcidTable,
    places: Sequence[PartitionPlace],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    *,
    is_past: bool = False,
    is_part: bool = False,
) -> list[Directory]:
    """Return the directories of a table as the snapshot sees them; an unpartitioned table is a single place.

    ``is_past``: the snapshot is of the past, and its files were not protected from the Cleaner. ``is_part``: the table
    has more places than these.
    Raises: NotEnoughHistoryError when the snapshot's files are gone, InvalidOperationError for files that only Hive
        can read.
    """
    listings = _by_place(files, table.location, places, is_part=is_part)
    result = []
    for place in places:
        state = acid_state(listings[place.location], write_ids, txns, partial(_read, files, place.location))
        if is_past and not place.name:
            _require_past(place.location, listings[place.location], state, write_ids)
        if table.kind is TableKind.INSERT_ONLY:
            sources = insert_only_sources(table, place.location, place.stored_as, state)
        else:
            sources = acid_sources(files, place.location, state)
        result.append(Directory(place.name, place.values, place.location, state, sources, place.stored_as))
    return result


def _require_past(location: str, listing: Iterable[Listed], state: AcidState, write_ids: ValidWriteIdList) -> None:
    """Raise NotEnoughHistoryError if the Cleaner may have removed files that an INSERT OVERWRITE replaced.

    Without this a past snapshot would look empty. (``acid_state`` itself notices when a compaction's base is the
    cause.) For a partition the Cleaner's record decides (``require_kept``): a partition that an overwrite made later
    had no rows then.
    """
    if state.base or state.deltas or state.originals:
        return
    parsed = (
        parse_directory(name)
        for name in {entry.path.partition("/")[0] for entry in listing if "/" in entry.path}
        if not is_hidden(name)
    )
    later = min(
        (name for name in parsed if isinstance(name, BaseName) and name.write_id > write_ids.high_watermark),
        default=None,
    )
    if later is not None:
        raise NotEnoughHistoryError(
            f"What {location} held as of write id {write_ids.high_watermark} was overwritten by {later}, and its files "
            "are gone"
        )


def _read(files: Files, location: str, path: str) -> bytes:
    return files.read(f"{location}/{path}")


def _by_place(files: Files, root: str, places: Iterable[PartitionPlace], *, is_part: bool) -> dict[str, list[Listed]]:
    """Return entries below each place, with paths relative to it; a few of many places are listed separately."""
    places = list(places)
    result: dict[str, list[Listed]] = defaultdict(list)
    alone = is_part and len(places) <= _LISTED_ALONE
    inside = {place.location for place in places if not alone and place.location.startswith(root + "/")}
    for entry in files.listing(root) if inside else ():
        if (home := _home(root, entry, inside)) is not None:
            result[home].append(_relative(root, home, entry))
    for place in places:
        if place.location not in inside:
            result[place.location] = [*files.listing(place.location)]
    return result


def _home(root: str, entry: FileEntry, inside: set[str]) -> str | None:
    """Return the place that an entry belongs to: the deepest place above it."""
    location = root
    for part in entry.path.split("/")[:-1]:
        location = f"{location}/{part}"
        if location in inside:
            return location
    return None


def _relative(root: str, home: str, entry: FileEntry) -> ListedFile:
    return ListedFile(entry.path[len(home) - len(root) :].lstrip("/"), entry.size, entry.is_dir)
