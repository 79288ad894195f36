"""Files of a snapshot of one ACID directory, by the way in which they are read.

Rule: every file of the snapshot is in exactly one group of ``Sources``, or it is refused with the reason. The listing
alone tells ordinary files (bucket files below a base or delta); only the others are opened. Reader and compaction share
this module: if a compaction saw other files, or other ids of their rows, it would change rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from os import SEEK_END
from typing import NamedTuple

from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.names import NO_BUCKET, SIDE_FILE_SUFFIX, BaseName, parse_file, side_file
from metastore.acid.originals import SyntheticIds, synthetic_ids
from metastore.acid.side_files import flushed_length
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory, Listed, ListedFile
from metastore.acid_tables.footers import has_old_events, orc_tail, orc_tails
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.table import AcidTable, FileFormat
from metastore.errors import InvalidOperationError
from metastore.files import Files


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
    """The files of a snapshot of one ACID directory, by the way in which they are read.

    ``events`` and ``deletes``: with the event columns. ``cut``: insert events in files that are still being written.
    ``plain``: without event columns, each with the ids of its rows. ``unnamed``: without event columns, and with a name
    that has no bucket, so that their rows have no ids.
    """

    events: tuple[DataFile, ...] = ()
    deletes: tuple[DataFile, ...] = ()
    cut: tuple[CutFile, ...] = ()
    plain: tuple[SyntheticIds, ...] = ()
    unnamed: tuple[str, ...] = ()

    @property
    def without_events(self) -> list[str]:
        """The paths of all files without event columns."""
        return [*(file.path for file in self.plain), *self.unnamed]


def acid_sources(files: Files, location: str, state: AcidState) -> Sources:
    """Sort the files of a full ACID directory by the way in which they are read.

    Raises: InvalidOperationError for update events of Hive before 3, MalformedSideFileError; OSError, with the path,
        for a damaged file.
    """
    events: list[DataFile] = []
    cut: list[CutFile] = []
    plain: list[SyntheticIds] = []
    unnamed: list[str] = []
    chosen: list[BaseDirectory | DeltaDirectory] = [*([state.base] if state.base else []), *state.insert_deltas]
    for directory in chosen:
        if _is_raw(files, location, directory):
            more, bare = _raw_sources(files, location, directory)
            plain += more
            unnamed += bare
            continue
        whole, half = _event_files(files, location, directory)
        _require_new_events(files, location, directory, whole)
        events += _data_files(location, whole)
        cut += half
    originals, bare = _numbered(files, [f"{location}/{file.path}" for file in _filled(state.originals)])
    deletes = [file for delta in state.delete_deltas for file in _data_files(location, _filled(delta.bucket_files))]
    return Sources(tuple(events), tuple(deletes), tuple(cut), (*plain, *originals), (*unnamed, *bare))


def insert_only_sources(table: AcidTable, location: str, stored_as: FileFormat | None, state: AcidState) -> Sources:
    """Return the files of a directory of an insert-only table, nested files included (Hive writes those for UNION ALL).

    ``stored_as``: the directory's own format; None: the table's. Raises: InvalidOperationError.
    """
    file_format = table.file_format if stored_as is None else stored_as
    if originals := _filled(state.originals):
        raise InvalidOperationError(
            f"{location} holds files outside of bases and deltas, which Hive does not show in insert-only tables: "
            f"move them out of the way, or load them with LOAD DATA in Hive. First of them: {originals[0].path}"
        )
    if not file_format:
        raise InvalidOperationError(f"{location} of {table.name} is stored in a way that the metastore does not tell.")
    if isinstance(file_format, HiveStorage):
        file_format.require_readable(table.name)
    chosen: list[BaseDirectory | DeltaDirectory] = [*([state.base] if state.base else []), *state.insert_deltas]
    return Sources(tuple(file for directory in chosen for file in _data_files(location, _filled(directory.files))))


def committed_bytes(files: Files, file: CutFile) -> bytes:
    """Return the first ``length`` bytes of a file. Raises: InvalidOperationError if it has fewer."""
    with files.open(file.path) as source:
        size = source.seek(0, SEEK_END)
        source.seek(0)
        content = source.read(min(file.length, size))  # A read allocates as many bytes as it asks for.
    if len(content) < file.length:
        raise InvalidOperationError(
            f"{file.path} has {len(content)} bytes, and its side file says that {file.length} "
            "are committed: the file is damaged."
        )
    return content


def _is_raw(files: Files, location: str, directory: BaseDirectory | DeltaDirectory) -> bool:
    """Return True if LOAD DATA made the directory: its first file decides, since a directory never mixes."""
    filled = _filled(directory.files)
    if not directory.may_be_raw or not filled:
        return False
    return orc_tail(files, f"{location}/{filled[0].path}").fields != EVENT_COLUMNS


def _raw_sources(
    files: Files, location: str, directory: BaseDirectory | DeltaDirectory
) -> tuple[list[SyntheticIds], list[str]]:
    name = directory.name
    paths = [f"{location}/{file.path}" for file in _filled(directory.files)]
    if isinstance(name, BaseName):
        return _numbered(files, paths, name.write_id)
    return _numbered(files, paths, name.min_write_id, name.statement_id)


def _numbered(
    files: Files, paths: Iterable[str], write_id: int = 0, statement_id: int | None = None
) -> tuple[list[SyntheticIds], list[str]]:
    """Return the ids of rows in files without event columns, and the files whose rows can have no ids."""
    named: list[str] = []
    unnamed: list[str] = []
    for path in paths:
        (unnamed if parse_file(path.rpartition("/")[2]).bucket == NO_BUCKET else named).append(path)
    tails = orc_tails(files, named)
    return synthetic_ids(((tail.path, tail.rows) for tail in tails), write_id, statement_id), unnamed


def _event_files(
    files: Files, location: str, directory: BaseDirectory | DeltaDirectory
) -> tuple[list[Listed], list[CutFile]]:
    """Return files to read whole, and files of which a streaming writer has flushed only a part.

    A listing may report any size for a file that is being written: HDFS reports 0 for its first block.
    """
    with_side_file = {file.path.removesuffix(SIDE_FILE_SUFFIX) for file in directory.side_files}
    whole, cut = [], []
    for file in directory.bucket_files or directory.files:
        path = f"{location}/{file.path}"
        if file.path not in with_side_file:
            whole.append(file)
        elif (length := _flushed(files, path)) is None:
            whole.append(ListedFile(file.path, _size(files, path)))
        elif length:
            cut.append(CutFile(path, length))
    return _filled(whole), cut


def _flushed(files: Files, path: str) -> int | None:
    """Return the committed length of a file that its writer may still append to; None if it was closed meanwhile."""
    side = side_file(path)
    try:
        return flushed_length(files.read(side), side)
    except FileNotFoundError:
        return None


def _size(files: Files, path: str) -> int:
    def size() -> int:
        with files.open(path) as source:
            return source.seek(0, SEEK_END)

    return files.ask(path, size)


def _require_new_events(
    files: Files, location: str, directory: BaseDirectory | DeltaDirectory, whole: Iterable[Listed]
) -> None:
    """Refuse deltas of ACID version 1 that change rows: an event there hides earlier events of its row.

    Bases of that version are read like any other: each row is in them once, whatever its operation number is.
    """
    if directory.is_marked or isinstance(directory, BaseDirectory):
        return
    for tail in orc_tails(files, (f"{location}/{file.path}" for file in _filled(whole))):
        if has_old_events(files, tail):
            raise InvalidOperationError(
                f"{tail.path} holds update or delete events of ACID version 1 (Hive before 3). "
                "Run ALTER TABLE ... COMPACT 'major' in the Hive that wrote it, as an upgrade to Hive 3 asks for."
            )


def _filled(entries: Iterable[Listed]) -> list[Listed]:
    """Return the entries without empty files, which hold no rows and are no ORC files."""
    return [entry for entry in entries if entry.size]


def _data_files(location: str, wanted: Iterable[Listed]) -> list[DataFile]:
    return [DataFile(f"{location}/{file.path}", file.size) for file in wanted]
