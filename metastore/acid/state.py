"""State of one ACID directory: the directories that a snapshot reads, and those that no newer snapshot needs.

Rule: this is the only place that turns a listing and a snapshot into base, deltas, originals, obsolete and aborted.
Reader, Initiator, compaction job and Cleaner all call this, each with its own list. Pure: the caller lists (one
recursive listing) and reads the rare ``_metadata_acid`` file on demand. Source: ACID-15 to ACID-17, ACID-22; Hive 4's
AcidUtils.getAcidState; steps A to F as in TestAcidUtils. Three deliberate differences: an overwrite base whose write id
*equals* the smallest open id is not used (Hive 4 master would show an uncommitted INSERT OVERWRITE); files beside a
base with a name that no original has are not obsolete (Hive's Cleaner removes them, rows and all). Of two results of
one range, by two runs of a compaction, the one of the later transaction is read and the other is obsolete; Hive does so
since 4.2 for insert deltas (HIVE-29210), and reads all of them before.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from metastore.acid.names import (
    METADATA_FILE,
    MIN_WRITE_ID,
    NO_BUCKET,
    SIDE_FILE_SUFFIX,
    VERSION_FILE,
    BaseName,
    DeltaName,
    is_bucket_file,
    is_hidden,
    parse_directory,
    parse_file,
)
from metastore.acid.snapshots import RangeState, ValidTxnList, ValidWriteIdList
from metastore.errors import MetaError

_MARKERS = (VERSION_FILE, METADATA_FILE)
_NO_STATEMENT = -1


class Listed(Protocol):
    """One line of a recursive listing; ``path`` is relative to the ACID directory, with ``/``."""

    @property
    def path(self) -> str:
        """The relative path."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    @property
    def is_dir(self) -> bool:
        """True if it is a directory."""


class ListedFile(NamedTuple):
    """The simplest implementation of ``Listed``."""

    path: str
    size: int = 0
    is_dir: bool = False


class NotEnoughHistoryError(MetaError):
    """Error: the snapshot is older than the oldest compacted base, and files that it reads have been cleaned away."""


class UnsupportedMetadataError(MetaError):
    """Error: a ``_metadata_acid`` file has unknown content."""


@dataclass(frozen=True)
class _Directory:
    path: str
    """Relative to the ACID directory, as it was listed (padding included)."""

    files: tuple[Listed, ...]
    """Every file that is not hidden, nested files included, sorted by path; no side files."""

    side_files: tuple[Listed, ...]
    """The ``..._flush_length`` files of a streaming writer that has not closed its batch."""

    is_marked: bool
    """Whether it says that it is of ACID version 2: what is not marked may hold update events of Hive before 3."""

    @property
    def bucket_files(self) -> tuple[Listed, ...]:
        """The files named ``bucket_...``: a full-ACID delta consists of these unless it is raw."""
        return tuple(file for file in self.files if is_bucket_file(_last(file.path)))

    def _has_original_name(self) -> bool:
        return any(parse_file(_last(file.path)).is_original for file in self.files)


@dataclass(frozen=True)
class BaseDirectory(_Directory):
    """A base; ``compacted``: made by a compactor, not by an INSERT OVERWRITE."""

    name: BaseName
    compacted: bool

    @property
    def may_be_raw(self) -> bool:
        """True if files inside may lack the ACID columns (LOAD DATA): the schema of one file must then be read."""
        return not self.compacted and self._has_original_name()


@dataclass(frozen=True)
class DeltaDirectory(_Directory):
    """A delta of either kind.

    ``visible`` is SOME if rows of invisible write ids lie among visible ones and must be filtered out row by row.
    """

    name: DeltaName
    visible: RangeState

    @property
    def is_delete(self) -> bool:
        """True if it holds delete events."""
        return self.name.is_delete

    @property
    def may_be_raw(self) -> bool:
        """True if files inside may lack the ACID columns (LOAD DATA): the schema of one file must then be read."""
        one_write_id = self.name.min_write_id == self.name.max_write_id
        return one_write_id and not self.is_delete and self._has_original_name()


@dataclass(frozen=True)
class AcidState:
    """The parts of a snapshot of one ACID directory.

    ``deltas`` holds both kinds in the order of Hive's reader. ``obsolete`` and ``aborted`` are relative paths (of
    directories and of original files): covered by a newer directory, or written by an aborted transaction. A directory
    that is in none of the lists is not for this snapshot. ``mixed_aborts``: a directory holds rows of aborted write ids
    among others, so the history of those ids must be kept. ``stranded``: files beside the base with a name that no
    original has. No base was made of them (a directory with such originals is not compacted): a writer without
    transactions has added them since. No reader shows them, and the Cleaner leaves them.
    """

    base: BaseDirectory | None = None
    deltas: tuple[DeltaDirectory, ...] = ()
    originals: tuple[Listed, ...] = ()
    original_directories: tuple[str, ...] = ()
    obsolete: tuple[str, ...] = ()
    aborted: tuple[str, ...] = ()
    mixed_aborts: bool = False
    stranded: tuple[Listed, ...] = ()
    held_size: int = 0
    """The bytes of what is obsolete or aborted: what a cleaning would give back."""

    @property
    def insert_deltas(self) -> tuple[DeltaDirectory, ...]:
        """The deltas with insert events."""
        return tuple(delta for delta in self.deltas if not delta.is_delete)

    @property
    def delete_deltas(self) -> tuple[DeltaDirectory, ...]:
        """The deltas with delete events."""
        return tuple(delta for delta in self.deltas if delta.is_delete)


def acid_state(
    listing: Iterable[Listed],
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    read_metadata: Callable[[str], str | bytes],
) -> AcidState:
    """Return the state that a reader with these lists reads; with a CompactorWriteIdList, the input of a compaction.

    ``listing``: everything below the ACID directory; directory entries are needed only for empty directories.
    ``read_metadata`` returns the content of a ``_metadata_acid`` file, given its path relative to the ACID directory;
    it is called only for a base without ``_v`` that has a metadata file.

    Raises: NotEnoughHistoryError, MalformedNameError, UnsupportedMetadataError.
    """
    children = _grouped(listing)
    selection = _Selection(write_ids, txns)
    original_directories = []
    stranded: tuple[Listed, ...] = ()
    for path in sorted(children.directories):
        entries = children.directories[path]
        match parse_directory(path):
            case BaseName() as name:
                marked = path in children.with_metadata and not name.visibility_txn_id
                compacted = name.visibility_txn_id > 0 or (marked and _is_compacted(path, read_metadata))
                is_marked = path in children.with_version
                selection.consider_base(BaseDirectory(path, *_split(entries), is_marked, name, compacted))
            case DeltaName() as name:
                visible = write_ids.range_state(name.min_write_id, name.max_write_id)
                is_marked = path in children.with_version
                selection.consider_delta(DeltaDirectory(path, *_split(entries), is_marked, name, visible))
            case _:
                original_directories.append(path)

    originals = [*children.files, *(entry for path in original_directories for entry in children.directories[path])]
    if selection.best is not None:
        stranded = tuple(file for file in children.files if file.size and _is_of_no_form(file))
        selection.obsolete += [*(file.path for file in children.files if file not in stranded), *original_directories]
        originals, original_directories = [], []
    elif selection.oldest is not None and selection.oldest.compacted:
        raise _not_enough_history(selection.oldest, write_ids)
    deltas = tuple(selection.current_deltas())
    return AcidState(
        base=selection.best,
        deltas=deltas,
        originals=_sorted_files(originals),
        original_directories=tuple(original_directories),
        obsolete=tuple(selection.obsolete),
        aborted=tuple(selection.aborted),
        mixed_aborts=selection.mixed_aborts,
        stranded=_sorted_files(stranded),
        held_size=children.size_of({*selection.obsolete, *selection.aborted}),
    )


def hidden_write_ids(deltas: Iterable[DeltaDirectory], write_ids: ValidWriteIdList) -> list[int]:
    """Return invisible write ids up to the mark that lie in chosen deltas, so that their events are left out singly."""
    return sorted(
        {
            write_id
            for delta in deltas
            for write_id in write_ids.invalid_between(delta.name.min_write_id, delta.name.max_write_id)
        }
    )


def _is_of_no_form(file: Listed) -> bool:
    return parse_file(file.path).bucket == NO_BUCKET


@dataclass
class _Children:
    """A listing, grouped by the first component below the ACID directory."""

    directories: dict[str, list[Listed]] = field(default_factory=dict)
    files: list[Listed] = field(default_factory=list)
    with_metadata: set[str] = field(default_factory=set)
    with_version: set[str] = field(default_factory=set)

    def size_of(self, paths: set[str]) -> int:
        """Return the bytes of directories and files."""
        inside = sum(entry.size for path in paths for entry in self.directories.get(path, ()))
        return inside + sum(file.size for file in self.files if file.path in paths)


@dataclass
class _Selection:
    """The selection in progress. Steps A, B and D, E of Hive's algorithm."""

    write_ids: ValidWriteIdList
    txns: ValidTxnList
    best: BaseDirectory | None = None
    oldest: BaseDirectory | None = None
    working: list[DeltaDirectory] = field(default_factory=list)
    obsolete: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    mixed_aborts: bool = False

    def consider_base(self, base: BaseDirectory) -> None:
        """Do step A: the highest valid base wins.

        Of bases of one write id a compacted one wins, and of these the last transaction's.
        """
        if not self._is_published(base):
            return
        write_id = base.name.write_id
        if self.oldest is None or write_id < self.oldest.name.write_id:
            self.oldest = base
        if not base.compacted and self.write_ids.is_aborted(write_id):
            self.aborted.append(base.path)
        elif self._is_beaten(base):
            self.obsolete.append(base.path)
        elif self._is_valid(base):
            if self.best is not None:
                self.obsolete.append(self.best.path)
            self.best = base

    def consider_delta(self, delta: DeltaDirectory) -> None:
        """Do step B: sort a delta as aborted as a whole, visible in part, or not for this reader."""
        if not self._is_published(delta):
            return
        aborted = self.write_ids.aborted_range_state(delta.name.min_write_id, delta.name.max_write_id)
        if aborted is RangeState.ALL:
            self.aborted.append(delta.path)
            return
        self.mixed_aborts |= aborted is RangeState.SOME
        if delta.visible is not RangeState.NONE:
            self.working.append(delta)

    def current_deltas(self) -> list[DeltaDirectory]:
        """Order and choose (steps D and E): wider directories hide those that they cover.

        One write id's statements stay.

        Both kinds of one compaction stay together; the result of another compaction of the same range does not.
        """
        covered = self.best.name.write_id if self.best else 0
        statement = _NO_STATEMENT
        previous: DeltaName | None = None
        current = []
        for delta in sorted(self.working, key=_reading_order):
            name = delta.name
            if name.max_write_id > covered:
                if self.write_ids.range_state(covered + 1, name.max_write_id) is RangeState.NONE:
                    continue
                covered, statement = name.max_write_id, _statement(name)
            elif not (
                (name.max_write_id == covered and statement >= 0)
                or (previous is not None and _is_its_other_kind(previous, name))
            ):
                self.obsolete.append(delta.path)
                continue
            previous = name
            current.append(delta)
        return current

    def _is_published(self, directory: BaseDirectory | DeltaDirectory) -> bool:
        """Return True if the compaction that wrote it is committed for this reader."""
        txn_id = directory.name.visibility_txn_id
        if self.txns.is_valid(txn_id):
            return True
        if self.txns.is_aborted(txn_id):
            self.aborted.append(directory.path)
        return False

    def _is_beaten(self, base: BaseDirectory) -> bool:
        if self.best is None:
            return False
        best, name = self.best.name, base.name
        if best.write_id != name.write_id:
            return best.write_id > name.write_id
        return not base.compacted or (self.best.compacted and best.visibility_txn_id > name.visibility_txn_id)

    def _is_valid(self, base: BaseDirectory) -> bool:
        write_id, min_open = base.name.write_id, self.write_ids.min_open_write_id
        if write_id == MIN_WRITE_ID or (min_open is not None and write_id < min_open):
            return True
        return self.write_ids.is_valid_base(write_id) if base.compacted else self.write_ids.is_valid(write_id)


def _grouped(listing: Iterable[Listed]) -> _Children:
    children = _Children()
    for entry in listing:
        above, _, last = entry.path.rpartition("/")
        if is_hidden(above) or "/_" in above or "/." in above or (is_hidden(last) and last not in _MARKERS):
            continue
        if above:
            directory = above.partition("/")[0]
            inside = children.directories.setdefault(directory, [])
            if last == METADATA_FILE:
                children.with_metadata.add(directory)
            elif last == VERSION_FILE:
                children.with_version.add(directory)
            else:
                inside.append(entry)
        elif entry.is_dir:
            children.directories.setdefault(last, [])
        elif last not in _MARKERS:
            children.files.append(entry)
    return children


def _split(entries: Iterable[Listed]) -> tuple[tuple[Listed, ...], tuple[Listed, ...]]:
    """Separate data files from side files."""
    files = _sorted_files(entries)
    return (
        tuple(file for file in files if not file.path.endswith(SIDE_FILE_SUFFIX)),
        tuple(file for file in files if file.path.endswith(SIDE_FILE_SUFFIX)),
    )


def _sorted_files(entries: Iterable[Listed]) -> tuple[Listed, ...]:
    return tuple(sorted((entry for entry in entries if not entry.is_dir), key=_path))


def _path(entry: Listed) -> str:
    return entry.path


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _statement(name: DeltaName) -> int:
    return _NO_STATEMENT if name.statement_id is None else name.statement_id


def _reading_order(delta: DeltaDirectory) -> tuple[int, int, int, int, str]:
    name = delta.name
    return name.min_write_id, -name.max_write_id, _statement(name), -name.visibility_txn_id, delta.path


def _is_its_other_kind(name: DeltaName, other: DeltaName) -> bool:
    """Return True if two deltas of one range are the inserts and the deletes of the same writer or compaction."""
    return name[:4] == other[:4]


def _is_compacted(directory: str, read_metadata: Callable[[str], str | bytes]) -> bool:
    """Read a base's marker: return True for a compactor's, False for one of a TRUNCATE or DROP of Hive 4."""
    path = f"{directory}/{METADATA_FILE}"
    try:
        metadata = json.loads(read_metadata(path))
        version, data_format = str(metadata["thisFileVersion"]), metadata["dataFormat"]
    except (ValueError, KeyError, TypeError, RecursionError):  # Hive never nests this deeply either.
        raise UnsupportedMetadataError(f"Cannot read {path}: not the JSON object that Hive writes there") from None
    if version != "0":
        raise UnsupportedMetadataError(f"{path} is of version {version}; only version 0 is known")
    return bool(data_format == "compacted")


def _not_enough_history(oldest: BaseDirectory, write_ids: ValidWriteIdList) -> NotEnoughHistoryError:
    first = write_ids.invalid[0] if write_ids.invalid else "none"
    return NotEnoughHistoryError(
        f"Not enough history available for a snapshot of {write_ids.table} up to write id {write_ids.high_watermark} "
        f"(first exception: {first}). Oldest available base: {oldest.path}. Read again with a new snapshot"
    )
