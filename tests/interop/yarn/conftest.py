"""A server, a Spark session on it, and a YARN of one node."""

from pathlib import Path

import pytest

from tests.acceptance.conftest import acid_session, db, external_warehouse, lakehouse, spark
from tests.interop.java import Answering

HERE = Path(__file__).parent

__all__ = ["acid_session", "db", "external_warehouse", "lakehouse", "spark"]


@pytest.fixture(scope="session")
def yarn(tmp_path_factory):
    """Yield the folder with the cluster's yarn-site.xml; its containers write their logs below it."""
    place = tmp_path_factory.mktemp("yarn")
    with Answering(HERE / "MiniYarn.java", "hadoop-3.5.0", HERE / "pom.xml", str(place), folder=place):
        yield place
