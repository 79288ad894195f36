"""Decisions about partitions that need neither database nor directory."""

import pytest

from metastore.catalog.model import Table
from metastore.catalog.rules import partitions
from metastore.ids import TableName

THREE_KEYS = [{"name": name, "type": "string"} for name in ("a", "b", "c")]


@pytest.mark.parametrize(("location", "parents"), [
    ("file:/wh/t/a=1/b=2/c=3", ["file:/wh/t/a=1/b=2", "file:/wh/t/a=1"]),
    ("file:/wh/t/custom", []),
    ("file:/wh/t/x/custom", ["file:/wh/t/x"]),
    ("file:/wh/t/w/x/y/custom", ["file:/wh/t/w/x/y", "file:/wh/t/w/x"]),
    ("file:/wh/tt/a=1/b=2/c=3", []),
    ("file:/wh/t", []),
], ids=["by name", "directly below", "one below", "deeper than the keys", "beside the table", "the table itself"])
def test_directories_that_a_dropped_partition_may_leave_empty(location: str, parents: list[str]) -> None:
    table = Table(TableName("hive", "d", "t"), {"location": "file:/wh/t"}, partition_keys=THREE_KEYS)
    assert partitions.parents_to_tidy(table, location) == parents


def test_a_table_without_a_directory_has_nothing_to_tidy() -> None:
    table = Table(TableName("hive", "d", "t"), {}, partition_keys=THREE_KEYS)
    assert partitions.parents_to_tidy(table, "file:/wh/t/a=1/b=2/c=3") == []
