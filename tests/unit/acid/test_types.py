"""Hive's type names taken apart."""

import pytest

from metastore.acid.types import HiveType, parse_type
from metastore.errors import InvalidInputError

INT = HiveType("int")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int", INT),
        ("INTEGER", INT),
        (" bigint ", HiveType("bigint")),
        ("double precision", HiveType("double")),
        ("timestamp with local time zone", HiveType("timestamp with local time zone")),
        ("decimal(10, 2)", HiveType("decimal", (10, 2))),
        ("varchar(20)", HiveType("varchar", (20,))),
        ("array<int>", HiveType("array", children=(INT,))),
        ("map<string,array<int>>", HiveType("map", children=(HiveType("string"), HiveType("array", children=(INT,))))),
        ("struct<a:int,`b c`:decimal(3,1)>", HiveType("struct", children=(INT, HiveType("decimal", (3, 1))),
                                                     names=("a", "b c"))),
        ("uniontype<int,string>", HiveType("uniontype", children=(INT, HiveType("string")))),
    ],
)
def test_types_are_read(text: str, expected: HiveType) -> None:
    assert parse_type(text) == expected


def test_what_a_decimal_leaves_out_is_hives_default() -> None:
    assert [parse_type(text).precision_and_scale for text in ("decimal", "decimal(5)", "decimal(5,2)")] == [(10, 0), (5, 0), (5, 2)]


@pytest.mark.parametrize(
    "text",
    ["", "array<int", "array<int,int>", "map<int>", "decimal(x)", "struct<a int>", "int>", "<int>", "array(int)", "int!"],
)
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(InvalidInputError, match="Cannot read the column type"):
        parse_type(text)
