"""How much there may be of a thing."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
SPARK = ROOT / "metastore" / "spark"
MOST = 3600
"""Lines of Python outside of compaction: `acid(spark)` has no parser, reader or writer of statements of its own."""


LONGEST = 600
"""Lines of a module: 300 are normal, 400 a question."""


def test_no_module_is_too_long():
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
             for folder in ("benchmarks", "deploy", "metastore", "migrations", "tests", "thrift_idl", "tools")
             for suffix in ("py", "java", "sh") for path in (ROOT / folder).rglob(f"*.{suffix}")}

    assert len(lines) > 1000
    assert {path: count for path, count in lines.items() if count > LONGEST} == {}


def test_the_spark_side_stays_small():
    """Where it grows beyond what Spark's own SQL lacks, statements are going a second way again."""
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SPARK.rglob("*.py")}
    outside = {path: count for path, count in lines.items() if "compaction" not in path.relative_to(SPARK).parts}

    assert len(outside) > 30
    assert sum(outside.values()) <= MOST
