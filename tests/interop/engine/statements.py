"""Statements of Hive 4.0.1's own engine on the server: `make interop-engine`; not part of `make test`.

Its compiler, its DbTxnManager and Tez run in one JVM. What tables hold is read by Hive and by us.
"""

import shutil
from contextlib import closing
from urllib.parse import unquote, urlsplit

import pytest

from tests.interop.java import JavaError
from tests.support.able import AbleClient
from tests.support.compacting import Compacting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

FULL = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
INSERT_ONLY = "STORED AS ORC TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


@pytest.fixture
def both(hive, acid_session):
    """``both(table)``: its rows, which Hive and our reader show alike."""
    def read(name):
        ours = sorted("\t".join(map(str, row)) for row in acid_session.table(name).collect())
        assert hive(f"SELECT * FROM {name}") == ours
        return ours
    return read


@pytest.fixture
def location(lakehouse):
    """``location(database, table)``."""
    def told(database, table):
        with AbleClient(lakehouse.uri) as client:
            return client.get_table(database, table).sd.location
    return told


@pytest.mark.parametrize("kind", [FULL, INSERT_ONLY], ids=["full ACID", "insert-only"])
def test_truncate(hive, acid_session, db, both, kind):
    name = f"{db}.t"
    hive(f"CREATE TABLE {name} (id INT) {kind}", f"INSERT INTO {name} VALUES (1), (2)")
    assert both(name) == ["1", "2"]
    hive(f"TRUNCATE TABLE {name}")
    assert both(name) == []
    hive(f"INSERT INTO {name} VALUES (3)")
    assert both(name) == ["3"]
    acid_session.sql(f"INSERT INTO {name} VALUES (4)")
    assert both(name) == ["3", "4"]
    hive(f"TRUNCATE TABLE {name}", f"TRUNCATE TABLE {name}")
    assert both(name) == []


@pytest.mark.parametrize("kind", [FULL, INSERT_ONLY], ids=["full ACID", "insert-only"])
def test_truncate_of_partitions(hive, acid_session, db, both, kind):
    name = f"{db}.t"
    hive(f"CREATE TABLE {name} (id INT) PARTITIONED BY (d STRING) {kind}",
         f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')", f"TRUNCATE TABLE {name} PARTITION (d = 'a')")
    assert both(name) == ["2\tb"]
    hive(f"INSERT INTO {name} VALUES (3, 'a'), (4, 'c')")
    acid_session.sql(f"INSERT INTO {name} PARTITION (d = 'a') VALUES (5)")
    assert both(name) == ["2\tb", "3\ta", "4\tc", "5\ta"]
    hive(f"TRUNCATE TABLE {name}")
    assert both(name) == []
    hive(f"INSERT INTO {name} VALUES (6, 'b')")
    assert both(name) == ["6\tb"]


def test_changes_after_a_truncate(hive, acid_session, db, both):
    name = f"{db}.t"
    hive(f"CREATE TABLE {name} (id INT, n INT) {FULL}", f"INSERT INTO {name} VALUES (1, 1)", f"TRUNCATE TABLE {name}",
         f"INSERT INTO {name} VALUES (2, 2), (3, 3)", f"UPDATE {name} SET n = 9 WHERE id = 2", f"DELETE FROM {name} WHERE id = 3")
    assert both(name) == ["2\t9"]
    acid_session.update(name, {"n": "n + 1"}, "id = 2")
    assert both(name) == ["2\t10"]


@pytest.mark.parametrize(("kind", "warehouse"), [("", "managed"), (FULL, "managed"), ("EXTERNAL", "external")],
                         ids=["plain", "full ACID", "external"])
def test_create_table_as(hive, lakehouse, external_warehouse, db, location, kind, warehouse):
    hive(f"CREATE TABLE {db}.source (id INT) {FULL}", f"INSERT INTO {db}.source VALUES (1), (2)")
    external, stored = (kind, "STORED AS ORC") if kind == "EXTERNAL" else ("", kind)
    hive(f"CREATE {external} TABLE {db}.t {stored} AS SELECT id + 1 AS next FROM {db}.source")
    assert hive(f"SELECT next FROM {db}.t") == ["2", "3"]
    root = external_warehouse if warehouse == "external" else lakehouse.warehouse.as_uri()
    assert location(db, "t").rstrip("/").replace("file:///", "file:/") == f"{root}/{db}.db/t".replace("file:///", "file:/")


def test_managed_tables_beside_external_ones(hive, lakehouse, external_warehouse, db, location):
    hive(f"CREATE TABLE {db}.m (id INT) {FULL}", f"CREATE EXTERNAL TABLE {db}.e (id INT)")
    roots = {"m": lakehouse.warehouse.as_uri(), "e": external_warehouse}
    for table, root in roots.items():
        assert location(db, table).replace("file:///", "file:/") == f"{root}/{db}.db/{table}".replace("file:///", "file:/")


def test_msck_repair(hive, db):
    name = f"{db}.t"
    hive(f"CREATE EXTERNAL TABLE {name} (id INT) PARTITIONED BY (d STRING) STORED AS ORC",
         f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
         f"ALTER TABLE {name} DROP PARTITION (d = 'a')", f"ALTER TABLE {name} DROP PARTITION (d = 'b')")
    assert hive(f"SHOW PARTITIONS {name}") == ["d=c"]
    hive(f"MSCK REPAIR TABLE {name}")
    assert hive(f"SHOW PARTITIONS {name}") == ["d=a", "d=b", "d=c"]
    assert hive(f"SELECT * FROM {name}") == ["1\ta", "2\tb", "3\tc"]


def test_msck_drops_partitions_whose_directories_are_gone(hive, db, location):
    name = f"{db}.t"
    hive(f"CREATE EXTERNAL TABLE {name} (id INT) PARTITIONED BY (d STRING) STORED AS ORC",
         f"ALTER TABLE {name} ADD PARTITION (d = 'a') PARTITION (d = 'b')")
    shutil.rmtree(unquote(urlsplit(f"{location(db, 't')}/d=a").path))
    hive(f"MSCK REPAIR TABLE {name} SYNC PARTITIONS")
    assert hive(f"SHOW PARTITIONS {name}") == ["d=b"]


def test_compactions_are_shown_and_aborted(hive, lakehouse, spark, db, both):
    """COMPACT itself never reaches a server (CLIENT-13)."""
    def asked_for(kind):
        with AbleClient(lakehouse.uri) as client:
            types = client.types
            return str(client.compact2(types.CompactionRequest(db, "t", "d=a", getattr(types.CompactionType, kind))).id)

    def shown(which=""):
        rows = [row.split("\t") for row in hive(f"SHOW COMPACTIONS DATABASE {db} {which}")]
        return {row[0]: tuple(cell.strip() for cell in row[1:6]) for row in rows if row[0].isdigit()}

    name = f"{db}.t"
    hive(f"CREATE TABLE {name} (id INT) PARTITIONED BY (d STRING) {FULL}",
         *[f"INSERT INTO {name} VALUES ({number}, 'a')" for number in range(3)], f"DELETE FROM {name} WHERE id = 1")
    with pytest.raises(JavaError, match="Version information not found in metastore"):
        hive(f"ALTER TABLE {name} PARTITION (d = 'a') COMPACT 'minor'")
    first = asked_for("MINOR")
    assert shown() == {first: (db, "t", "d=a", "MINOR", "initiated")}
    hive(f"ABORT COMPACTIONS {first}")
    assert shown()[first][-1] == "aborted"
    assert shown("STATUS 'initiated'") == {}

    second = asked_for("MAJOR")
    with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as compacting:
        assert compacting.worker.tick().compaction_id == int(second)
    assert shown("TYPE 'MAJOR'") == {second: (db, "t", "d=a", "MAJOR", "ready for cleaning")}
    assert both(name) == ["0\ta", "2\ta"]
