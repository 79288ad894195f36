"""The writer of ORC files without Spark: pyarrow's, with the NULLs of a struct in everything below it.

Rule: nothing else in Python writes ORC. Below a NULL struct Arrow may hold any value; ORC holds none there. pyarrow's
writer writes the value all the same, unless its own slot is NULL, and readers show it in a later row. Of a slice
within a struct with NULLs it takes the rows from the beginning.
"""

import pyarrow as pa
from pyarrow import orc


class NestedOrcWriter(orc.ORCWriter):
    """pyarrow's writer for columns of any depth."""

    def write(self, table: pa.Table) -> None:
        """Write rows; each column is in one piece."""
        arrays = [_written(column.chunk(0)) for column in table.columns] if table.num_rows else table.columns
        super().write(pa.table(arrays, schema=table.schema))


def _written(array: pa.Array) -> pa.Array:
    """Return the values as the writer needs them: what has no children stays as it is."""
    if not array.type.num_fields:
        return array
    if pa.types.is_struct(array.type) and not array.null_count:  # the rows of events: no copy of all columns
        return _struct([_written(field) for field in array.flatten()], array)
    return _pushed_down(pa.concat_arrays([array, array[:0]]))  # a copy is no slice


def _pushed_down(array: pa.Array) -> pa.Array:
    """Return the values with the NULLs of each struct in its fields; ``array`` is no slice."""
    if not array.type.num_fields:
        return array
    if pa.types.is_struct(array.type):
        return _struct([_pushed_down(field) for field in array.flatten()], array)
    return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], children=[_pushed_down(array.values)])


def _struct(fields: list[pa.Array], array: pa.StructArray) -> pa.StructArray:
    nulls = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=nulls)
