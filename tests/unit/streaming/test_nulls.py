"""NULLs above other values, in slices and at any depth: a file holds each value in its own row, and no other."""

import io

import pyarrow as pa
import pytest
from pyarrow import orc

from metastore.streaming.orc_writer import OrcWriter
from tests.fuzz import inputs
from tests.fuzz.targets import read_nested_rows

INNER = pa.struct([("a", pa.int32()), ("s", pa.string())])
HIDDEN = pa.StructArray.from_arrays([pa.array([1, 2, 3, 4], pa.int32()), pa.array(list("wxyz"))], fields=list(INNER),
                                    mask=pa.array([False, True, False, True]))
SHAPES = {
    "a struct": HIDDEN,
    "in a struct": pa.StructArray.from_arrays([HIDDEN], ["c"]),
    "in a struct with NULLs": pa.StructArray.from_arrays([HIDDEN], ["c"], mask=pa.array([True, False, False, False])),
    "in a list": pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 1, 3, 3, 4], HIDDEN)], ["c"]),
    "in a map": pa.StructArray.from_arrays([pa.MapArray.from_arrays([0, 1, 3, 3, 4], pa.array(list("abcd")), HIDDEN)], ["c"]),
    "a list in it": pa.StructArray.from_arrays([pa.StructArray.from_arrays(
        [pa.array([[1], [2, 3], None, [4]])], ["l"], mask=pa.array([False, True, False, False]))], ["c"]),
    "below a NULL list": pa.StructArray.from_arrays([pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 3, 4], pa.int32()), HIDDEN, mask=pa.array([False, True, False, False]))], ["c"]),
}


def written(*arrays):
    out = io.BytesIO()
    writer = OrcWriter(out, "snappy")
    for array in arrays:
        writer.write(pa.RecordBatch.from_arrays([array], ["c"]))
    writer.close()
    return out


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_below_a_null_are_not_written(shape, first):
    array = SHAPES[shape].slice(first)
    out = written(array, array[:0])

    assert orc.ORCFile(out).read()["c"].to_pylist() == array.to_pylist()


def test_a_table_without_rows_is_written():
    out = written(pa.array([], INNER))

    assert orc.ORCFile(out).read().num_rows == 0


@pytest.mark.parametrize("number", range(30))
def test_random_rows_come_back(number):
    read_nested_rows(inputs.nested(inputs.dice_of("unit", "nested", number)))
