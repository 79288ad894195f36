"""Fixtures for every test: databases, the movable clock, a server, a client.

What a test asks for decides what it costs: a database is a clone of a migrated template in one PostgreSQL per test
process. Nothing is imported here that a unit test does not need.
"""

import gc
import os
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

# Other examples each time; what fails says how to see it again.
settings.register_profile("fresh", max_examples=50, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
# A Spark of a test ends before it has earned what the second compiler costs, and that runs beside other tests.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
settings.load_profile("fresh")


def pytest_collection_finish():
    """Thousands of tests stay where they are: no garbage collection, which frames of Spark ask for, need look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres():
    """One PostgreSQL per test process."""
    from tests.support.postgres import TestPostgres

    server = TestPostgres()
    yield server
    server.close()


@pytest.fixture
def database_url(postgres):
    """URL of a database with the newest schema, which is the test's own."""
    with postgres.cloned() as url:
        yield url


@pytest.fixture
def database(database_url):
    """Yield a Database with the newest schema, which is the test's own."""
    from metastore.db.engine import Database

    opened = Database(database_url, pool_size=12)
    yield opened
    opened.close()


@pytest.fixture
def t(database):
    """Transactions, write ids and locks on the database, in short words."""
    from tests.support.transactions import Transactions

    return Transactions(database)


@pytest.fixture
def test_clock(database):
    """``test_clock.advance(timedelta)`` moves the time of this test's database."""
    from tests.support.postgres import TestClock

    return TestClock(database)


@pytest.fixture
def server_settings():
    """More settings for ``server``, by key; a test module may override this fixture."""
    return {}


@pytest.fixture
def server(database_url, database, tmp_path, server_settings):
    """Yield a whole server in this process on free ports, over ``database``; no loop runs."""
    from metastore.app import App
    from metastore.config.settings import SettingsSource, build

    chosen = build([SettingsSource("test", {
        "metastore.database.url": database_url, "hive.metastore.thrift.bind.host": "127.0.0.1", "hive.metastore.port": "0",
        "metastore.http.port": "0", "hive.metastore.warehouse.dir": (tmp_path / "warehouse").as_uri(),
        "metastore.database.pool.size": "12", "metastore.lock.check.wait": "0", "metastore.warehouse.roots": tmp_path.as_uri(), **server_settings})])
    app = App(chosen, loops=False)
    app.start()
    yield app
    app.stop()


@pytest.fixture
def client(server):
    """Yield a connected MetastoreClient, which may look at every table."""
    from tests.support.able import AbleClient

    with AbleClient(server.thrift_uri) as connected:
        yield connected


@pytest.fixture(scope="session")
def worlds(postgres, tmp_path_factory):
    """``worlds(settings)``: the one server with these settings, emptied."""
    from contextlib import ExitStack

    from tests.support.scripts.server import served

    with ExitStack() as running:
        known = {}

        def world(settings):
            key = tuple(sorted(settings.items()))
            if key not in known:
                url = running.enter_context(postgres.cloned())
                known[key] = running.enter_context(served(url, tmp_path_factory.mktemp("warehouse"), settings))
            known[key].reset()
            return known[key]
        yield world


def pytest_collection_modifyitems(items):
    """Mark what ``slow.txt`` lists."""
    slow = [line for line in (Path(__file__).parent / "slow.txt").read_text().splitlines() if line and line[0] != "#"]
    for item in items:
        if any(item.nodeid == each or item.nodeid.startswith((f"{each}::", f"{each}[")) for each in slow):
            item.add_marker(pytest.mark.slow)


def pytest_xdist_make_scheduler(config, log):
    """Give a module to one worker, whose fixtures its tests share, and those of Spark to two: one for each core there is at least."""
    from xdist.scheduler import LoadScopeScheduling

    class BySpark(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            module = nodeid.partition("::")[0]
            return f"spark {crc32(module.encode()) % 2}" if module.startswith("tests/acceptance/") else module

    return BySpark(config, log)
