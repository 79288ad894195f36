"""Which columns files may have for a table, and which types hold all values of which."""

from contextlib import nullcontext

import pytest

from metastore.acid.types import parse_type
from metastore.acid_tables.column_changes import FileColumns, is_wider, require_read_alike
from metastore.errors import InvalidOperationError

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
