"""The delete events of a snapshot as bits, a bit per row id. A scan looks up each row's bit: no join, no Spark job.

Rules: the answer is exact: write id, bucket, row id and directory identify a row, and none of them is shortened. The
driver reads the delete files itself: four numbers of each event, which take next to no space in ORC. The fifth, the
write id of the event's writer, is read only if the name of the delta does not say that all its events are visible.
There are no bits if they would take too much space (too many events, or few events whose row ids are far apart); a join
does the work then.

A chunk is 2**22 neighbouring row ids of one write id, bucket and directory; its bits are a range of ``words``. The
look-up of a chunk needs no search: two numbers name it exactly, and both mixed, modulo a number that keeps all chunks
apart, are its place in a table. Spark's scans do the look-up in Java (``DeletedBits.java``), all others by ``holds``.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metastore.acid.events import DELETE_EVENT, EVENT_COLUMNS
from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import hidden_write_ids
from metastore.acid_tables.delete_files import DeleteFiles
from metastore.acid_tables.footers import READERS
from metastore.acid_tables.listing import Directory
from metastore.files import Files

MAX_EVENTS, MAX_WORDS, MAX_CHUNKS = 20_000_000, 1 << 20, 512
"""The most that the driver reads, and that each task gets: 2**20 words are 8 MB of bits."""

CHUNK_BITS, BUCKET_BITS, HIGH_BITS = 22, 31, 41
_MAX_WRITE_ID, _MAX_DIRECTORIES = 1 << 32, 1 << CHUNK_BITS
_MAX_PLACES = 1 << 17
POSITIVE = (1 << 63) - 1
*_COLUMNS, _BY, _ROW = EVENT_COLUMNS

Numbers = NDArray[np.int64]


class Chunk(NamedTuple):
    """The name of a chunk: write id and bucket in one number, directory and the row id's upper part in the other."""

    version: int
    part: int


@dataclass(frozen=True)
class DeletedRows:
    """The bits (``words``), and the table of their chunks: the other arrays have an entry per place."""

    versions: Numbers
    parts: Numbers
    starts: Numbers
    ends: Numbers
    words: Numbers
    shift: int

    def in_bytes(self) -> bytes:
        """Serialize the arrays as ``AcidOrcFormat.java`` reads them, each after its length."""
        arrays = (self.versions, self.parts, self.starts, self.ends, self.words)
        return b"".join(len(numbers).to_bytes(8, "big") + numbers.astype(">i8").tobytes() for numbers in arrays)

    def holds(self, write_ids: Numbers, buckets: Numbers, row_ids: Numbers, directory: int) -> NDArray[np.bool_]:
        """Return a mask of these rows of a directory that are deleted."""
        versions = write_ids << BUCKET_BITS | buckets
        parts = directory << HIGH_BITS | row_ids >> CHUNK_BITS
        at = ((versions ^ parts << self.shift) & POSITIVE) % len(self.versions)
        words = self.starts[at] + ((row_ids & (1 << CHUNK_BITS) - 1) >> 6)
        is_there = (self.versions[at] == versions) & (self.parts[at] == parts) & (words < self.ends[at])
        bits = self.words[np.where(is_there, words, 0)] >> (row_ids & 63)
        return is_there & (bits & 1 == 1)


def deleted_rows(
    files: Files, directories: Sequence[Directory], write_ids: ValidWriteIdList, deletes: DeleteFiles
) -> DeletedRows | None:
    """Return the visible delete events of all directories; None if bits would take too much space.

    Raises: OSError, with the path, for a delete file that cannot be read.
    """
    count = deletes.events(file for directory in directories for file in directory.sources.deletes)
    if count is None or count > MAX_EVENTS:
        return None
    if write_ids.high_watermark >= _MAX_WRITE_ID or len(directories) >= _MAX_DIRECTORIES:
        return None
    tasks = []
    for number, directory in enumerate(directories):
        unseen = _unseen(directory, write_ids)
        tasks += [(number, file.path, unseen) for file in directory.sources.deletes]

    def read(number: int, path: str, unseen: Sequence[int] | None) -> Iterator[tuple[Chunk, Numbers]]:
        events = deletes.read(files, path, _COLUMNS if unseen is None else [*_COLUMNS, _BY])
        return _chunks(_counting(events, write_ids.high_watermark, unseen), number)

    offsets_of: dict[Chunk, list[Numbers]] = defaultdict(list)
    with ThreadPoolExecutor(READERS) as pool:  # An early return cancels reads that have not begun.
        for of_file in pool.map(lambda task: read(*task), tasks):
            for chunk, offsets in of_file:
                offsets_of[chunk].append(offsets)
                if len(offsets_of) > MAX_CHUNKS:
                    return None
    return _tabled(offsets_of)


def _unseen(directory: Directory, write_ids: ValidWriteIdList) -> Sequence[int] | None:
    """Return write ids whose events do not count; None if the deltas' names say that all count."""
    if any(delta.visible is RangeState.SOME for delta in directory.state.delete_deltas):
        return hidden_write_ids(directory.state.delete_deltas, write_ids)
    return None


def _counting(events: pa.Table, high_watermark: int, unseen: Sequence[int] | None) -> list[Numbers]:
    """Return write id, bucket and row id of the delete events that count. Most often all do, and nothing is copied."""
    operation, *places = (events[name].to_numpy() for name in _COLUMNS)
    counts = operation == DELETE_EVENT
    if unseen is not None:
        current = events[_BY].to_numpy()
        counts &= (current <= high_watermark) & ~np.isin(current, unseen)
    return places if counts.all() else [numbers[counts] for numbers in places]


def _chunks(events: Sequence[Numbers], directory: int) -> Iterator[tuple[Chunk, Numbers]]:
    """Yield the events as runs of neighbours in the same chunk: the chunk, and the lower parts of their row ids.

    The arrays are cut at once, in the calling thread. Chunks are named lazily: they may be too many.
    """
    write_id, bucket, row_id = events
    if not len(row_id):
        return iter(())
    upper = row_id >> CHUNK_BITS
    begins = np.append(0, np.flatnonzero(_changes(write_id) | _changes(bucket) | _changes(upper)) + 1)
    versions = write_id[begins] << BUCKET_BITS | bucket[begins]
    parts = directory << HIGH_BITS | upper[begins]
    offsets = np.split(row_id & (1 << CHUNK_BITS) - 1, begins[1:])
    return zip(map(Chunk, versions.tolist(), parts.tolist()), offsets, strict=True)


def _changes(numbers: Numbers) -> NDArray[np.bool_]:
    """Return a mask of the numbers whose successor differs."""
    return numbers[1:] != numbers[:-1]


def _tabled(offsets_of: dict[Chunk, list[Numbers]]) -> DeletedRows | None:
    bits = {chunk: _bits(offsets) for chunk, offsets in offsets_of.items()}
    if sum(map(len, bits.values())) > MAX_WORDS:
        return None
    chunks = list(bits)
    for shift in (0, 3, 7, 12, 19):
        mixed = np.array([(chunk.version ^ chunk.part << shift) & POSITIVE for chunk in chunks], np.int64)
        if (places := _apart(mixed)) is not None:
            return _filled(bits, mixed % places, places, shift)
    return None


def _apart(mixed: Numbers) -> int | None:
    """Return a divisor that leaves a different remainder for each number; None if it would need too large a table."""
    places = len(mixed) | 1
    while places < _MAX_PLACES:
        if len(np.unique(mixed % places)) == len(mixed):
            return places
        places += (places >> 5) + 2 & ~1
    return None


def _filled(bits: dict[Chunk, Numbers], at: Numbers, places: int, shift: int) -> DeletedRows:
    versions, parts, starts, ends = (np.full(places, value, np.int64) for value in (-1, -1, 0, 0))
    sizes = np.array([len(words) for words in bits.values()], np.int64)
    versions[at], parts[at] = [chunk.version for chunk in bits], [chunk.part for chunk in bits]
    ends[at] = np.cumsum(sizes)
    starts[at] = np.cumsum(sizes) - sizes
    return DeletedRows(versions, parts, starts, ends, np.concatenate([*bits.values(), np.zeros(1, np.int64)]), shift)


def _bits(offsets: Sequence[Numbers]) -> Numbers:
    """Return words of 64 bits, the lowest first, up to the highest bit that is set."""
    flags = np.zeros((max(int(numbers.max()) for numbers in offsets) >> 6) + 1 << 6, np.bool_)
    for numbers in offsets:
        flags[numbers] = True
    return np.packbits(flags, bitorder="little").view("<i8").astype(np.int64)
