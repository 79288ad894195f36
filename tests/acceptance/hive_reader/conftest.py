"""The Hive JVM and the Spark session are those of all acceptance tests."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.acid.tables import AcidTable


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> AcidTable:
    (tmp_path / "t").mkdir()
    return AcidTable(spark, tmp_path / "t")
