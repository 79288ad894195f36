"""Compaction and cleaning on demand, in the lakehouse of all acceptance tests."""

import pytest

from tests.support.compacting import Compacting


@pytest.fixture
def compacting(lakehouse, spark, nobody_reads):
    loops = Compacting(lakehouse.database_url, lakehouse.uri, spark)
    yield loops
    loops.close()
