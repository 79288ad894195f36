"""``acid(spark).transaction()`` in a session with the catalog: statements of Spark's own SQL and of the session are one transaction."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from metastore.client import TxnManager, WriteConflictError, scan
from metastore.client.streams import has_batch
from metastore.errors import AlreadyExistsError, InvalidOperationError
from metastore.files import Files
from metastore.ids import table_name
from metastore.locks.rules import Operation
from metastore.spark.check.table_check import check_table
from metastore.txns.streams.rules import StreamBatch

pytestmark = pytest.mark.spark

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def rows(frame):
    return sorted(map(tuple, frame.collect()))


def committed(lakehouse, name):
    """Return the committed rows, read without Spark."""
    return sorted(tuple(row.values()) for row in scan(name, uri=lakehouse.uri).to_arrow().to_pylist())


def files(client, name):
    root = Path(urlsplit(client.get_table(*name.split(".")).sd.location).path)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.name.endswith(".crc")}


def test_both_kinds_of_statements_see_each_other_and_are_committed_at_once(catalog, session, days, db, lakehouse, client) -> None:
    only, note = f"{db}.only", f"{db}.note"
    session.sql(f"CREATE TABLE {only} (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    catalog.sql(f"CREATE TABLE {note} (id INT, name STRING) {ACID}")
    with session.transaction():
        catalog.sql(f"INSERT INTO {note} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        assert session.sql(f"FROM {note} INSERT INTO {days} SELECT id + 10, 1 WHERE id < 3 INSERT INTO {only} SELECT id").first()["rows"] == 5
        catalog.sql(f"UPDATE {days} SET id = id + 100 WHERE id > 10")
        assert session.update(days, {"id": "id + 1"}, "id > 110") == 2
        catalog.sql(f"DELETE FROM {note} WHERE id IN (SELECT id - 111 FROM {days})")
        assert rows(session.table(days)) == rows(catalog.table(days)) == [(1, 1), (2, 2), (112, 1), (113, 1)]
        assert rows(session.table(note)) == [(3, "c")]
        assert [committed(lakehouse, days), committed(lakehouse, note)] == [[(1, 1), (2, 2)], []]

    assert committed(lakehouse, days) == rows(session.table(days)) == [(1, 1), (2, 2), (112, 1), (113, 1)]
    assert (committed(lakehouse, note), rows(session.table(only))) == ([(3, "c")], [(1,), (2,), (3,)])
    assert len({one.txn_id for name in (days, note, only) for one in catalog.sql(f"CALL system.history('{name}', 1)").collect()}) == 1
    for name in (days, note):
        assert [one for one in check_table(client, Files(), table_name(*name.split("."))) if not one.finding.is_unneeded] == []


def test_a_block_that_raises_leaves_nothing_of_either(catalog, session, days, client, lakehouse, open_transactions) -> None:
    before = files(client, days)
    with pytest.raises(ZeroDivisionError), session.transaction():
        session.insert(days, catalog.sql("SELECT 5 AS id, 5 AS day"))
        catalog.sql(f"UPDATE {days} SET id = 0")
        raise ZeroDivisionError
    assert files(client, days) == before
    assert rows(catalog.table(days)) == committed(lakehouse, days) == [(1, 1), (2, 2)]
    assert open_transactions() == []


@pytest.mark.slow  # beside those of the session, or of Spark's own SQL
def test_a_base_of_either_hides_what_the_other_would_write(catalog, session, days, lakehouse) -> None:
    with session.transaction():
        session.sql(f"INSERT OVERWRITE TABLE {days} PARTITION (day = 1) SELECT 10")
        catalog.sql(f"INSERT OVERWRITE {days} PARTITION (day = 2) SELECT 20")
        with pytest.raises(Exception, match="has overwritten .*day=1 already"):
            catalog.sql(f"INSERT INTO {days} VALUES (11, 1)")
        with pytest.raises(InvalidOperationError, match="has overwritten .*day=2 already"):
            session.sql(f"INSERT INTO {days} VALUES (21, 2)")
        catalog.sql(f"INSERT INTO {days} VALUES (30, 3)")
    assert rows(catalog.table(days)) == committed(lakehouse, days) == [(10, 1), (20, 2), (30, 3)]


def test_the_loser_of_a_conflict_gets_the_sessions_error(catalog, session, days, client, lakehouse) -> None:
    with pytest.raises(WriteConflictError) as lost, session.transaction():
        catalog.sql(f"UPDATE {days} SET id = id + 1 WHERE day = 1")
        session.insert(days, catalog.sql("SELECT 5 AS id, 5 AS day"))
        with TxnManager(client, host="elsewhere").transaction(user="trino", agent="q42") as txn:
            txn.add_dynamic_partitions(*days.split("."), ["day=1"], Operation.UPDATE)
    assert lost.value.winner == txn.id
    assert rows(catalog.table(days)) == committed(lakehouse, days) == [(1, 1), (2, 2)]


def test_statements_beside_a_block_that_sql_has_opened_are_part_of_it(catalog, session, days) -> None:
    catalog.sql("CALL system.begin()")
    assert session.delete(days, "id = 1") == 1
    assert rows(session.table(days)) == [(2, 2)]
    with pytest.raises(InvalidOperationError, match="is open in this session already"), session.transaction():
        pass
    catalog.sql("CALL system.rollback()")
    with session.transaction(), pytest.raises(InvalidOperationError, match="is open already"), session.transaction():
        pass
    assert rows(session.table(days)) == [(1, 1), (2, 2)]


@pytest.mark.slow  # beside those of the session, or of Spark's own SQL
def test_a_batch_of_a_stream_comes_once(catalog, session, days, client, lakehouse) -> None:
    name, batch = table_name(*days.split(".")), StreamBatch("q", 0, "0" * 64)
    with session.transaction(batch=(name, batch)):
        catalog.sql(f"INSERT INTO {days} VALUES (3, 3)")
    with pytest.raises(AlreadyExistsError), session.transaction(batch=(name, batch)):
        catalog.sql(f"INSERT INTO {days} VALUES (3, 3)")
    assert has_batch(client, name, batch)
    assert committed(lakehouse, days) == [(1, 1), (2, 2), (3, 3)]
