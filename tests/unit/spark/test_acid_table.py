"""Types of the metastore as Spark has them, and those that it does not have."""

import pytest

from metastore.acid_tables.table import HiveColumn
from metastore.errors import InvalidOperationError


@pytest.mark.parametrize("kind", ["uniontype<int,string>", "array<uniontype<int,string>>", "map<string,UNIONTYPE <int>>",
                                  "timestamp with local time zone", "interval_day_time"])
def test_types_that_spark_cannot_hold_are_refused_with_the_columns_name(kind: str) -> None:
    with pytest.raises(InvalidOperationError, match=r"Column u has type .*, which Spark cannot hold"):
        _ = HiveColumn("u", kind).sql_type


@pytest.mark.parametrize(("kind", "expected"), [
    ("char(5)", "string"), ("VARCHAR ( 10 )", "string"), ("array<varchar(3)>", "array<string>"),
    ("struct<a:char(1),b:decimal(7,2)>", "struct<a:string,b:decimal(7,2)>"), ("timestamp", "timestamp")])
def test_characters_are_strings_inside_files(kind: str, expected: str) -> None:
    assert HiveColumn("c", kind).sql_type == expected
