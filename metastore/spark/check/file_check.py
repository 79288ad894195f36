"""Checks inside an ACID file: the notes in its footer, and the five columns beside the row.

Rule: only those five columns are read, stripe by stripe, and of the rows what `old_files` needs. A violation is
reported once for each rule and file, with its first place.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from metastore.acid.bucket import decode
from metastore.acid.events import DELETE_EVENT, EVENT_COLUMNS, ID_COLUMNS, INSERT_EVENT
from metastore.acid.names import BaseName, DeltaName, parse_file
from metastore.acid.orc_footer import KEY_INDEX, VERSION
from metastore.acid.state import BaseDirectory, DeltaDirectory
from metastore.acid.violations import Finding, LayoutRule
from metastore.acid_tables.footers import OrcTail, damage_named, event_counts, orc_tail
from metastore.errors import InvalidInputError
from metastore.files import Files
from metastore.spark.check.old_files import check_old

_IDS = [*EVENT_COLUMNS[:-1]]


def check_file(files: Files, location: str, path: str, directory: BaseDirectory | DeltaDirectory) -> list[Finding]:
    """Check a file of a base or delta; ``path`` is relative to ``location``, the ACID directory."""
    try:
        tail = orc_tail(files, f"{location}/{path}")
        if tail.fields != EVENT_COLUMNS:
            if directory.may_be_raw:
                return []
            return [
                Finding(LayoutRule.WRONG_COLUMNS, path, f"{', '.join(tail.fields)} are not the columns of ACID files")
            ]
        stripes = _read_stripes(files, f"{location}/{path}")
        of_old_writer = check_old(files, location, path)
    except OSError as error:
        return [Finding(LayoutRule.UNREADABLE_FILE, path, str(error))]
    check = _FileCheck(path, tail, directory, [stripe.combine_chunks() for stripe in stripes])
    return [*check.notes(), *check.events(), *of_old_writer]


@dataclass(frozen=True)
class _FileCheck:
    path: str
    tail: OrcTail
    directory: BaseDirectory | DeltaDirectory
    stripes: list[pa.Table]

    def notes(self) -> Iterator[Finding]:
        """Check the three notes that Hive wants in a footer."""
        if self.tail.notes.get(VERSION, b"2") != b"2":
            yield self._found(
                LayoutRule.OLD_VERSION,
                f"Its footer says ACID version {self.tail.notes[VERSION].decode('utf-8', 'replace')}",
            )
        counts = event_counts(self.tail)
        if counts is None:
            yield self._found(
                LayoutRule.WRONG_STATISTICS, "hive.acid.stats is missing: Hive 3 fails on such a delete file"
            )
        elif sum(counts) != self.tail.rows:
            yield self._found(
                LayoutRule.WRONG_STATISTICS,
                f"hive.acid.stats counts {sum(counts)} events, and there are {self.tail.rows}",
            )
        yield from self._key_index()

    def _key_index(self) -> Iterator[Finding]:
        if KEY_INDEX not in self.tail.notes:
            yield self._found(LayoutRule.NO_KEY_INDEX, "Hive before 4 takes the file for one without ACID columns")
            return
        entries = [entry for entry in self.tail.notes[KEY_INDEX].decode("utf-8", "replace").split(";") if entry]
        if len(entries) != len(self.stripes):
            yield self._found(
                LayoutRule.SHORT_KEY_INDEX,
                f"It has {len(entries)} keys for {len(self.stripes)} stripes: "
                "Hive's row reader fails on the later ones",
            )
            return
        for number, (entry, stripe) in enumerate(zip(entries, self.stripes, strict=True)):
            last = ",".join(str(stripe[name][-1].as_py()) for name in ID_COLUMNS) if stripe.num_rows else entry
            if entry != last:
                yield self._found(
                    LayoutRule.WRONG_KEY_INDEX,
                    f"Key {number} is {entry}, and the stripe ends with {last}: Hive loses rows, or shows deleted ones",
                )
                return

    def events(self) -> Iterator[Finding]:
        """Check operation, bucket, write id and order of every event."""
        if not self.stripes:
            return
        table = pa.concat_tables(self.stripes).combine_chunks()
        if not table.num_rows:
            return
        yield from self._operations(table)
        yield from self._buckets(table)
        yield from self._write_ids(table)
        yield from self._doubled(table)
        out_of_order = _out_of_order(table, is_delete=self._is_delete)
        if not self._is_delete:
            out_of_order = pc.and_not(out_of_order, _equals_previous(table))
        if (at := _first(out_of_order)) is not None:
            yield self._found(
                LayoutRule.UNSORTED,
                f"Row {at + 1} does not come behind row {at} in the order of (write id, "
                "bucket, row id): readers that merge miss deletes",
            )

    def _doubled(self, table: pa.Table) -> Iterator[Finding]:
        if not self._is_delete and (at := _first(_equals_previous(table))) is not None:
            yield self._found(
                LayoutRule.DOUBLED_ROW,
                f"Rows {at} and {at + 1} have one id, {_row_id(table, at)}: queries show the row twice",
            )

    @property
    def _is_delete(self) -> bool:
        return isinstance(self.directory, DeltaDirectory) and self.directory.is_delete

    def _operations(self, table: pa.Table) -> Iterator[Finding]:
        expected = DELETE_EVENT if self._is_delete else INSERT_EVENT
        if (at := _first(pc.not_equal(table["operation"], expected))) is not None:
            operation = table["operation"][at].as_py()
            yield self._found(
                LayoutRule.WRONG_OPERATION, f"Row {at} has operation {operation}, where {expected} belongs"
            )

    def _buckets(self, table: pa.Table) -> Iterator[Finding]:
        named = parse_file(self.path.rpartition("/")[2]).bucket
        for number in table["bucket"].unique().to_pylist():
            try:
                writer = decode(number).writer_id
            except InvalidInputError as error:
                yield self._found(LayoutRule.WRONG_BUCKET, str(error))
                return
            if writer != named:
                yield self._found(
                    LayoutRule.WRONG_BUCKET, f"It holds rows of bucket {writer}: nobody looks here for them"
                )
                return

    def _write_ids(self, table: pa.Table) -> Iterator[Finding]:
        low, high = _write_id_range(self.directory)
        current = table["currentTransaction"]
        if (at := _first(pc.or_(pc.less(current, low), pc.greater(current, high)))) is not None:
            yield self._found(
                LayoutRule.WRONG_WRITE_ID,
                f"Row {at} is of write id {current[at].as_py()}, and its directory is for {low} to {high}",
            )

    def _found(self, rule: LayoutRule, text: str) -> Finding:
        return Finding(rule, self.path, text)


def check_doubles(files: Files, location: str, directories: Sequence[BaseDirectory | DeltaDirectory]) -> list[Finding]:
    """Return findings for rows that are in two files of a reader's choice.

    ``directories``: that choice, without delete deltas.

    Ids have the bucket and the write id in them, so only files of one bucket are compared, and only of directories
    whose names have a write id in common: statements of one transaction, or two results of one compaction.
    """
    sound = [directory for directory in directories if not directory.side_files]  # an open file cannot be read whole
    pairs = [(first, second) for first, second in combinations(sound, 2) if _overlap(first, second)]
    return [
        finding
        for first_directory, second_directory in pairs
        for first_file in first_directory.bucket_files
        for second_file in second_directory.bucket_files
        if first_file.size and second_file.size and _bucket(first_file.path) == _bucket(second_file.path)
        for finding in _in_both(files, location, first_file.path, second_file.path)
    ]


def _overlap(first: BaseDirectory | DeltaDirectory, second: BaseDirectory | DeltaDirectory) -> bool:
    (low, high), (from_, to) = _write_id_range(first), _write_id_range(second)
    return low <= to and from_ <= high


def _write_id_range(directory: BaseDirectory | DeltaDirectory) -> tuple[int, int]:
    name = directory.name
    return (0, name.write_id) if isinstance(name, BaseName) else _range(name)


def _bucket(path: str) -> int:
    return parse_file(path.rpartition("/")[2]).bucket


def _in_both(files: Files, location: str, first: str, second: str) -> Iterator[Finding]:
    with suppress(OSError):  # check_file reports an unreadable file
        if any(orc_tail(files, f"{location}/{path}").fields != EVENT_COLUMNS for path in (first, second)):
            return
        rows, others = (_read_ids(files, f"{location}/{path}").select(ID_COLUMNS) for path in (first, second))
        common = rows.join(others, list(ID_COLUMNS), join_type="left semi")
        common = common.sort_by([(name, "ascending") for name in ID_COLUMNS])
        if common.num_rows:
            yield Finding(
                LayoutRule.DOUBLED_ROW,
                second,
                f"{common.num_rows} of its rows stand in {first} as well, the first "
                f"with the id {_row_id(common, 0)}: queries show them twice",
            )


def _read_ids(files: Files, path: str) -> pa.Table:
    with files.open(path) as source, damage_named(path):
        return orc.ORCFile(source).read(columns=_IDS)


def _read_stripes(files: Files, path: str) -> list[pa.Table]:
    with files.open(path) as source, damage_named(path):
        opened = orc.ORCFile(source)
        return [pa.table(opened.read_stripe(number, columns=_IDS)) for number in range(opened.nstripes)]


def _equals_previous(table: pa.Table) -> pa.Array:
    before, after = table.slice(0, table.num_rows - 1), table.slice(1)
    same = [pc.equal(before[name], after[name]) for name in ID_COLUMNS]
    return pc.and_(pc.and_(same[0], same[1]), same[2])


def _row_id(table: pa.Table, at: int) -> list[int]:
    return [table[name][at].as_py() for name in ID_COLUMNS]


def _range(name: DeltaName) -> tuple[int, int]:
    return name.min_write_id, name.max_write_id


def _out_of_order(table: pa.Table, *, is_delete: bool) -> pa.Array:
    """Return a flag for each row but the first: True if the row does not belong behind the row before it."""
    before, after = table.slice(0, table.num_rows - 1), table.slice(1)
    order = [(name, pc.less) for name in ID_COLUMNS]
    if is_delete:  # several deletes of one row: the newest comes first
        order.append(("currentTransaction", pc.greater))
    in_order = None
    for name, precedes in reversed(order):
        comes_first = precedes(before[name], after[name])
        same = pc.equal(before[name], after[name])
        in_order = comes_first if in_order is None else pc.or_(comes_first, pc.and_(same, in_order))
    return pc.invert(in_order)


def _first(flags: pa.ChunkedArray | pa.Array) -> int | None:
    """Return the position of the first true flag; None: there is none."""
    at = int(pc.index(flags, value=True).as_py())
    return at if at >= 0 else None
