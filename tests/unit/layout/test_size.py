"""The Spark side stays what Spark's own SQL lacks: where it grows, statements are going a second way again."""

from pathlib import Path

SPARK = Path(__file__).parents[3] / "metastore" / "spark"
MOST = 4733
"""Lines of Python outside of compaction: half of what they were while `acid(spark)` had a parser, a reader and a writer of its own."""


def test_the_spark_side_stays_small():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SPARK.rglob("*.py")}
    outside = {path: count for path, count in lines.items() if "compaction" not in path.relative_to(SPARK).parts}

    assert len(outside) > 40
    assert sum(outside.values()) <= MOST
