"""Which ACID directories a table has, and what a snapshot of each is made of: one recursive listing per table."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from pyarrow import orc

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, ListedFile, acid_state
from metastore.files import FileEntry, Files, local_path
from metastore.spark.reader import BROADCAST_LIMIT, Directory

_FOOTER_READERS = 8
_MANY_FILES = 2_000


class PartitionPlace(NamedTuple):
    """A partition: its name, its values (None for the default partition) and where it lies."""

    name: str
    values: tuple[str | None, ...]
    location: str


def acid_directories(files: Files, root: str, places: Sequence[PartitionPlace], write_ids: ValidWriteIdList,
                     txns: ValidTxnList) -> list[Directory]:
    """The directories of a table below ``root`` as the snapshot sees them; an unpartitioned table is one place.

    Raises: NotEnoughHistoryError when the snapshot's files are gone.
    """
    listings = _by_place(files, root, places)
    result = []
    for place in places:
        state = acid_state(listings[place.location], write_ids, txns, partial(_read, files, place.location))
        events = count_delete_events(place.location, state)
        result.append(Directory(place.name, place.values, place.location, state, events))
    return result


def count_delete_events(location: str, state: AcidState) -> int:
    """Rows in the delete deltas, from the ORC footers; too many to broadcast where counting them would take long."""
    paths = [f"{location}/{file.path}" for delta in state.delete_deltas for file in delta.bucket_files]
    if len(paths) > _MANY_FILES or any(local_path(path) is None for path in paths):
        return BROADCAST_LIMIT + 1
    with ThreadPoolExecutor(_FOOTER_READERS) as pool:
        return sum(pool.map(_rows, paths))


def _read(files: Files, location: str, path: str) -> bytes:
    return files.read(f"{location}/{path}")


def _rows(path: str) -> int:
    return int(orc.ORCFile(str(local_path(path))).nrows)


def _by_place(files: Files, root: str, places: Iterable[PartitionPlace]) -> dict[str, list[ListedFile]]:
    """What lies below each place, with paths relative to it."""
    places = list(places)
    result: dict[str, list[ListedFile]] = defaultdict(list)
    inside = {place.location for place in places if (place.location + "/").startswith(root + "/")}
    for entry in files.listing(root) if inside else ():
        if (home := _home(root, entry, inside)) is not None:
            result[home].append(_relative(root, home, entry))
    for place in places:
        if place.location not in inside:
            result[place.location] = [ListedFile(entry.path, entry.size, entry.is_dir)
                                      for entry in files.listing(place.location)]
    return result


def _home(root: str, entry: FileEntry, inside: set[str]) -> str | None:
    """The place that an entry belongs to: the deepest one above it."""
    if root in inside:
        return root
    location = root
    for part in entry.path.split("/")[:-1]:
        location = f"{location}/{part}"
        if location in inside:
            return location
    return None


def _relative(root: str, home: str, entry: FileEntry) -> ListedFile:
    return ListedFile(entry.path[len(home) - len(root):].lstrip("/"), entry.size, entry.is_dir)
