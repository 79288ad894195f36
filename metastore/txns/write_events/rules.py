"""Hive's encoding of the files of a transaction: a text for each file, or for all of a table or partition."""

from collections.abc import Iterable, Iterator, Sequence

from metastore.errors import InvalidRequestError

_BETWEEN_FILES = "]"
_BETWEEN_PARTS = "#"


def encoded(
    files: Sequence[str], directories: Sequence[str], checksums: Sequence[str] = (), cmroot: str = ""
) -> list[str]:
    """Return each file with the directory below its table or partition that it is in.

    Between them stand its checksum and its place in ``cmroot``: both, or both empty, since a replica finds it there by
    its checksum. Raises: InvalidRequestError.
    """
    for name, beside in (("subDirectoryList", directories), ("filesAddedChecksum", checksums)):
        if beside and len(beside) != len(files):
            raise InvalidRequestError(f"{name} has {len(beside)} entries for {len(files)} files")
    if bad := next((path for path in (*files, *directories) if _BETWEEN_FILES in path), None):
        raise InvalidRequestError(f"A file cannot be noted that has {_BETWEEN_FILES} in its name: {bad}")
    return _encoded(files, directories, checksums, cmroot)


def encoded_of_insert(files: Sequence[str], checksums: Sequence[str], cmroot: str) -> list[str]:
    """Return the encoded files for an insert's event, not joined to one text. Raises: InvalidRequestError."""
    if checksums and len(checksums) != len(files):
        raise InvalidRequestError(f"filesAddedChecksum has {len(checksums)} entries for {len(files)} files")
    return _encoded(files, (), checksums, cmroot)


def _encoded(files: Sequence[str], directories: Sequence[str], checksums: Sequence[str], cmroot: str) -> list[str]:
    blank = [""] * len(files)
    return [
        _BETWEEN_PARTS.join((file, *((checksum, cmroot) if checksum and cmroot else ("", "")), directory))
        for file, directory, checksum in zip(files, directories or blank, checksums or blank, strict=True)
    ]


def joined(files: Iterable[str]) -> str:
    """Return all encoded files as one text."""
    return _BETWEEN_FILES.join(files)


def moved(files: str, root: str) -> Iterator[str]:
    """Yield the encoded files of a source warehouse, moved below the root of the table or partition here."""
    for file in files.split(_BETWEEN_FILES) if files else ():
        path, *rest = file.split(_BETWEEN_PARTS)
        directory = "".join(rest[2:3])
        [here] = encoded(
            ["/".join(part for part in (root.rstrip("/"), directory, path.rpartition("/")[2]) if part)], [directory]
        )
        yield here
