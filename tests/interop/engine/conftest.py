"""Hive 4.0.1's engine and Spark on one server, whose external tables have a warehouse of their own."""

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
def hive(lakehouse, external_warehouse, tmp_path_factory):
    """``hive(*statements)``: the rows of the last one as Hive prints them, sorted."""
    java = Answering(HERE / "HiveSql.java", "hive-4.0.1-engine", HERE / "pom.xml", lakehouse.uri,
                     str(tmp_path_factory.mktemp("hive")), lakehouse.warehouse.as_uri(), external_warehouse, heap="2g")

    def run(*statements):
        return [sorted(java.ask(sql=statement)) for statement in statements][-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HADOOP_USER_NAME", raising=False)
        java.__enter__()
    try:
        yield run
    finally:
        java.__exit__(None, None, None)


@pytest.fixture
def db(hive, request):
    """A database of the test's own, made and dropped by Hive."""
    name = f"db_{abs(hash(request.node.name)):x}"
    hive(f"CREATE DATABASE {name}")
    yield name
    hive(f"DROP DATABASE {name} CASCADE")
