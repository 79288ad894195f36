"""ROW__IDs of files without ACID columns: files from before the table's conversion, and files of LOAD DATA.

Rule: such a row's id is (write id of its directory, bucket of its file's name, position), where positions run on over
the files of one bucket in the order of their full paths. Reader and compactor must number alike, because delete events
refer to these ids and a major compaction stores them.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from metastore.acid.bucket import encode
from metastore.acid.names import NO_BUCKET, parse_file
from metastore.errors import InvalidOperationError


class SyntheticIds(NamedTuple):
    """The rows of one file: the n-th (from 0) has the id (``write_id``, ``bucket``, ``first_row_id`` + n)."""

    path: str
    write_id: int
    bucket: int
    first_row_id: int


def synthetic_ids(
    files: Iterable[tuple[str, int]], write_id: int = 0, statement_id: int | None = None
) -> list[SyntheticIds]:
    """Return the ids of rows in one directory's files, given as (path, row count); in path order.

    For original files ``files`` is everything below the ACID directory outside bases and deltas, and the write id is 0.
    Raises: InvalidOperationError for a file whose name tells no bucket: no delete event could ever name its rows.
    """
    rows_before: dict[int, int] = defaultdict(int)
    result = []
    for path, rows in sorted(files):
        bucket = parse_file(path.rpartition("/")[2]).bucket
        if bucket == NO_BUCKET:
            raise InvalidOperationError(
                f"{path} has no bucket number in its name, so its rows can get no ids: rename it like 000000_0"
            )
        result.append(SyntheticIds(path, write_id, encode(bucket, statement_id), rows_before[bucket]))
        rows_before[bucket] += rows
    return result
