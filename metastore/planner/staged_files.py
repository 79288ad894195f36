"""The publication of a statement: the tasks' staged files become complete directories with their final names.

Rules (ACID-10, ACID-22, ACID-27, ACID-28). One file per (directory, bucket). Delete deltas get their names before the
inserts, so that a reader that lists in between sees no row twice. An overwrite is a base if there are rows, and a base
with an empty file if none are left. Files without events have Hive's names for them, and no marker beside them. Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from metastore.acid.names import (
    BUCKET_FILE,
    ORIGINAL_FILE,
    VERSION_FILE,
    VERSION_TEXT,
    BaseName,
    DeltaName,
    bucket_file,
    original_file,
)
from metastore.errors import InvalidOperationError


class StagedFile(NamedTuple):
    """A file, as its task reports it. ``statement``: the statement id in its directory's name, if that has any.

    ``path``: in staging, or, for an upload, the final name that it was begun with.
    """

    path: str
    key: str | None
    bucket: int
    statement: int
    is_delete: bool


@dataclass
class StagedDirectory:
    """A directory to complete in staging, then to rename. ``empty``: names of files without rows to make."""

    source: str
    location: str
    name: BaseName | DeltaName
    has_events: bool
    files: dict[str, str] = field(default_factory=dict)
    """The staged path of each file by its final name."""
    empty: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The final path."""
        return f"{self.location}/{self.name}"

    @property
    def is_delete(self) -> bool:
        """True if it holds delete events."""
        return isinstance(self.name, DeltaName) and self.name.is_delete

    def answer(self) -> Mapping[str, Any]:
        """Return the directory in the protocol's form."""
        return {
            "from": self.source,
            "to": self.target,
            "files": [[path, name] for name, path in sorted(self.files.items())],
            "empty": list(self.empty),
            "write": [[VERSION_FILE, VERSION_TEXT.decode()]] if self.has_events else [],
        }


class NamesInPlace(NamedTuple):
    """The names of a statement's files, for tasks that upload them to their final names.

    ``inserts``: the directory of each statement id from the statement's own on; ``file``: a file's name by its bucket,
    as a pattern.
    """

    inserts: Sequence[str]
    deletes: str
    file: str


def names_in_place(write_id: int, statements: range, *, is_base: bool, has_events: bool) -> NamesInPlace:
    """Return the expected names of ``staged_directories``; if that finds another name, the statement is refused."""
    return NamesInPlace(
        [str(_name(write_id, statement, is_base=is_base)) for statement in statements],
        str(_name(write_id, statements.start, is_delete=True)),
        BUCKET_FILE if has_events else ORIGINAL_FILE,
    )


def _name(write_id: int, statement: int, *, is_base: bool = False, is_delete: bool = False) -> BaseName | DeltaName:
    return BaseName(write_id) if is_base else DeltaName(write_id, write_id, statement, is_delete=is_delete)


def staged_directories(
    files: Iterable[StagedFile],
    *,
    staging: str,
    write_id: int,
    location: Callable[[StagedFile], str],
    is_base: bool,
    has_events: bool = True,
    emptied: Sequence[str] = (),
) -> list[StagedDirectory]:
    """Return the directories of a statement, delete deltas first.

    ``location``: the ACID directory of a file; ``has_events``: True if files have the event columns, as in full ACID
    tables; ``emptied``: ACID directories that keep only new files.
    Raises: InvalidOperationError for files that cannot be of the same statement.
    """
    by_key: dict[tuple[bool, str, int], StagedDirectory] = {}
    file_name = bucket_file if has_events else original_file

    def directory(place: str, statement: int, *, is_delete: bool) -> StagedDirectory:
        key = (not is_delete, place, 0 if is_base else statement)
        if key not in by_key:
            name = _name(write_id, statement, is_base=is_base, is_delete=is_delete)
            by_key[key] = StagedDirectory(f"{staging}/out/{len(by_key)}", place, name, has_events)
        return by_key[key]

    for file in files:
        if file.is_delete and is_base:
            raise InvalidOperationError(f"{file.path} holds delete events, and an overwrite deletes no single rows.")
        if file.is_delete and not has_events:
            raise InvalidOperationError(f"{file.path} holds delete events, and rows of insert-only tables have no ids.")
        there = directory(location(file), file.statement, is_delete=file.is_delete)
        name = file_name(file.bucket)
        if name in there.files:
            raise InvalidOperationError(
                f"{there.files[name]} and {file.path} were both written for {there.target}/{name}: all events of one "
                "partition and bucket must come from one task. Nothing was published."
            )
        there.files[name] = file.path
    for place in emptied:
        there = directory(place, 0, is_delete=False)
        if not there.files:
            there.empty = (file_name(0),)
    return [by_key[key] for key in sorted(by_key)]
