"""Merge plans: the files of a full-ACID compaction, merged in their present order, bucket by bucket.

Rule: each file is in the order of its ROW__IDs (ACID-12), and the name of its directory bounds the write ids of its
rows. So a file is opened when the merge has come to the lowest of them, and closed behind its last row: deltas of
inserts, which have write ids of their own, are open one after the other. The events of a delete delta may name any row
below its own write ids: those are open from the beginning.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from metastore.acid.bucket import decode
from metastore.acid.names import BaseName, DeltaName, parse_directory
from metastore.acid.orc_footer import RowKey
from metastore.compaction.working.rules import InputFile

HIGHEST_IN_FILES = (1 << 63) - 2
"""The highest write id that a file may hold if its directory does not tell."""
LARGE_STRIPE = 4 << 20
"""The mean size from which on stripes are copied as they lie."""


class MergedFile(NamedTuple):
    """A file to merge; its rows have the write ids ``lowest`` to ``highest``."""

    path: str
    lowest: int
    highest: int
    is_of_deletes: bool = False


def by_bucket(files: Iterable[InputFile]) -> list[list[MergedFile]]:
    """Return the files with rows of each bucket, in the order in which they are opened."""
    buckets: dict[int, list[MergedFile]] = defaultdict(list)
    for file in files:
        if file.rows:
            buckets[file.bucket].append(MergedFile(file.path, *_write_ids(file), file.is_of_deletes))
    return [sorted(bucket, key=lambda file: (file.lowest, file.path)) for _, bucket in sorted(buckets.items())]


def open_at_once(bucket: Sequence[MergedFile]) -> int:
    """Return the most files of a bucket that a merge has open at a time."""
    most = now = 0
    for _, change in sorted([(file.lowest, 1) for file in bucket] + [(file.highest + 1, -1) for file in bucket]):
        now += change
        most = max(most, now)
    return most


def _write_ids(file: InputFile) -> tuple[int, int]:
    """Return the lowest and the highest write id that the events of a file may name, by its directory."""
    match parse_directory(file.path.rsplit("/", 2)[-2]):
        case DeltaName() as name:
            return (0 if name.is_delete else name.min_write_id), name.max_write_id
        case BaseName() as name:
            return 0, max(0, name.write_id)
        case _:
            return 0, HIGHEST_IN_FILES


class Stripe(NamedTuple):
    """A stripe: ``lowest`` and ``highest`` bound each number of its ROW__IDs; ``last``: the last row's ROW__ID."""

    rows: int
    size: int
    lowest: RowKey
    highest: RowKey
    last: RowKey


class StripedFile(NamedTuple):
    """A file of insert events by its footer. ``form``: "" if its stripes cannot stand in another file."""

    path: str
    rows: int
    form: str
    stripes: Sequence[Stripe]


def in_one_file(bucket: int, files: Sequence[StripedFile]) -> list[StripedFile]:
    """Return files whose stripes are copied into one, in this order; [] if their rows have to be read.

    The footers prove for the output the counts of a job's tasks: all rows, of the bucket, each stripe behind the last
    row of the one before. Small stripes are not copied, since every later read would open each of them.
    """
    ordered = sorted(files, key=lambda file: [stripe.lowest for stripe in file.stripes[:1]])
    stripes = [stripe for file in ordered for stripe in file.stripes]
    forms = {file.form for file in ordered}
    may_be = (
        len(forms) == 1
        and "" not in forms
        and all(sum(stripe.rows for stripe in file.stripes) == file.rows for file in ordered)
        and all(decode(key.bucket).writer_id == bucket for stripe in stripes for key in (stripe.lowest, stripe.highest))
        and all(one.last < other.lowest for one, other in pairwise(stripes))
        and sum(stripe.size for stripe in stripes) >= LARGE_STRIPE * len(stripes)
    )
    return ordered if may_be else []


def parts(files: Sequence[StripedFile], count: int) -> list[RowKey]:
    """Return ROW__IDs that divide the rows into parts of about equal size, by the footers; at most ``count`` parts."""
    stripes = [(stripe.lowest, stripe.rows) for file in files for stripe in file.stripes]
    rows = sum(rows for _, rows in stripes)
    return sorted(set(_reached(stripes, [place * rows // count for place in range(1, count)]))) if rows else []


def _reached(rows: Iterable[tuple[RowKey, int]], numbers: Sequence[int]) -> list[RowKey]:
    """Return, for each number, the key at which the count of rows, added up in key order, exceeds it."""
    keys = sorted(rows)
    sums = list(accumulate(count for _, count in keys))
    return [keys[bisect_right(sums, number)][0] for number in numbers]
