"""Files of the writers without Spark up to release 0.2 that show wrong values, or that Spark and Hive refuse to read.

Rule for NULL structs, which moved the values of later rows: such a file holds more values of a field than its rows can
show. The footer counts the written values, and a reader counts the shown ones. Rule for times before 1970: their
fraction of a second is stored as a negative number, which no writer does any more. Only columns whose statistics allow
one of these errors are read, stripe by stripe.
"""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.protobuf import fields, unzigzag
from metastore.acid.violations import Finding, LayoutRule
from metastore.acid_tables.calendars import columns
from metastore.acid_tables.footers import damage_named
from metastore.acid_tables.orc_rows import OrcRows
from metastore.acid_tables.orc_tail import STATISTICS, STRUCT, TIMESTAMP, Tail, numbers
from metastore.files import Files

_VALUES, _OF_TIMES, _HAS_NULL = 1, 9, 10
"""Fields of a column's statistics."""

_LOWEST = 3
"""A field of times' statistics: milliseconds."""

_WRITER = "ORC_CPP"


def check_old(files: Files, location: str, path: str) -> list[Finding]:
    """Check the columns of a file of events or rows. Raises: OSError (it cannot be read, or is no ORC file)."""
    with files.open(f"{location}/{path}") as source, damage_named(path):
        rows = OrcRows(source)
        if rows.writer != _WRITER:
            return []
        try:
            found = list(_columns(rows.schema, Tail.of(source)))
            shifted = [one.name for one in found if one.has_null_struct and _is_shifted(rows, one)]
            negative = [one.name for one in found if one.may_be_early and rows.has_negative_fraction(one.path)]
        except (ValueError, LookupError, zlib.error) as error:
            raise OSError(f"its footer does not fit: {error}") from error
    return [
        *(
            Finding(
                LayoutRule.SHIFTED_VALUES,
                path,
                f"Column {name} has more values than rows to show them in: rows behind a NULL struct show values "
                "of others. Release 0.2 or one before wrote it without Spark: write its rows again from their source",
            )
            for name in shifted
        ),
        *(
            Finding(
                LayoutRule.NEGATIVE_FRACTION,
                path,
                f"Column {name} has times before 1970 whose fractions are stored below 0: Spark and Hive refuse "
                "the file ('nanos > 999999999 or < 0'). Release 0.2 or one before wrote it without Spark: put what "
                "`metastore.client.scan` shows, which is right, in place of its rows by INSERT OVERWRITE",
            )
            for name in negative
        ),
    ]


class _Column(NamedTuple):
    """A column of the rows. ``path``: the reader's name for it; the other fields describe its columns in the file."""

    name: str
    path: str
    kinds: list[int]
    statistics: list[bytes]

    @property
    def counts(self) -> list[int]:
        """The number of values that were written, for each column of the file."""
        return [numbers(one).get(_VALUES, 0) for one in self.statistics]

    @property
    def has_null_struct(self) -> bool:
        """True if some struct in the column is NULL."""
        return any(kind == STRUCT and numbers(one).get(_HAS_NULL) for kind, one in self._with_kinds())

    @property
    def may_be_early(self) -> bool:
        """True if some time in the column may be before 1970."""
        return any(kind == TIMESTAMP and _may_be_early(one) for kind, one in self._with_kinds())

    def _with_kinds(self) -> Iterator[tuple[int, bytes]]:
        return zip(self.kinds, self.statistics, strict=True)


def _columns(schema: pa.Schema, tail: Tail) -> Iterator[_Column]:
    """Yield the columns of the rows."""
    is_event = tuple(schema.names) == EVENT_COLUMNS
    kind, prefix = (schema.field("row").type, "row.") if is_event else (schema, "")
    at = len(EVENT_COLUMNS) + 1 if is_event else 1
    kinds = tail.kinds()
    statistics = [part.content for part in fields(tail.footer) if part.number == STATISTICS]
    for column in kind:
        end = at + columns(column.type)
        yield _Column(column.name, prefix + column.name, kinds[at:end], statistics[at:end])
        at = end


def _may_be_early(statistics: bytes) -> bool:
    """Return True if a column of times has values, and its lowest is before 1970 or unknown."""
    of_times = [part.content for part in fields(statistics) if part.number == _OF_TIMES]
    lowest = [numbers(one).get(_LOWEST) for one in of_times]
    is_late = any(one is not None and unzigzag(one) > 0 for one in lowest)
    return bool(numbers(statistics).get(_VALUES)) and not is_late


def _is_shifted(rows: OrcRows, column: _Column) -> bool:
    """Return True if a field of the column has more values than the rows show."""
    shown: list[int] = []
    for number in range(rows.nstripes):
        found = rows.read_stripe(number, columns=[column.path]).column(0)
        counts = list(_shown(found.flatten()[0] if column.path.startswith("row.") else found))
        shown = [sum(pair) for pair in zip(shown, counts, strict=True)] if shown else counts
    return any(values > count for values, count in zip(column.counts, shown, strict=False))


def _shown(array: pa.Array) -> Iterator[int]:
    """Yield the number of values of a column and of each column below it, in the order of the file's columns."""
    yield len(array) - array.null_count
    if pa.types.is_struct(array.type):
        children = array.flatten()
    elif pa.types.is_map(array.type):
        children = array.values.flatten()
    else:
        children = [array.values] if array.type.num_fields else []
    for child in children:
        yield from _shown(child)
