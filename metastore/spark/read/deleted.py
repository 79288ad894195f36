"""The delete events of a snapshot as bits, one for each row id, which a scan looks into for each row: no join, no job.

Rules kept here. The answer is exact: a row is found by its write id, bucket, row id and directory, of which nothing is
cut off. The driver reads the delete files itself, four numbers for each event, which take next to no space in ORC; by
whom it is, the fifth, only where the name of a delta does not tell that all of them are visible.
Where the bits would take too much space, because the events are few for how far their row ids spread or too many, there
are none, and a join has to do.

A chunk is 2**22 neighbouring row ids of one write id, bucket and directory; its bits are some of ``words``. Chunks are
found without searching: two numbers name a chunk exactly, and both mixed, modulo a number by which no two chunks meet,
are its place in a table. Scans look into it in Java (``AcidOrcReader.java``); ``holds`` says the same for other rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from metastore.acid.events import DELETE_EVENT
from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import hidden_write_ids
from metastore.files import Files
from metastore.spark.jvm.compiled import jvm_of
from metastore.spark.read.delete_files import DeleteFiles
from metastore.spark.read.footers import READERS
from metastore.spark.read.listing import Directory

MAX_EVENTS, MAX_WORDS, MAX_CHUNKS = 20_000_000, 1 << 20, 512
"""What is read by the driver and carried to each task at most: 8 MB of bits."""

_CHUNK_BITS, _BUCKET_BITS, _HIGH_BITS = 22, 31, 41
_MAX_WRITE_ID, _MAX_DIRECTORIES = 1 << 32, 1 << _CHUNK_BITS
_MAX_PLACES = 1 << 17
_POSITIVE = (1 << 63) - 1
_COLUMNS, _BY = ["operation", "originalTransaction", "bucket", "rowId"], "currentTransaction"

Numbers = NDArray[np.int64]


class Chunk(NamedTuple):
    """What names a chunk: write id and bucket in one number, directory and the row id's upper part in the other."""

    version: int
    part: int


@dataclass(frozen=True)
class DeletedRows:
    """The bits, and the table of their chunks: an entry per place."""

    versions: Numbers
    parts: Numbers
    starts: Numbers
    ends: Numbers
    words: Numbers
    shift: int

    def in_bytes(self) -> bytes:
        """The arrays as ``AcidOrcFormat.java`` takes them, each after its length."""
        arrays = (self.versions, self.parts, self.starts, self.ends, self.words)
        return b"".join(len(one).to_bytes(8, "big") + one.astype(">i8").tobytes() for one in arrays)

    def holds(self, spark: SparkSession, write_id: str, bucket: str, row_id: str, directory: str) -> Column:
        """Whether the row with these columns is deleted; not where one of them is NULL."""
        table = _Arrays(spark)
        version = F.expr(f"shiftleft({write_id}, {_BUCKET_BITS}) | CAST({bucket} AS BIGINT)")
        part = F.expr(f"shiftleft(CAST({directory} AS BIGINT), {_HIGH_BITS}) | shiftright({row_id}, {_CHUNK_BITS})")
        mixed = version.bitwiseXOR(F.shiftleft(part, self.shift)).bitwiseAND(F.lit(_POSITIVE))
        place = (mixed % F.lit(len(self.versions))).cast("int")
        word = F.get(table.of(self.starts), place) + F.expr(f"shiftright({row_id} & {(1 << _CHUNK_BITS) - 1}, 6)")
        is_set = F.expr(f"CAST({row_id} & 63 AS INT)")
        bit = F.call_function("shiftrightunsigned", F.get(table.of(self.words), word.cast("int")), is_set)
        found = (
            (F.get(table.of(self.versions), place) == version)
            & (F.get(table.of(self.parts), place) == part)
            & (word < F.get(table.of(self.ends), place))
            & (bit.bitwiseAND(F.lit(1)) == 1)
        )
        return F.coalesce(found, F.lit(False))  # noqa: FBT003 - a literal of SQL


def deleted_rows(
    files: Files, directories: Sequence[Directory], write_ids: ValidWriteIdList, deletes: DeleteFiles
) -> DeletedRows | None:
    """The visible delete events of all directories; None where bits are not the way to hold them."""
    count = deletes.events(file for one in directories for file in one.sources.deletes)
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

    found: dict[Chunk, list[Numbers]] = defaultdict(list)
    with ThreadPoolExecutor(READERS) as pool:  # whose map drops what has not begun when this returns early
        for of_file in pool.map(lambda task: read(*task), tasks):
            for chunk, offsets in of_file:
                found[chunk].append(offsets)
                if len(found) > MAX_CHUNKS:
                    return None
    return _tabled(found)


def _unseen(directory: Directory, write_ids: ValidWriteIdList) -> Sequence[int] | None:
    """Write ids whose events do not count; None where the names of the deltas tell that all do."""
    if any(delta.visible is RangeState.SOME for delta in directory.state.delete_deltas):
        return hidden_write_ids(directory.state.delete_deltas, write_ids)
    return None


def _counting(events: pa.Table, high_watermark: int, unseen: Sequence[int] | None) -> list[Numbers]:
    """Write id, bucket and row id of those delete events that count: most often all, which are not copied then."""
    operation, *places = (events[name].to_numpy() for name in _COLUMNS)
    counts = operation == DELETE_EVENT
    if unseen is not None:
        current = events[_BY].to_numpy()
        counts &= (current <= high_watermark) & ~np.isin(current, unseen)
    return places if counts.all() else [one[counts] for one in places]


def _chunks(events: Sequence[Numbers], directory: int) -> Iterator[tuple[Chunk, Numbers]]:
    """The events as runs of neighbours in one chunk each: the chunk, and the lower parts of their row ids.

    The arrays are cut at once, in the thread that asks; chunks are named as they are wanted: they may be too many.
    """
    write_id, bucket, row_id = events
    if not len(row_id):
        return iter(())
    upper = row_id >> _CHUNK_BITS
    begins = np.append(0, np.flatnonzero(_changes(write_id) | _changes(bucket) | _changes(upper)) + 1)
    versions = write_id[begins] << _BUCKET_BITS | bucket[begins]
    parts = directory << _HIGH_BITS | upper[begins]
    offsets = np.split(row_id & (1 << _CHUNK_BITS) - 1, begins[1:])
    return zip(map(Chunk, versions.tolist(), parts.tolist()), offsets, strict=True)


def _changes(numbers: Numbers) -> NDArray[np.bool_]:
    """Whether the number after each is another one."""
    return numbers[1:] != numbers[:-1]


def _tabled(found: dict[Chunk, list[Numbers]]) -> DeletedRows | None:
    bits = {chunk: _bits(offsets) for chunk, offsets in found.items()}
    if sum(map(len, bits.values())) > MAX_WORDS:
        return None
    chunks = list(bits)
    for shift in (0, 3, 7, 12, 19):
        mixed = np.array([(one.version ^ one.part << shift) & _POSITIVE for one in chunks], np.int64)
        if (places := _apart(mixed)) is not None:
            return _filled(bits, mixed % places, places, shift)
    return None


def _apart(mixed: Numbers) -> int | None:
    """A number by which all of these have different remainders."""
    places = len(mixed) | 1
    while places < _MAX_PLACES:
        if len(np.unique(mixed % places)) == len(mixed):
            return places
        places += (places >> 5) + 2 & ~1
    return None


def _filled(bits: dict[Chunk, Numbers], at: Numbers, places: int, shift: int) -> DeletedRows:
    versions, parts, starts, ends = (np.full(places, value, np.int64) for value in (-1, -1, 0, 0))
    sizes = np.array([len(one) for one in bits.values()], np.int64)
    versions[at], parts[at] = [one.version for one in bits], [one.part for one in bits]
    ends[at] = np.cumsum(sizes)
    starts[at] = np.cumsum(sizes) - sizes
    return DeletedRows(versions, parts, starts, ends, np.concatenate([*bits.values(), np.zeros(1, np.int64)]), shift)


def _bits(offsets: Sequence[Numbers]) -> Numbers:
    """Words of 64 bits, the lowest first, up to the highest that is set."""
    flags = np.zeros((max(int(one.max()) for one in offsets) >> 6) + 1 << 6, np.bool_)
    for one in offsets:
        flags[one] = True
    return np.packbits(flags, bitorder="little").view("<i8").astype(np.int64)


class _Arrays:
    """Arrays as literals of a plan: Spark's own for Python lists would box every number, and write it into the plan."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm = jvm_of(spark)
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001

    def of(self, numbers: Numbers) -> Column:
        """An array<bigint>."""
        values = self._gateway.new_array(self._jvm.long, len(numbers))
        self._jvm.java.nio.ByteBuffer.wrap(numbers.astype(">i8").tobytes()).asLongBuffer().get(values)
        types = self._jvm.org.apache.spark.sql.types
        expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        array = types.ArrayType(types.DataType.fromDDL("bigint"), False)  # noqa: FBT003 - without nulls
        literal = expressions.Literal(expressions.UnsafeArrayData.fromPrimitiveArray(values), array)
        return Column(self._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(literal))
