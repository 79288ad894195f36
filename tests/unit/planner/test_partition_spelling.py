"""Partition values in Spark's own spelling."""

import pytest

from metastore.acid.types import parse_type
from metastore.planner.partition_spelling import as_spark_writes


@pytest.mark.parametrize(("kind", "text", "written"), [
    ("date", "2024-1-5", "2024-01-05"), ("date", "2024-01-05", "2024-01-05"), ("date", "2024-2", "2024-02-01"),
    ("date", "2024-01-05 10:00:00", "2024-01-05"), ("date", "2024-13-1", "2024-13-1"), ("date", "today", "today"),
    ("timestamp", "2024-1-5", "2024-01-05 00:00:00"), ("timestamp", "2024-01-05 10:00:00.0", "2024-01-05 10:00:00"),
    ("timestamp", "2024-01-05T1:2:3.1200", "2024-01-05 01:02:03.12"), ("timestamp", "2024-01-05 25:00:00", "2024-01-05 25:00:00"),
    ("timestamp", "2024-01-05 10:00:00+01", "2024-01-05 10:00:00+01"), ("string", "2024-1-5", "2024-1-5"), ("int", "03", "03")])
def test_each_kind(kind: str, text: str, written: str) -> None:
    assert as_spark_writes([text, None], [parse_type(kind), parse_type(kind)]) == (written, None)
