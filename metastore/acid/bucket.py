"""The ``bucket`` number of a ROW__ID: 3 bits of codec version, then writer (or bucket) id and statement id.

Rule: rows are written with version 1; a row's number is never rewritten, so delete events copy it as it is. Readers
compare the raw 32-bit numbers. EventFile has the same in Java; both are tested with one file of vectors. Source:
ACID-12; Hive's BucketCodec.
"""

from typing import NamedTuple

from metastore.errors import InvalidInputError

MAX_WRITER_ID = 4095
MAX_STATEMENT_ID = 4095
_VERSION_SHIFT = 29
_WRITER_SHIFT = 16
_LOW_12_BITS = 0xFFF


class BucketProperty(NamedTuple):
    """The parts of the number: the ``bucket_N`` file of the row, and the statement that wrote it."""

    writer_id: int
    statement_id: int = 0
    version: int = 1


def encode(writer_id: int, statement_id: int | None = None) -> int:
    """Return the number for a row of file ``bucket_<writer_id>``; no statement id counts as 0.

    Raises: InvalidInputError.
    """
    statement = statement_id or 0
    if not (0 <= writer_id <= MAX_WRITER_ID and 0 <= statement <= MAX_STATEMENT_ID):
        raise InvalidInputError(
            f"A row of writer {writer_id}, statement {statement} cannot be numbered: both must be from 0 to 4095"
        )
    return 1 << _VERSION_SHIFT | writer_id << _WRITER_SHIFT | statement


def decode(number: int) -> BucketProperty:
    """Decode a number of either version.

    Raises: InvalidInputError.
    """
    version = (number & 0xFFFFFFFF) >> _VERSION_SHIFT
    if version == 0:
        return BucketProperty(number, 0, 0)
    if version == 1:
        return BucketProperty(number >> _WRITER_SHIFT & _LOW_12_BITS, number & _LOW_12_BITS)
    raise InvalidInputError(f"Bucket number {number} is of codec version {version}; only 0 and 1 exist")


def writer_id_sql(number: str) -> str:
    """Return the writer id of a number of either version in Spark's SQL; ``number``: a column."""
    of_version_1 = f"shiftrightunsigned({number}, {_WRITER_SHIFT}) & {_LOW_12_BITS}"
    return f"CASE shiftrightunsigned({number}, {_VERSION_SHIFT}) WHEN 1 THEN {of_version_1} ELSE {number} END"
