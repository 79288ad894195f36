"""Files in which a NULL struct has moved the values of later rows: of the writers without Spark, up to release 0.2.

Rule: such a file holds more values of a field than it has rows to show them in. Its footer counts the values that were
written, and a reader finds the rows that have one. Only columns with a NULL struct are read, stripe by stripe.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyarrow import orc

from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.protobuf import fields
from metastore.acid.violations import Finding, Rule
from metastore.acid_tables.footers import damage_named
from metastore.acid_tables.orc_tail import STATISTICS, Tail, numbers
from metastore.files import Files

_VALUES, _HAS_NULL = 1, 10
"""Fields of a column's statistics."""

_WRITER = "ORC_CPP"


def check_nulls(files: Files, location: str, path: str) -> list[Finding]:
    """Check the nested columns of a file of events or rows. Raises: OSError (it cannot be read, or is no ORC file)."""
    with files.open(f"{location}/{path}") as source, damage_named(path):
        opened = orc.ORCFile(source)
        if opened.writer != _WRITER:
            return []
        try:
            parts = fields(Tail.of(source).footer)
            statistics = [numbers(part.value) for part in parts if part.number == STATISTICS]
        except ValueError as error:
            raise OSError(f"its footer cannot be read: {error}") from error
        return [
            Finding(
                Rule.SHIFTED_VALUES,
                path,
                f"Column {name} has more values than rows to show them in: rows behind a NULL struct show values of "
                "others. Release 0.2 or one before wrote it without Spark: write its rows again from their source",
            )
            for name, at, whole in _suspects(opened.schema, statistics)
            if _are_shifted(opened, whole, [column.get(_VALUES, 0) for column in statistics[at:]])
        ]


def _suspects(schema: pa.Schema, statistics: list[dict[int, int]]) -> Iterator[tuple[str, int, str]]:
    """Yield each column with a NULL struct: its name, its number and what the reader calls it."""
    is_event = tuple(schema.names) == EVENT_COLUMNS
    columns, prefix = (schema.field("row").type, "row.") if is_event else (schema, "")
    at = len(EVENT_COLUMNS) + 1 if is_event else 1
    for column in columns:
        size = _size(column.type)
        if any(statistics[at + place].get(_HAS_NULL) for place in _structs(column.type, 0)):
            yield column.name, at, prefix + column.name
        at += size


def _size(kind: pa.DataType) -> int:
    """Return how many columns of the file a type takes: one for itself, and those of its children."""
    return 1 + sum(map(_size, _children(kind)))


def _structs(kind: pa.DataType, at: int) -> Iterator[int]:
    """Yield the places of structs in a type whose own is ``at``."""
    if pa.types.is_struct(kind):
        yield at
    for child in _children(kind):
        at += 1
        yield from _structs(child, at)
        at += _size(child) - 1


def _children(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(number).type for number in range(kind.num_fields)]


def _are_shifted(opened: orc.ORCFile, column: str, counted: list[int]) -> bool:
    """Return True if a field of the column has more values than ``counted`` says are shown."""
    shown: list[int] = []
    for number in range(opened.nstripes):
        found = opened.read_stripe(number, columns=[column]).column(0)
        counts = list(_shown(found.flatten()[0] if column.startswith("row.") else found))
        shown = [sum(pair) for pair in zip(shown, counts, strict=True)] if shown else counts
    return any(values > count for values, count in zip(counted, shown, strict=False))


def _shown(array: pa.Array) -> Iterator[int]:
    """Yield how many values there are of a column and of each below it, in the order of the file's columns."""
    yield len(array) - array.null_count
    if pa.types.is_struct(array.type):
        children = array.flatten()
    elif pa.types.is_map(array.type):
        children = array.values.flatten()
    else:
        children = [array.values] if array.type.num_fields else []
    for child in children:
        yield from _shown(child)
