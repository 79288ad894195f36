"""What a statement publishes: the files that tasks left in staging → complete directories with their final names.

Rules kept here (ACID-10, ACID-27, ACID-28). One file for each (directory, bucket). Delete deltas are named before what
is inserted, so that whoever lists in between sees no row twice. An overwrite is a base where there are rows, and one
with an empty file where nothing is left. Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from metastore.acid.names import VERSION_FILE, VERSION_TEXT, BaseName, DeltaName, bucket_file
from metastore.errors import InvalidOperationError


class StagedFile(NamedTuple):
    """A file, as the task says that wrote it. ``statement``: the number that its directory has, if that has any."""

    path: str
    key: str | None
    bucket: int
    statement: int
    is_delete: bool


@dataclass
class StagedDirectory:
    """A directory to complete in staging and to rename then. ``empty``: files without rows, to be made."""

    source: str
    location: str
    name: BaseName | DeltaName
    files: dict[str, str] = field(default_factory=dict)
    """The staged path of each file by its final name."""
    empty: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Where it gets to."""
        return f"{self.location}/{self.name}"

    @property
    def is_delete(self) -> bool:
        """Whether it holds delete events."""
        return isinstance(self.name, DeltaName) and self.name.is_delete

    def answer(self) -> Mapping[str, Any]:
        """As the protocol has it."""
        return {
            "from": self.source,
            "to": self.target,
            "files": [[path, name] for name, path in sorted(self.files.items())],
            "empty": list(self.empty),
            "write": [[VERSION_FILE, VERSION_TEXT.decode()]],
        }


def staged_directories(
    files: Iterable[StagedFile],
    *,
    staging: str,
    write_id: int,
    location: Callable[[StagedFile], str],
    is_base: bool,
    emptied: Sequence[str] = (),
) -> list[StagedDirectory]:
    """The directories of a statement, delete deltas first.

    ``location``: the ACID directory of a file; ``emptied``: those in which nothing is left where no file goes there.
    Raises: InvalidOperationError for files that cannot be of one statement.
    """
    found: dict[tuple[bool, str, int], StagedDirectory] = {}

    def directory(place: str, statement: int, *, is_delete: bool) -> StagedDirectory:
        key = (not is_delete, place, 0 if is_base else statement)
        if key not in found:
            name = BaseName(write_id) if is_base else DeltaName(write_id, write_id, statement, is_delete=is_delete)
            found[key] = StagedDirectory(f"{staging}/out/{len(found)}", place, name)
        return found[key]

    for file in files:
        if file.is_delete and is_base:
            raise InvalidOperationError(f"{file.path} holds delete events, and an overwrite deletes no single rows.")
        there = directory(location(file), file.statement, is_delete=file.is_delete)
        name = bucket_file(file.bucket)
        if name in there.files:
            raise InvalidOperationError(
                f"{there.files[name]} and {file.path} were both written for {there.target}/{name}: all events of one "
                "partition and bucket must come from one task. Nothing was published."
            )
        there.files[name] = file.path
    for place in emptied:
        there = directory(place, 0, is_delete=False)
        if not there.files:
            there.empty = (bucket_file(0),)
    return [found[key] for key in sorted(found)]
