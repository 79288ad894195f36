"""One throw-away PostgreSQL per test process, and databases cloned from a migrated template."""

import itertools
import shutil
import tempfile
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg2
from sqlalchemy import make_url

from metastore.db import migrate
from metastore.db.embedded import EmbeddedPostgres

# Nothing in a test outlives it, so nothing waits for the disk.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off",
        "wal_level": "minimal", "max_wal_senders": "0", "shared_buffers": "64MB", "checkpoint_timeout": "1h",
        "max_wal_size": "4GB", "log_checkpoints": "off"}

# The service's clock, movable for every process at once.
MOVABLE_CLOCK = """
CREATE TABLE test_clock (ahead interval NOT NULL);
INSERT INTO test_clock VALUES ('0');
CREATE OR REPLACE FUNCTION metastore_now() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT now() + (SELECT ahead FROM test_clock)';
"""


class TestPostgres:
    """A PostgreSQL that makes databases: empty databases, and clones of a migrated database."""

    __test__ = False

    def __init__(self) -> None:
        self.data_dir = Path(tempfile.mkdtemp(prefix="metastore-test-"))
        self.data_dir.chmod(0o711)
        self.postgres = EmbeddedPostgres(self.data_dir, settings=FAST, max_connections=150, ends_with_us=True)
        self.postgres.start()
        self._numbers = itertools.count(1)
        self._template = None

    def close(self) -> None:
        self.postgres.stop()
        shutil.rmtree(self.data_dir, ignore_errors=True)

    def url(self, name: str) -> str:
        return make_url(self.postgres.url).set(database=name).render_as_string(hide_password=False)

    @contextmanager
    def empty(self):
        """URL of a database without a schema."""
        name = self._create("template1")
        yield self.url(name)
        self.drop(name)

    @contextmanager
    def cloned(self):
        """URL of a database with the newest schema and a movable clock."""
        if self._template is None:
            self._template = self._create("template1")
            migrate.upgrade(self.url(self._template))
            self.sql(MOVABLE_CLOCK, self._template)
        name = self._create(self._template)
        yield self.url(name)
        self.drop(name)

    def sql(self, text: str, database: str = "postgres") -> None:
        connection = psycopg2.connect(self.url(database))
        try:
            connection.autocommit = True
            connection.cursor().execute(text)
        finally:
            connection.close()

    def drop(self, name: str) -> None:
        self.sql(f"DROP DATABASE {name} WITH (FORCE)")

    def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name


class TestClock:
    """Moves ``metastore_now()`` of one database."""

    __test__ = False

    def __init__(self, database) -> None:
        self.database = database

    def advance(self, by: timedelta) -> None:
        self.database.once("UPDATE test_clock SET ahead = ahead + %s", [by])
