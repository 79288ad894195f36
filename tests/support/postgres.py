"""One throw-away PostgreSQL per test process, and databases cloned from a migrated template, which tests use in turn."""

import itertools
import json
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


# As the template is: far quicker than a new database. Of a table that has grown, dead rows go as well.
EMPTIED = """
SET session_replication_role = replica;
DO $$
DECLARE name text; size bigint;
BEGIN
    FOR name, size IN SELECT oid::regclass, pg_relation_size(oid) FROM pg_class
                      WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0 LOOP
        EXECUTE format(CASE WHEN size > 65536 THEN 'TRUNCATE %s CASCADE' ELSE 'DELETE FROM %s' END, name);
    END LOOP;
END $$;
SELECT setval(seqrelid, seqstart, false) FROM pg_sequence;
"""
FILLED = """
SELECT oid::regclass::text FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0"""
GONE = "SELECT pg_sleep(0.01)"  # a connection that was closed is about to go
# Changes when a test has changed what a database is, rather than what is in it, or has left somebody connected to it.
DEFINED = """
SELECT ARRAY[(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
             (SELECT count(*) FROM pg_db_role_setting)] || array_agg(ARRAY[rows, newest])
FROM (SELECT count(*) AS rows, max(xmin::text::bigint) AS newest FROM pg_class WHERE relkind <> 'S'
      UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_proc
      UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_trigger
      UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_attribute
      UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_constraint) AS catalogs"""


class TestPostgres:
    """A PostgreSQL that makes databases: empty databases, and clones of a migrated database."""

    __test__ = False

    def __init__(self) -> None:
        self.data_dir = Path(tempfile.mkdtemp(prefix="metastore-test-"))
        self.data_dir.chmod(0o711)
        self.postgres = EmbeddedPostgres(self.data_dir, settings=FAST, max_connections=150, ends_with_us=True)
        self.postgres.start()
        self._numbers = itertools.count(1)
        self._idle: list[str] = []
        self._template = self._emptying = ""

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
        """URL of a database with the newest schema and a movable clock, which nobody else has meanwhile."""
        if not self._template:
            self._template = self._create("template1")
            migrate.upgrade(self.url(self._template))
            self.sql(MOVABLE_CLOCK, self._template)
            self._emptying = EMPTIED + self._rows_of_template()
        name = self._idle.pop() if self._idle else self._create(self._template)
        self.sql(self._emptying, name)
        defined = self.sql(DEFINED, name)
        yield self.url(name)
        for _ in range(10):
            if self.sql(f"{GONE}; {DEFINED}", name) == defined:
                self._idle.append(name)
                return
        self.drop(name)

    def _rows_of_template(self) -> str:
        """Statements that insert what the migrations have."""
        filled = [name for [name] in self.sql(FILLED, self._template)]
        rows = {name: self.sql(f"SELECT json_agg(each) FROM {name} AS each", self._template)[0][0] for name in filled}
        return "".join(f"INSERT INTO {name} SELECT * FROM json_populate_recordset(NULL::{name}, '{json.dumps(found)}');"
                       for name, found in rows.items() if found)

    def sql(self, text: str, database: str = "postgres") -> list[tuple]:
        """Run statements; return the rows of the last if it has any."""
        connection = psycopg2.connect(self.url(database))
        try:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else []
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
