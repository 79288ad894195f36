"""Types with fields added to their structs."""

import pytest

from metastore.acid.types import parse_type
from metastore.acid_tables.struct_fields import is_extended, retyped, with_field
from metastore.errors import InvalidOperationError

_NESTED = "struct<a:int,Odds:array<map<string,struct<b:decimal(10,2)>>>>"


@pytest.mark.parametrize(("kind", "path", "result"), [
    ("struct<a:int>", ["B"], "struct<a:int,b:date>"),
    ("array<struct<a:int>>", ["element", "b"], "array<struct<a:int,b:date>>"),
    ("map<struct<a:int>,int>", ["key", "b"], "map<struct<a:int,b:date>,int>"),
    (_NESTED, ["odds", "element", "value", "c"], "struct<a:int,Odds:array<map<string,struct<b:decimal(10,2),c:date>>>>"),
    ("struct<`a b`:int>", ["c"], "struct<`a b`:int,c:date>"),
])
def test_a_field_comes_at_the_end_of_its_struct(kind: str, path: list[str], result: str) -> None:
    extended = with_field(parse_type(kind), path, parse_type("date"))

    assert str(extended) == result
    assert parse_type(str(extended)) == extended
    assert is_extended(parse_type(kind), extended)


@pytest.mark.parametrize(("kind", "path", "reason"), [
    ("int", ["b"], "int has no fields: b cannot be added to it."),
    ("array<int>", ["b"], "array<int> has no fields"),
    ("struct<a:int>", ["A"], "struct<a:int> has a field a already."),
    ("struct<a:int>", ["z", "b"], "struct<a:int> has no z. It has: a."),
    ("array<struct<a:int>>", ["value", "b"], "It has: element."),
    ("int", ["a", "b"], "int has no a. It has: no fields."),
])
def test_a_field_without_a_struct_is_refused(kind: str, path: list[str], reason: str) -> None:
    with pytest.raises(InvalidOperationError) as refused:
        with_field(parse_type(kind), path, parse_type("date"))
    assert reason in str(refused.value)


def test_a_field_gets_another_type() -> None:
    assert str(retyped(parse_type(_NESTED), ["a"], parse_type("bigint"))).startswith("struct<a:bigint,Odds:")


@pytest.mark.parametrize(("old", "new", "is_so"), [
    ("struct<a:int>", "struct<A:int,b:int>", True), ("struct<a:int>", "struct<b:int,a:int>", False), ("struct<a:int>", "struct<a:bigint,b:int>", False),
    ("struct<a:int,b:int>", "struct<a:int>", False), ("array<struct<a:int>>", "array<struct<a:int,b:int>>", True), ("int", "bigint", False),
    ("array<int>", "map<int,int>", False), ("map<int,struct<a:int>>", "map<int,struct<a:int,b:int>>", True)])
def test_which_types_only_have_more_fields(old: str, new: str, is_so: bool) -> None:
    assert is_extended(parse_type(old), parse_type(new)) is is_so
