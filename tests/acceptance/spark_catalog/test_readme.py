"""The README's first statements, as they stand there."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
README = Path(__file__).parents[3] / "README.md"


@pytest.mark.slow
def test_the_first_statements(catalog):
    [block] = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    session, *statements = block[block.index("spark = "):].strip().splitlines()
    assert session.startswith("spark = configure(SparkSession.builder, ")  # here the shared Spark has those settings
    try:
        for statement in statements:
            exec(statement, {"spark": catalog})
        assert sorted(map(tuple, catalog.table("planes").collect())) == [("N10156", 4), ("N102UW", 182)]
    finally:
        catalog.sql("DROP TABLE IF EXISTS planes")
