import pytest

from metastore.catalog.rules.column_types import incompatible_columns, is_known, leading_word

# A row becomes a column. From Hive's ColumnType: widening of numbers, anything to text, text to double.
TYPES = ["tinyint", "int", "decimal", "double", "string", "char", "date", "timestamp", "boolean", "binary", "void", "array"]
ALLOWED = {
    "tinyint": "int decimal double string char", "int": "decimal double string char", "decimal": "double string char",
    "double": "string char", "string": "char double", "char": "string double", "date": "string char",
    "timestamp": "string char", "void": " ".join(TYPES[:-1])}


def column(kind):
    return [{"name": "a", "type": kind}]


@pytest.mark.parametrize("old", TYPES)
def test_changes(old):
    allowed = {new for new in TYPES if not incompatible_columns(column(old), column(new))}
    assert allowed == {old, *ALLOWED.get(old, "").split()}


def test_only_the_leading_word_counts():
    assert incompatible_columns(column("decimal(10,2)"), column("DECIMAL(4,0)")) == []
    assert incompatible_columns(column("array<int>"), column("array<string>")) == []


def test_columns_are_compared_by_position():
    old = [{"name": "a", "type": "int"}, {"name": "b", "type": "bigint"}]
    new = [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}, {"name": "z", "type": "map<int,int>"}]
    assert incompatible_columns(old, new) == ["y"]
    assert incompatible_columns(old, new[:1]) == []


@pytest.mark.parametrize(("text", "known"), [
    ("int", True), ("INT", False), ("array<foo>", True), ("", False), ("<x>", False), ("xyz", False),
    ("timestamp with local time zone", True), ("<derived from deserializer>", True)])
def test_known(text, known):
    assert is_known(text) is known


def test_leading_word():
    assert [leading_word(text) for text in ("varchar(3)", "timestamp with local time zone", "<")] == [
        "varchar", "timestamp with local time zone", ""]
