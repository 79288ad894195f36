"""Which columns a table has after ALTER TABLE, and which types hold all values of which."""

from contextlib import nullcontext

import pytest

from metastore.acid.types import parse_type
from metastore.acid_tables.column_changes import FileColumns, is_wider, require_read_alike
from metastore.acid_tables.table import ColumnDefinition
from metastore.errors import InvalidOperationError
from metastore.spark.commands.columns import altered
from metastore.spark.sql.parsing import parse
from metastore.spark.sql.statements import PlainOnly

COLUMNS = [ColumnDefinition("a", "int", "first"), ColumnDefinition("b", "string"), ColumnDefinition("c", "double")]


@pytest.mark.parametrize(("change", "expected"), [
    ("CHANGE a a BIGINT", "a bigint, b string, c double"), ("CHANGE c x DOUBLE FIRST", "x double, a int, b string"),
    ("CHANGE COLUMN a a INT AFTER c", "b string, c double, a int"), ("RENAME COLUMN b TO d", "a int, d string, c double"),
    ("CHANGE b b STRING AFTER a", "a int, b string, c double"),
    ("ADD COLUMNS (d DECIMAL(3,1) COMMENT 'x; cascade', e STRUCT<f:INT>)", "a int, b string, c double, d decimal(3,1), e struct<f:int>"),
    ("ADD COLUMN d INT", "a int, b string, c double, d int"), ("add columns d INT, `E` INT cascade;", "a int, b string, c double, d int, e int"),
    ("DROP COLUMNS (a, c)", "b string"), ("REPLACE COLUMNS (c DOUBLE, n INT)", "c double, n int")])
def test_columns_change(change: str, expected: str) -> None:
    found = altered(COLUMNS, parse(f"ALTER TABLE t {change}"))  # type: ignore[arg-type]

    assert ", ".join(f"{one.name} {one.type}" for one in found) == expected
    assert all(one.comment == "first" for one in found if one.name == "a")


@pytest.mark.parametrize(("change", "reason"), [
    ("CHANGE z z INT", "no column z"), ("CHANGE a a INT AFTER z", "no column z"), ("CHANGE a a INT AFTER a", "after itself"),
    ("CHANGE a b INT", "same name"), ("ADD COLUMNS (x INT, A INT)", "same name"), ("DROP COLUMNS (a, b, c)", "at least one"), ("DROP COLUMN z", "no column z")])
def test_what_cannot_be(change: str, reason: str) -> None:
    with pytest.raises(InvalidOperationError, match=reason):
        altered(COLUMNS, parse(f"ALTER TABLE t {change}"))  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [
    "ADD COLUMNS (x INT NOT NULL)", "ADD COLUMN x INT DEFAULT 3", "ADD COLUMN x INT FIRST", "ADD COLUMNS (x INT) AFTER a", "ADD COLUMNS (x)"])
def test_what_columns_that_are_added_cannot_have(change: str) -> None:
    found = parse(f"ALTER TABLE t {change}")

    assert isinstance(found, PlainOnly)
    assert found.reason.startswith("ADD COLUMNS takes names, types and comments")


NAMED, NAMELESS = FileColumns("f", ("a", "b", "gone")), FileColumns("f", ("_col0", "_col1", "_col2"))


@pytest.mark.parametrize(("before", "after", "file", "reason"), [
    ("ab", "abc", NAMED, None), ("ab", ["a", "b", "gone"], NAMED, "holds values of a column gone"), ("ab", "ba", NAMED, None), ("ab", "a", NAMED, None),
    ("abc", "abcd", NAMELESS, None), ("ab", "abc", NAMELESS, "holds values of a column c"), ("abc", "ab", NAMELESS, None),
    ("abc", "bc", NAMELESS, "b would get another"), ("abc", "cab", NAMELESS, "c would get another"), ("ab", "b", FileColumns("f", ()), None)])
def test_files_are_read_as_before(before: str, after: str, file: FileColumns, reason: str | None) -> None:
    with pytest.raises(InvalidOperationError, match=reason) if reason else nullcontext():
        require_read_alike(list(before), list(after), [file])


@pytest.mark.parametrize(("old", "new", "is_so"), [
    ("int", "bigint", True), ("tinyint", "int", True), ("bigint", "int", False), ("int", "double", False), ("float", "double", True),
    ("decimal(10,2)", "decimal(12,2)", True), ("decimal(10,2)", "decimal(12,4)", True), ("decimal(10,2)", "decimal(10,4)", False),
    ("decimal", "decimal(12,1)", True), ("varchar(3)", "varchar(5)", True), ("varchar(5)", "varchar(3)", False), ("char(3)", "string", True),
    ("string", "varchar(9)", False), ("int", "string", False), ("array<int>", "array<int>", True), ("array<int>", "array<bigint>", False)])
def test_wider_types(old: str, new: str, is_so: bool) -> None:
    assert is_wider(parse_type(old), parse_type(new)) is is_so
