"""Values of old files in the type that the table has now."""

import pyarrow as pa
import pytest

from metastore.acid.types import parse_type
from metastore.acid_tables.conversions import fitted

OLD = pa.struct([("A", pa.int32()), ("gone", pa.string())])
NEW = "struct<b:string,a:bigint>"


def test_fields_of_a_struct_are_known_by_their_names_in_any_case() -> None:
    values = pa.array([{"A": 1, "gone": "x"}, None, {"A": None, "gone": "y"}], OLD)
    assert fitted(values, parse_type(NEW)).to_pylist() == [{"b": None, "a": 1}, None, {"b": None, "a": None}]


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"),
    [
        (pa.list_(OLD), f"array<{NEW}>", [[{"A": 1, "gone": ""}], None, []], [[{"b": None, "a": 1}], None, []]),
        (pa.map_(pa.string(), OLD), f"map<string,{NEW}>", [[("k", {"A": 2, "gone": ""})], None, []], [[("k", {"b": None, "a": 2})], None, []]),
        (pa.int32(), "bigint", [1, None], [1, None]),
        (pa.string(), "string", ["as it is"], ["as it is"]),
    ],
)
def test_nested_values(old: pa.DataType, new: str, values: list[object], expected: list[object]) -> None:
    assert fitted(pa.array(values, old), parse_type(new)).to_pylist() == expected


def test_a_slice_of_a_batch_is_its_own_rows() -> None:
    values = pa.array([[{"A": 1, "gone": ""}], [{"A": 2, "gone": ""}]], pa.list_(OLD))
    assert fitted(values.slice(1), parse_type(f"array<{NEW}>")).to_pylist() == [[{"b": None, "a": 2}]]
