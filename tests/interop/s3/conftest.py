"""A lakehouse on S3: an S3 server, our server with its warehouse there, and a Spark session on both.

Everybody finds S3 as outside of tests: Python by the usual variables of the environment, Spark by spark-defaults.conf.
"""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

from tests.acceptance.conftest import acid_session, catalog, db, nobody_reads, planner
from tests.acceptance.tables.conftest import compacting
from tests.acceptance.tables.test_kills import expire, killed
from tests.interop.java import fetched
from tests.support.planned_server import planned_server
from tests.support.spark_sessions import spark_on

HERE = Path(__file__).parent

__all__ = ["acid_session", "catalog", "compacting", "db", "expire", "killed", "nobody_reads", "planner"]


@pytest.fixture(scope="session")
def store():
    from tests.interop.s3.store import KEYS, served  # which the other tests have no packages for

    with pytest.MonkeyPatch.context() as patch, served() as server:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": server.url}.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def lakehouse(postgres, store):
    """As that of the acceptance tests, with its warehouse on S3."""
    warehouse = f"s3a://{store.bucket}/warehouse"
    with postgres.cloned() as url, planned_server({
            "metastore.database.url": url, "hive.metastore.warehouse.dir": warehouse,
            "metastore.warehouse.roots": f"s3a://{store.bucket}"}) as (app, address):
        yield SimpleNamespace(app=app, uri=app.thrift_uri, database_url=url, warehouse=warehouse, planner=address)


@pytest.fixture(scope="session")
def spark(lakehouse, store, tmp_path_factory):
    from tests.interop.s3.store import REGION

    version = (HERE / "pom.xml").read_text().partition("<artifactId>hadoop-aws</artifactId><version>")[2].partition("<")[0]
    assert Path(pyspark.__file__, "..", "jars", f"hadoop-client-api-{version}.jar").resolve().exists(), (
        f"PySpark's Hadoop is not {version} any more: name its version in {HERE / 'pom.xml'}")
    settings = tmp_path_factory.mktemp("spark")
    jars = fetched(HERE / "pom.xml", "s3a", "s3")
    (settings / "spark-defaults.conf").write_text("\n".join(f"{name} {value}" for name, value in {
        "spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars,
        "spark.hadoop.fs.s3a.endpoint": store.url, "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.sql.warehouse.dir": lakehouse.warehouse}.items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(settings))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")]))
        session = spark_on(lakehouse.uri, lakehouse.warehouse, master="local[2,3]")   # a task may fail twice
        yield session
        session.stop()
