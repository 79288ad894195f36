"""Hive 4.0.1's engine and Spark on one server, whose external tables have a warehouse of their own."""

import os
from pathlib import Path

import pytest

from tests.acceptance.conftest import acid_session, lakehouse, spark
from tests.interop.java import Answering

HERE = Path(__file__).parent

__all__ = ["acid_session", "lakehouse", "spark"]


@pytest.fixture(scope="session")
def external_warehouse(tmp_path_factory):
    return tmp_path_factory.mktemp("external").as_uri()


@pytest.fixture(scope="session")
def engine(lakehouse, external_warehouse, tmp_path_factory):
    """Hive in a JVM of its own, which is asked."""
    java = Answering(HERE / "HiveSql.java", "hive-4.0.1-engine", HERE / "pom.xml", lakehouse.uri,
                     str(tmp_path_factory.mktemp("hive")), lakehouse.warehouse.as_uri(), external_warehouse, heap="2g",
                     is_measured="COMPACTED_ROWS" in os.environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HADOOP_USER_NAME", raising=False)
        java.__enter__()
    try:
        yield java
    finally:
        java.__exit__(None, None, None)


@pytest.fixture(scope="session")
def hive(engine):
    """``hive(*statements)``: the rows of the last one as Hive prints them, sorted."""
    def run(*statements):
        return [sorted(engine.ask(sql=statement)) for statement in statements][-1]
    return run


@pytest.fixture
def db(hive, request):
    """Yield a database of the test's own, created and dropped by Hive."""
    name = f"db_{abs(hash(request.node.name)):x}"
    hive(f"CREATE DATABASE {name}")
    yield name
    hive(f"DROP DATABASE {name} CASCADE")
