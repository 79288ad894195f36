"""Arrow columns in the form that Arrow's ORC writer needs: with the NULLs of a struct in everything below it.

Below a NULL struct Arrow may hold any value; ORC holds none there. The writer writes the value all the same, unless its
own slot is NULL, and readers show it in a later row. Of a slice within a struct with NULLs it takes the rows from the
beginning.
"""

import pyarrow as pa


def pushed_down(array: pa.Array) -> pa.Array:
    """Copy the NULLs of a column's structs into their fields; a column without children stays as it is."""
    if not array.type.num_fields:
        return array
    if pa.types.is_struct(array.type) and not array.null_count:  # Only its fields may need a copy.
        return _struct([pushed_down(field) for field in array.flatten()], array)
    return _of_whole(pa.concat_arrays([array, array[:0]]))  # A copy is no slice.


def _of_whole(array: pa.Array) -> pa.Array:
    """Copy the NULLs of each struct into its fields; ``array`` is no slice."""
    if not array.type.num_fields:
        return array
    if pa.types.is_struct(array.type):
        return _struct([_of_whole(field) for field in array.flatten()], array)
    return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], children=[_of_whole(array.values)])


def _struct(fields: list[pa.Array], array: pa.StructArray) -> pa.StructArray:
    nulls = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=nulls)
