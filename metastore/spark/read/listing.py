"""Which ACID directories a table has, and what a snapshot of each is read from: one recursive listing per table.

Rule: every file of the snapshot is in exactly one of the groups of ``Sources``, or it is refused with its reason. What
has an ordinary form (bucket files below a base or delta) is known from the listing alone; only the rest is opened.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from os import SEEK_END
from typing import NamedTuple

from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.names import (
    NO_BUCKET,
    SIDE_FILE_SUFFIX,
    BaseName,
    is_hidden,
    parse_directory,
    parse_file,
    side_file,
)
from metastore.acid.originals import SyntheticIds, synthetic_ids
from metastore.acid.side_files import flushed_length
from metastore.acid.snapshots import RangeState, ValidTxnList, ValidWriteIdList
from metastore.acid.state import (
    AcidState,
    BaseDirectory,
    DeltaDirectory,
    Listed,
    ListedFile,
    NotEnoughHistoryError,
    acid_state,
)
from metastore.errors import InvalidOperationError
from metastore.files import FileEntry, Files
from metastore.spark.read.footers import has_old_events, orc_tail, orc_tails
from metastore.spark.tables.acid_table import AcidTable, FileFormat, TableKind
from metastore.spark.tables.serde_storage import HiveStorage

BROADCAST_LIMIT = 1_000_000
"""Delete events up to which a join broadcasts them one by one."""

_LISTED_ALONE = 32


class PartitionPlace(NamedTuple):
    """A partition: its name, its values (None for the default partition) and where it lies.

    ``stored_as``: how its files are stored, where that is not as the table's are.
    """

    name: str
    values: tuple[str | None, ...]
    location: str
    stored_as: FileFormat | None = None


class DataFile(NamedTuple):
    """A file that is read whole."""

    path: str
    size: int


class CutFile(NamedTuple):
    """A file of a streaming writer of which only the first ``length`` bytes count."""

    path: str
    length: int


@dataclass(frozen=True)
class Sources:
    """The files of a snapshot of one ACID directory, by how they are read.

    ``events`` and ``deletes``: with the event columns. ``cut``: insert events in files that are still being written.
    ``plain``: without event columns, each with the ids of its rows. ``unnamed``: those of them whose name tells no
    bucket, so that their rows have no ids.
    """

    events: tuple[DataFile, ...] = ()
    deletes: tuple[DataFile, ...] = ()
    cut: tuple[CutFile, ...] = ()
    plain: tuple[SyntheticIds, ...] = ()
    unnamed: tuple[str, ...] = ()

    @property
    def without_events(self) -> list[str]:
        """Paths of all files without event columns."""
        return [*(one.path for one in self.plain), *self.unnamed]


@dataclass(frozen=True)
class Directory:
    """An ACID directory: a partition's location, or an unpartitioned table's; ``values`` are None for the default."""

    partition: str
    values: tuple[str | None, ...]
    location: str
    state: AcidState
    sources: Sources
    stored_as: FileFormat | None = None
    """How its files are stored, where that is not as the table's are."""

    def hidden_write_ids(self, write_ids: ValidWriteIdList) -> set[int]:
        """Write ids inside the deltas whose rows must be filtered out one by one."""
        some = [delta.name for delta in self.state.deltas if delta.visible is RangeState.SOME]
        return {write_id for name in some for write_id in write_ids.invalid
                if name.min_write_id <= write_id <= name.max_write_id}


def acid_directories(files: Files, table: AcidTable, places: Sequence[PartitionPlace], write_ids: ValidWriteIdList,
                     txns: ValidTxnList, *, is_past: bool = False, is_part: bool = False) -> list[Directory]:
    """The directories of a table as the snapshot sees them; an unpartitioned table is one place.

    ``is_past``: the snapshot is an old one, whose files nobody has kept from the Cleaner. ``is_part``: there are more
    places than these.
    Raises: NotEnoughHistoryError when the snapshot's files are gone, InvalidOperationError for files that nobody here
        can read.
    """
    listings = _by_place(files, table.location, places, is_part=is_part)
    result = []
    for place in places:
        state = acid_state(listings[place.location], write_ids, txns, partial(_read, files, place.location))
        if is_past:
            _require_past(place.location, listings[place.location], state, write_ids)
        if table.kind is TableKind.INSERT_ONLY:
            sources = _insert_only_sources(table, place, state)
        else:
            sources = acid_sources(files, place.location, state)
        result.append(Directory(place.name, place.values, place.location, state, sources, place.stored_as))
    return result


def _require_past(location: str, listing: Iterable[Listed], state: AcidState, write_ids: ValidWriteIdList) -> None:
    """An INSERT OVERWRITE lets the Cleaner remove what was before; then a past snapshot would just be empty.

    (A compaction does so too, but the directory selection itself knows that one.)
    """
    if state.base or state.deltas or state.originals:
        return
    parsed = (parse_directory(name) for name in {entry.path.partition("/")[0] for entry in listing if "/" in entry.path}
              if not is_hidden(name))
    later = min((one for one in parsed if isinstance(one, BaseName) and one.write_id > write_ids.high_watermark),
                default=None)
    if later is not None:
        raise NotEnoughHistoryError(
            f"What {location} held as of write id {write_ids.high_watermark} was overwritten by {later}, and its files "
            "are gone")


def acid_sources(files: Files, location: str, state: AcidState) -> Sources:
    """Sort the files of a full ACID directory by how they are read.

    Raises: InvalidOperationError for update events of Hive before 3, MalformedSideFileError.
    """
    events: list[DataFile] = []
    cut: list[CutFile] = []
    plain: list[SyntheticIds] = []
    unnamed: list[str] = []
    chosen: list[BaseDirectory | DeltaDirectory] = [*([state.base] if state.base else []), *state.insert_deltas]
    for one in chosen:
        if _is_raw(files, location, one):
            more, bare = _raw_sources(files, location, one)
            plain += more
            unnamed += bare
            continue
        whole, half = _event_files(files, location, one)
        require_new_events(files, location, one, whole)
        events += _data_files(location, whole)
        cut += half
    originals, bare = _numbered(files, [f"{location}/{file.path}" for file in _filled(state.originals)])
    deletes = [file for one in state.delete_deltas for file in _data_files(location, _filled(one.bucket_files))]
    return Sources(tuple(events), tuple(deletes), tuple(cut), (*plain, *originals), (*unnamed, *bare))


def _insert_only_sources(table: AcidTable, place: PartitionPlace, state: AcidState) -> Sources:
    """The files of an insert-only table, nested ones included (Hive writes those for UNION ALL)."""
    location, file_format = place.location, table.file_format if place.stored_as is None else place.stored_as
    if originals := _filled(state.originals):
        raise InvalidOperationError(
            f"{location} holds files outside of bases and deltas, which Hive does not show in insert-only tables: "
            f"move them out of the way, or load them with LOAD DATA in Hive. First of them: {originals[0].path}")
    if not file_format:
        raise InvalidOperationError(f"{location} of {table.name} is stored in a way that the metastore does not tell.")
    if isinstance(file_format, HiveStorage):
        file_format.require_readable(table.name)
    chosen: list[BaseDirectory | DeltaDirectory] = [*([state.base] if state.base else []), *state.insert_deltas]
    return Sources(tuple(file for one in chosen for file in _data_files(location, _filled(one.files))))


def _is_raw(files: Files, location: str, directory: BaseDirectory | DeltaDirectory) -> bool:
    """Whether LOAD DATA made it: one file tells, a directory never mixes."""
    filled = _filled(directory.files)
    if not directory.may_be_raw or not filled:
        return False
    return orc_tail(files, f"{location}/{filled[0].path}").fields != EVENT_COLUMNS


def _raw_sources(files: Files, location: str, directory: BaseDirectory | DeltaDirectory,
                 ) -> tuple[list[SyntheticIds], list[str]]:
    name = directory.name
    paths = [f"{location}/{file.path}" for file in _filled(directory.files)]
    if isinstance(name, BaseName):
        return _numbered(files, paths, name.write_id)
    return _numbered(files, paths, name.min_write_id, name.statement_id)


def _numbered(files: Files, paths: Iterable[str], write_id: int = 0, statement_id: int | None = None,
              ) -> tuple[list[SyntheticIds], list[str]]:
    """The ids of the rows of files without event columns, and the files whose rows can have none."""
    named: list[str] = []
    unnamed: list[str] = []
    for path in paths:
        (unnamed if parse_file(path.rpartition("/")[2]).bucket == NO_BUCKET else named).append(path)
    tails = orc_tails(files, named)
    return synthetic_ids(((tail.path, tail.rows) for tail in tails), write_id, statement_id), unnamed


def _event_files(files: Files, location: str, directory: BaseDirectory | DeltaDirectory,
                 ) -> tuple[list[Listed], list[CutFile]]:
    """Files to read whole, and those of which a streaming writer has flushed only a part.

    Of a file that is being written a listing may say any size: HDFS says 0 for its first block.
    """
    with_side_file = {file.path.removesuffix(SIDE_FILE_SUFFIX) for file in directory.side_files}
    whole, cut = [], []
    for one in directory.bucket_files or directory.files:
        path = f"{location}/{one.path}"
        if one.path not in with_side_file:
            whole.append(one)
        elif (length := _flushed(files, path)) is None:
            whole.append(ListedFile(one.path, _size(files, path)))
        elif length:
            cut.append(CutFile(path, length))
    return _filled(whole), cut


def _flushed(files: Files, path: str) -> int | None:
    """How much of a file counts that its writer may be appending to right now; None when it was closed meanwhile."""
    side = side_file(path)
    try:
        return flushed_length(files.read(side), side)
    except FileNotFoundError:
        return None


def _size(files: Files, path: str) -> int:
    with files.open(path) as source:
        return source.seek(0, SEEK_END)


def require_new_events(files: Files, location: str, directory: BaseDirectory | DeltaDirectory,
                        whole: Iterable[Listed]) -> None:
    """Refuse deltas of ACID version 1 that change rows: an event there hides earlier ones of its row.

    Bases of that version are read like any other: each row is in them once, whatever its operation number says.
    """
    if directory.is_marked or isinstance(directory, BaseDirectory):
        return
    for tail in orc_tails(files, (f"{location}/{file.path}" for file in _filled(whole))):
        if has_old_events(files, tail):
            raise InvalidOperationError(
                f"{tail.path} holds update or delete events of ACID version 1 (Hive before 3). "
                "Run ALTER TABLE ... COMPACT 'major' in the Hive that wrote it, as an upgrade to Hive 3 asks for.")


def _filled(entries: Iterable[Listed]) -> list[Listed]:
    """Without empty files, which hold no rows and are no ORC files."""
    return [entry for entry in entries if entry.size]


def _data_files(location: str, wanted: Iterable[Listed]) -> list[DataFile]:
    return [DataFile(f"{location}/{file.path}", file.size) for file in wanted]


def _read(files: Files, location: str, path: str) -> bytes:
    return files.read(f"{location}/{path}")


def _by_place(files: Files, root: str, places: Iterable[PartitionPlace], *,
              is_part: bool) -> dict[str, list[Listed]]:
    """What lies below each place, with paths relative to it; a few of many places are listed each alone."""
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
    """The place that an entry belongs to: the deepest one above it."""
    location = root
    for part in entry.path.split("/")[:-1]:
        location = f"{location}/{part}"
        if location in inside:
            return location
    return None


def _relative(root: str, home: str, entry: FileEntry) -> ListedFile:
    return ListedFile(entry.path[len(home) - len(root):].lstrip("/"), entry.size, entry.is_dir)
