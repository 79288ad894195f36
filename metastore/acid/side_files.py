"""Side files of streaming writers, ``..._flush_length``: the committed length of a file.

Rule: the side file is a sequence of 8-byte big-endian lengths, one appended at every flush; the last complete one
counts, and a complete ORC file ends there. The rest of the data file is not committed, or half a footer. Source:
ACID-24; Hive's OrcAcidUtils.getLastFlushLength.
"""

from metastore.errors import MetaError

_LENGTH = 8


class MalformedSideFileError(MetaError):
    """Error: a side file contains no length, so the committed part of the data file is unknown."""


def flushed_length(content: bytes, path: str) -> int:
    """Return the number of committed bytes, from the content of the side file at ``path``.

    The answer is 0 if nothing was flushed yet.
    Raises: MalformedSideFileError.
    """
    end = len(content) // _LENGTH * _LENGTH
    if not end:
        raise MalformedSideFileError(f"{path} says no length, so it is not known how much of the file beside it counts")
    return int.from_bytes(content[end - _LENGTH : end], "big")
