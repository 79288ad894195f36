"""A server, a Spark session on it, and the readers of others on both."""

from pathlib import Path

import pytest

from tests.acceptance.conftest import acid_session, catalog, db, external_warehouse, lakehouse, oracle, planner, spark
from tests.interop.java import Answering
from tests.interop.tables.readers import Hive, Trino
from tests.support.compacting import Compacting

HERE = Path(__file__).parent

__all__ = ["acid_session", "catalog", "db", "external_warehouse", "lakehouse", "oracle", "planner", "spark"]


@pytest.fixture(scope="session")
def hive():
    with Answering(HERE / "java" / "HiveTables.java", "hive-4.0.1", HERE / "pom.xml") as java:
        yield Hive(java)


@pytest.fixture(scope="session")
def trino(lakehouse):
    java = Answering(HERE / "java" / "TrinoTables.java", "trino-380", HERE / "pom.xml", lakehouse.uri, heap="2g")
    with java:
        yield Trino(java)


@pytest.fixture
def compacting(lakehouse, spark):
    loops = Compacting(lakehouse.database_url, lakehouse.uri, spark)
    yield loops
    loops.close()
