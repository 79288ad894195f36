"""Changed column types: the vectors that Spark and Hive's reader answer too, and what is refused."""

from datetime import date, datetime

import pyarrow as pa
import pytest

from metastore.acid.types import parse_type
from metastore.acid_tables.arrow_types import arrow_type
from metastore.acid_tables.conversions import fitted
from metastore.errors import InvalidOperationError
from tests.support.acid.time_vectors import ConversionVector, conversion_vectors

FROM_TEXT = {"date": date.fromisoformat, "timestamp": datetime.fromisoformat, "float": float, "double": float}


@pytest.mark.parametrize("vector", conversion_vectors(), ids=lambda one: f"{one.old}-{one.new}-{one.value}")
def test_each_vector(vector: ConversionVector) -> None:
    old, new = parse_type(vector.old), parse_type(vector.new)
    convert = FROM_TEXT.get(old.kind, str)
    text = pa.array([convert(vector.value), None])
    [value, none] = fitted(text.cast(arrow_type(old, "")), new).to_pylist()
    assert none is None
    assert ("" if value is None else f"{value:f}" if new.kind == "decimal" else str(value)) == vector.shown


@pytest.mark.parametrize(("old", "new"), [("string", "date"), ("boolean", "double"), ("array<int>", "int"), ("date", "int")])
def test_what_is_not_in_the_table_is_refused(old: str, new: str) -> None:
    with pytest.raises(InvalidOperationError, match=f"where the table has {new} now, which is read by Spark and Hive alone"):
        fitted(pa.nulls(1, arrow_type(parse_type(old), "")), parse_type(new))


def test_numbers_out_of_range_are_null() -> None:
    assert fitted(pa.array([2**31, -(2**31), None], pa.int64()), parse_type("int")).to_pylist() == [None, -(2**31), None]
    assert fitted(pa.array(["1.9", "-99999999999"]).cast(pa.decimal128(13, 1)), parse_type("int")).to_pylist() == [1, None]
    assert fitted(pa.array([1e300, 2.345, float("inf")]), parse_type("decimal(4,2)")).to_pylist()[::2] == [None, None]
