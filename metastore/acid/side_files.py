"""How much of a streaming writer's file is committed: its ``..._flush_length`` file.

Rule: the side file is a sequence of 8-byte big-endian lengths, one appended at every flush; the last complete one
counts, and a complete ORC file ends there. What follows in the data file is not committed, or half a footer.
Source: ACID-24; Hive's OrcAcidUtils.getLastFlushLength.
"""

from metastore.errors import MetaError

_LENGTH = 8


class MalformedSideFileError(MetaError):
    """A side file that says no length: how much of the data file counts cannot be known."""


def flushed_length(content: bytes, path: str) -> int:
    """The number of bytes that count, from the content of the side file at ``path``; 0 when nothing was flushed yet.

    Raises: MalformedSideFileError.
    """
    end = len(content) // _LENGTH * _LENGTH
    if not end:
        raise MalformedSideFileError(f"{path} says no length, so it is not known how much of the file beside it counts")
    return int.from_bytes(content[end - _LENGTH : end], "big")
