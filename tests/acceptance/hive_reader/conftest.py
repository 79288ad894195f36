"""One Hive JVM for all tests here; the Spark session is that of all acceptance tests."""

from collections.abc import Iterator

import pytest

from tests.support.hive_oracle.oracle import HiveOracle


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveOracle]:
    with HiveOracle(tmp_path_factory.mktemp("oracle")) as hive:
        yield hive
