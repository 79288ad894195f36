"""Directories of catalog objects: made before the object exists, removed after it is gone.

Rule: a crash at any point leaves at worst a directory that nothing refers to. Removal happens after COMMIT and its
failure is only logged, because the object is gone for its users either way.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from metastore.acid.names import METADATA_FILE, BaseName
from metastore.catalog.service import change_management
from metastore.errors import AlreadyExistsError, MetaError, OutcomeUnknownError
from metastore.files import FileEntry, Files, Made
from metastore.roots import OutsideError, refusal
from metastore.telemetry.logs import get_logger

_log = get_logger(__name__)
_TRUNCATED = b'{"thisFileVersion":"0","dataFormat":"truncated"}'


@dataclass(frozen=True)
class Directories:
    """The services' way to the file systems."""

    files: Files

    def require_own(self, locations: Iterable[str | None], action: str) -> None:
        """Refuse locations outside of the roots before any work, by their text. Links are resolved at a later check.

        ``action``: the beginning of the message. Raises: MetaError.
        """
        roots = self.files.roots
        for location in locations:
            if roots is not None and location and not roots.covers(location, inside=True):
                raise MetaError(f"{action}: {refusal(location)}")

    @contextmanager
    def created(self, location: str | None) -> Iterator[list[str]]:
        """Make a directory; remove it again if the block fails and it is still empty. Yield the new directories.

        The directory stays if the name was taken meanwhile (the winner may use it) or if the outcome of the block is
        unknown.
        Raises: MetaError if it cannot be made.
        """
        with self.created_all([location] if location else []) as new:
            yield new

    @contextmanager
    def created_all(self, locations: Iterable[str]) -> Iterator[list[str]]:
        """Make several directories as ``created`` makes one."""
        made = self.files.make_all(list(locations))
        try:
            _require_made(made)
            yield made.new
        except (AlreadyExistsError, OutcomeUnknownError):
            raise
        except BaseException:
            for location in reversed(made.new):
                self._remove_quietly(location, recursive=False)
            raise

    def remove_if_empty(self, location: str) -> None:
        """Remove a directory if it is empty."""
        self._remove_quietly(location, recursive=False)

    def empty(self, location: str, *, kept: bool) -> None:
        """Remove everything in a directory; ``kept``: replicas may need the files. Raises: MetaError."""
        try:
            change_management.empty(self.files, location, kept=kept)
        except OSError as error:
            raise MetaError(f"{location} cannot be emptied: {error}") from error

    def recycle(self, location: str, *, kept: bool) -> None:
        """Bring the files in a directory to where replicas look, if they are to be ``kept``. Raises: MetaError."""
        try:
            change_management.recycle(self.files, location, kept=kept)
        except OSError as error:
            raise MetaError(f"{location} cannot be recycled: {error}") from error

    def write_empty_base(self, location: str, write_id: int) -> None:
        """Let a table read as empty from this write id on (Hive 4's TRUNCATE). Raises: MetaError."""
        try:
            self.files.write(f"{location}/{BaseName(write_id)}/{METADATA_FILE}", _TRUNCATED)
        except OSError as error:
            raise MetaError(f"{location} cannot be truncated: {error}") from error

    def remove_base(self, location: str, write_id: int) -> None:
        """Remove the base that ``write_empty_base`` wrote."""
        self._remove_quietly(f"{location}/{BaseName(write_id)}", recursive=True)

    def exists(self, location: str) -> bool:
        """Return True if the location exists. Raises: MetaError if its file system does not say."""
        try:
            return self.files.exists(location)
        except OSError as error:
            raise MetaError(f"{location} cannot be looked at: {error}") from error

    def listing(self, location: str) -> list[FileEntry]:
        """Return every file and directory below. Raises: MetaError."""
        try:
            return self.files.listing(location)
        except OSError as error:
            raise MetaError(f"{location} cannot be listed: {error}") from error

    def _remove_quietly(self, location: str, *, recursive: bool) -> None:
        try:
            self.files.delete(location, recursive=recursive)
        except OSError as error:
            _log.warning("directory_not_removed", location=location, reason=str(error))


def _require_made(made: Made) -> None:
    """Raise MetaError unless the directory was made."""
    if isinstance(made.error, OutsideError):
        raise MetaError(f"{made.failed} does not exist and cannot be made: {made.error}") from made.error
    if isinstance(made.error, OSError):
        raise MetaError(f"{made.failed} is not a directory or unable to create one: {made.error}") from made.error
    if made.error is not None:
        raise made.error
