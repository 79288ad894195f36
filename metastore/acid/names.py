"""Names of directories and files in an ACID directory (a partition's location, or an unpartitioned table's).

Rule: names that we write are padded as Hive pads them (ids to 7 digits, statements to 4, buckets to 5, longer numbers
kept whole); names that we read may be padded in any way. The prefix alone tells the kind of a directory, and a
directory with such a prefix whose numbers cannot be read is an error, never an "original" directory.
Source: ACID-1 to ACID-6; Hive's AcidUtils and TestAcidUtils.
"""

import re
from typing import NamedTuple, TypeAlias

from metastore.errors import MetaError

BASE_PREFIX = "base_"
DELTA_PREFIX = "delta_"
DELETE_DELTA_PREFIX = "delete_delta_"
BUCKET_PREFIX = "bucket_"
BUCKET_FILE = f"{BUCKET_PREFIX}%05d"
ORIGINAL_FILE = "%06d_0"
VERSION_FILE = "_orc_acid_version"
VERSION_TEXT = b"2"
METADATA_FILE = "_metadata_acid"
SIDE_FILE_SUFFIX = "_flush_length"
MIN_WRITE_ID = -(2**63)
"""The write id of the base that the first compaction of a converted table once got; every reader may use it."""

NO_BUCKET = -1
"""The bucket id of a file whose name does not say it: its rows are readable, but no delete event can name them."""

_UNPROVEN_PREFIX = ".unproven_"
_STAGING = re.compile(r"\.(?:acid_stage|compaction)_([0-9]+)(?:_.*)?")
_UNPROVEN = re.compile(r"\.unproven_([0-9]+)")
_BUCKET_FILE = re.compile(r"bucket_([0-9]+)(?:_([0-9]+))?")
_ORIGINAL_FILE = re.compile(r"([0-9]+)_[0-9]+(?:_copy_([0-9]+))?")
_BASE = re.compile(r"base_(-?[0-9]+)(?:_v(-?[0-9]+))?")
_DELTA = re.compile(r"(delete_)?delta_(-?[0-9]+)_(-?[0-9]+)(?:_(-?[0-9]+))?(?:_v(-?[0-9]+))?")


class MalformedNameError(MetaError):
    """Error: a directory is named like a base or a delta, but its numbers cannot be read."""


class BaseName(NamedTuple):
    """``base_X[_vT]``: everything up to write id X; visible once compactor transaction T is committed (0: always)."""

    write_id: int
    visibility_txn_id: int = 0

    def __str__(self) -> str:
        """Return the name as it is written."""
        return f"{BASE_PREFIX}{self.write_id:07d}{_visibility(self.visibility_txn_id)}"


class DeltaName(NamedTuple):
    """``[delete_]delta_A_B[_SSSS][_vT]``: the events of write ids A to B; no statement id when it was compacted."""

    min_write_id: int
    max_write_id: int
    statement_id: int | None = None
    visibility_txn_id: int = 0
    is_delete: bool = False

    def __str__(self) -> str:
        """Return the name as it is written."""
        prefix = DELETE_DELTA_PREFIX if self.is_delete else DELTA_PREFIX
        statement = "" if self.statement_id is None else f"_{self.statement_id:04d}"
        ids = f"{self.min_write_id:07d}_{self.max_write_id:07d}"
        return f"{prefix}{ids}{statement}{_visibility(self.visibility_txn_id)}"


class FileName(NamedTuple):
    """The parts of a data file's name: bucket (or writer) id, attempt of ``bucket_N_A``, k of ``N_0_copy_k``."""

    bucket: int
    attempt: int | None = None
    copy: int | None = None
    is_original: bool = False


DirectoryName: TypeAlias = BaseName | DeltaName


def bucket_file(bucket: int) -> str:
    """Return ``bucket_00023``; never with an attempt id, which Hive 2.3 and Trino's delete reader do not understand."""
    return BUCKET_FILE % bucket


def original_file(bucket: int) -> str:
    """Return ``000023_0``: the name of a file without ACID columns."""
    return ORIGINAL_FILE % bucket


def parse_directory(name: str) -> DirectoryName | None:
    """Parse a directory's own name (no path); return None if it is neither a base nor a delta.

    Raises: MalformedNameError.
    """
    if match := _DELTA.fullmatch(name):
        visibility = int(match[5] or 0)
        return DeltaName(int(match[2]), int(match[3]), _optional(match[4]), visibility, match[1] is not None)
    if match := _BASE.fullmatch(name):
        return BaseName(int(match[1]), int(match[2] or 0))
    if name.startswith((BASE_PREFIX, DELTA_PREFIX, DELETE_DELTA_PREFIX)):
        raise MalformedNameError(
            f"Directory {name} is named like a base or a delta, but its numbers cannot be read: rename or remove it"
        )
    return None


def parse_file(name: str) -> FileName:
    """Parse a data file's own name (no path); ``bucket`` is NO_BUCKET if the name has no known form."""
    if match := _BUCKET_FILE.fullmatch(name):
        return FileName(int(match[1]), _optional(match[2]))
    if match := _ORIGINAL_FILE.fullmatch(name):
        return FileName(int(match[1]), copy=_optional(match[2]), is_original=True)
    return FileName(NO_BUCKET, is_original=True)


def is_hidden(name: str) -> bool:
    """Return True if readers skip this name: staging directories, checksums, markers."""
    return name.startswith(("_", "."))


def is_bucket_file(name: str) -> bool:
    """Return True if a file of a delta holds events: named ``bucket_...`` and not the side file of such a file."""
    return name.startswith(BUCKET_PREFIX) and not name.endswith(SIDE_FILE_SUFFIX)


def unproven_directory(txn_id: int) -> str:
    """Return the directory where a compaction puts refused outputs, for an operator to inspect."""
    return f"{_UNPROVEN_PREFIX}{txn_id:07d}"


def unproven_owner(name: str) -> int | None:
    """Return the transaction of the compaction whose refused outputs a directory holds; None for other directories."""
    match = _UNPROVEN.fullmatch(name)
    return int(match[1]) if match else None


def staging_directory(txn_id: int, part: int | str) -> str:
    """Return the hidden directory where a statement of a transaction stages its files.

    ``part``: one for each writer.
    """
    return f".acid_stage_{txn_id}_{part}"


def compaction_staging(txn_id: int, part: int | None = None) -> str:
    """Return the hidden directory where a compaction stages an output; ``part``: its number, if there are several."""
    return f".compaction_{txn_id}" + ("" if part is None else f"_{part}")


def staging_owner(name: str) -> int | None:
    """Return the transaction that a hidden directory of unfinished work belongs to; None for any other directory."""
    match = _STAGING.fullmatch(name)
    return int(match[1]) if match else None


def side_file(name: str) -> str:
    """Return the name of the side file of a streaming writer's bucket file, which tells how much of it is committed."""
    return name + SIDE_FILE_SUFFIX


def _visibility(txn_id: int) -> str:
    return f"_v{txn_id:07d}" if txn_id else ""


def _optional(digits: str | None) -> int | None:
    return None if digits is None else int(digits)
