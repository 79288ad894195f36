"""Hive's notes in the footers of ACID ORC files, and the merging of several files' footers.

Every Hive before 4 needs the notes to recognise an ACID file; a wrong or short key index loses rows silently.
Source: ACID-11; Hive's OrcRecordUpdater for the three keys, the ORC v1 specification (file tail, compression chunks).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from metastore.acid.protobuf import bytes_field

KEY_INDEX = "hive.acid.key.index"
STATS = "hive.acid.stats"
VERSION = "hive.acid.version"

_METADATA_FIELD = 5


class RowKey(NamedTuple):
    """The sort key of an event inside a file."""

    write_id: int
    bucket: int
    row_id: int


def acid_entries(stripe_ends: Iterable[RowKey], rows: int, *, is_delete: bool) -> dict[str, bytes]:
    """Return Hive's three entries: the last key of every stripe, the counts of events, and the format's version."""
    index = "".join(f"{key.write_id},{key.bucket},{key.row_id};" for key in stripe_ends)
    stats = f"0,0,{rows}" if is_delete else f"{rows},0,0"
    return {KEY_INDEX: index.encode(), STATS: stats.encode(), VERSION: b"2"}


def metadata_entries(entries: Mapping[str, bytes]) -> bytes:
    """Encode user metadata as fields of the footer."""
    return b"".join(
        bytes_field(_METADATA_FIELD, bytes_field(1, name.encode()) + bytes_field(2, value))
        for name, value in entries.items()
    )
