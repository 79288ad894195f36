import shutil
import tempfile
from pathlib import Path

import pytest

from metastore.db import migrate
from metastore.db.embedded import EmbeddedPostgres
from metastore.db.engine import Database


@pytest.fixture
def data_dir():
    """Yield a directory of a test's own, with a short name."""
    path = Path(tempfile.mkdtemp(prefix="metastore-data-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def own_postgres(data_dir):
    """Yield a PostgreSQL that the test may kill; durable, as an installation's."""
    postgres = EmbeddedPostgres(data_dir, ends_with_us=True)
    postgres.start()
    migrate.upgrade(postgres.url)
    yield postgres
    postgres.stop()


@pytest.fixture
def own_database(own_postgres):
    opened = Database(own_postgres.tcp_url, pool_size=4, pool_timeout_s=1)
    opened.once("CREATE TABLE notes (n int UNIQUE)")
    yield opened
    opened.close()
