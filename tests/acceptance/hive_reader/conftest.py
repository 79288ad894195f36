"""One Hive JVM for all tests here; the Spark session is that of all acceptance tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.acid.tables import AcidTable
from tests.support.hive_oracle.oracle import HiveOracle


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveOracle]:
    with HiveOracle(tmp_path_factory.mktemp("oracle")) as hive:
        yield hive


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> AcidTable:
    (tmp_path / "t").mkdir()
    return AcidTable(spark, tmp_path / "t")
