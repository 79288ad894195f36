"""What we write, read by Hive 4 and by Trino; what they write, read by us: `make interop-tables`; not part of `make test`.

Each step is done on a plain Python list too. After each, five answers must be equal: the list, our reader, Hive 4 row by
row, Hive 4 in vector mode (which is how its queries run) and a SELECT in Trino. Trino 380
chooses directories with Hive 3.1's code, which cannot read names that end in the number of the compaction's transaction
(``base_0000005_v0000012``): where there are such it must fail, not show wrong rows, and reads a copy without these
numbers. Later versions (398, 435, 479 and
481 were tried) could not be fetched whole with Maven.
"""

from itertools import accumulate, count
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyorc
import pytest

from metastore.acid.violations import LayoutRule
from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table
from tests.interop.java import JavaError
from tests.interop.tables.old_copies import in_old_names

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def texts(rows):
    return sorted((tuple(value if value is None else str(value) for value in row) for row in rows), key=repr)


@pytest.fixture(params=["session", "catalog"])
def writer(request):
    """Who makes the statements: ``acid(spark)``, or Spark's own SQL through the catalog."""
    if request.param == "session":
        return request.getfixturevalue("acid_session")
    return ThroughCatalog(request.getfixturevalue("catalog"), request.getfixturevalue("acid_session").client)


class ThroughCatalog:
    """The calls of a session, as statements that Spark itself understands."""

    def __init__(self, spark, client):
        self.spark, self.client, self.sql, self.table = spark, client, spark.sql, spark.table

    def insert(self, name, rows):
        rows.writeTo(name).append()

    def update(self, name, values, condition):
        self.sql(f"UPDATE {name} SET {', '.join(f'{column} = {value}' for column, value in values.items())} WHERE {condition}")

    def delete(self, name, condition):
        self.sql(f"DELETE FROM {name} WHERE {condition}")

    def merge(self, name, source, condition, clauses):
        source.createOrReplaceTempView("merged")
        self.sql(f"MERGE INTO {name} t USING merged s ON {condition} {' '.join(clauses)}")
        self.spark.catalog.dropTempView("merged")


@pytest.fixture
def agree(acid_session, hive, trino, tmp_path):
    """``agree(name, rows)``: every reader shows these rows; ``hives``: settings for Hive's reader."""
    copies = count()

    def check(name, rows, *, is_compacted=False, **hives):
        expected = texts(rows)
        assert texts(acid_session.table(name).collect()) == expected, "our reader"
        assert hive.rows(acid_session.client, name, vectorized=False, **hives) == expected, "Hive, row by row"
        assert hive.rows(acid_session.client, name, vectorized=True, **hives) == expected, "Hive, vectorized"
        if is_compacted:
            with pytest.raises(JavaError, match=r'For input string: "\d*_?v\d+"'):
                trino.rows(name)
            with in_old_names(acid_session.client, name, tmp_path / f"old_{next(copies)}") as copy:
                assert trino.rows(copy) == expected, "Trino, of a copy"
            return
        assert trino.rows(name) == expected, "Trino"
        assert trino.rows(name, max_split_size="2kB", max_initial_split_size="2kB") == expected, "Trino, small splits"
    return check


def test_every_statement_and_every_compaction(writer, db, compacting, agree):
    name = f"{db}.t"
    writer.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    rows = {}

    def insert(first, last):
        values = [(number, f"n{number}") for number in range(first, last)]
        rows.update(values)
        writer.sql(f"INSERT INTO {name} VALUES {', '.join(map(str, values))}")

    insert(0, 40)
    agree(name, rows.items())
    writer.update(name, {"name": "concat(name, '!')"}, "id % 5 = 0")
    rows.update({number: f"{value}!" for number, value in rows.items() if number % 5 == 0})
    writer.delete(name, "id % 7 = 3")
    for number in [number for number in rows if number % 7 == 3]:
        del rows[number]
    agree(name, rows.items())
    insert(40, 50)
    source = writer.spark.createDataFrame([(number, f"m{number}") for number in (1, 2, 44, 60, 61)], "id INT, name STRING")
    writer.merge(name, source, "t.id = s.id", [
        "WHEN MATCHED AND s.id = 2 THEN DELETE", "WHEN MATCHED THEN UPDATE SET name = s.name",
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"])
    del rows[2]
    rows.update({number: f"m{number}" for number in (1, 44, 60, 61)})
    agree(name, rows.items())
    assert compacting.compact(db, "t", "minor") == "compacted"
    agree(name, rows.items(), is_compacted=True)
    compacting.clean()
    agree(name, rows.items(), is_compacted=True)
    writer.delete(name, "id = 1 OR id = 48")
    del rows[1], rows[48]
    agree(name, rows.items(), is_compacted=True)
    assert compacting.compact(db, "t", "major") == "compacted"
    agree(name, rows.items(), is_compacted=True)
    insert(70, 75)
    writer.delete(name, "id % 10 = 4")
    rows = {number: value for number, value in rows.items() if number % 10 != 4}
    agree(name, rows.items(), is_compacted=True)
    assert compacting.compact(db, "t", "rebalance", number_of_buckets=3, order_by="ORDER BY name DESC") == "compacted"
    agree(name, rows.items(), is_compacted=True)
    writer.update(name, {"name": "concat(name, '~')"}, "id % 3 = 2")
    writer.delete(name, "id % 4 = 1")
    rows = {number: f"{value}~" if number % 3 == 2 else value for number, value in rows.items() if number % 4 != 1}
    agree(name, rows.items(), is_compacted=True)


def test_two_statements_of_one_transaction(acid_session, db, agree):
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    with acid_session.transaction():
        acid_session.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        acid_session.delete(name, "id = 2")
        acid_session.update(name, {"name": "'z'"}, "id = 3")
        acid_session.update(name, {"name": "concat(name, 'z')"}, "id = 3")
    agree(name, [(1, "a"), (3, "zz")])


def test_partitions(writer, db, compacting, trino, agree):
    name = f"{db}.t"
    writer.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (p STRING, n INT) STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    rows = [(1, "a", "b/ü=%", 1), (2, "b", "b/ü=%", 1), (3, "c", "b/ü=%", 2), (4, "d", None, 1), (5, None, "x", None)]
    writer.insert(name, writer.spark.createDataFrame(rows, "id INT, name STRING, p STRING, n INT"))
    agree(name, rows)
    writer.update(name, {"name": "'u'"}, "id IN (1, 4)")
    writer.delete(name, "id = 2")
    rows = [(1, "u", "b/ü=%", 1), (3, "c", "b/ü=%", 2), (4, "u", None, 1), (5, None, "x", None)]
    agree(name, rows)
    source = writer.spark.createDataFrame([(3, "m", "b/ü=%", 2), (6, "m", "new", 7)], "id INT, name STRING, p STRING, n INT")
    writer.merge(name, source, "t.id = s.id", [
        "WHEN MATCHED THEN UPDATE SET name = s.name",
        "WHEN NOT MATCHED THEN INSERT (id, name, p, n) VALUES (s.id, s.name, s.p, s.n)"])
    writer.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p = 'x', n = 5) VALUES (7, 'o')")
    rows = [(1, "u", "b/ü=%", 1), (3, "m", "b/ü=%", 2), (4, "u", None, 1), (5, None, "x", None), (6, "m", "new", 7), (7, "o", "x", 5)]
    agree(name, rows)
    trino.sql(f"INSERT INTO {name} VALUES (8, 't', 'new', 7), (9, 't', 'trino''s', 8)")
    rows += [(8, "t", "new", 7), (9, "t", "trino's", 8)]
    agree(name, rows)
    trino.sql(f"DELETE FROM {name} WHERE id IN (4, 8)")
    rows = [row for row in rows if row[0] not in (4, 8)]
    agree(name, rows)
    assert compacting.compact(db, "t", "major", "p=new/n=7") == "compacted"
    agree(name, rows, is_compacted=True)


@pytest.mark.parametrize("keys", ["id", "name", "name, id"])
def test_buckets(writer, db, compacting, trino, agree, keys):
    """Trino checks the bucket of each row that it reads, and looks for the rows of a key in one bucket only."""
    name = f"{db}.t"
    writer.sql(f"CREATE TABLE {name} (id INT, name STRING) CLUSTERED BY ({keys}) INTO 4 BUCKETS STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    rows = {number: f"größe {number}" for number in range(40)}
    writer.sql(f"INSERT INTO {name} VALUES {', '.join(map(str, rows.items()))}")
    agree(name, rows.items())
    trino.sql(f"INSERT INTO {name} VALUES {', '.join(f'({number}, {text!r})' for number, text in ((50, 'é'), (51, 'ü'), (52, 'z')))}")
    rows |= {50: "é", 51: "ü", 52: "z"}
    agree(name, rows.items())
    writer.delete(name, "id % 5 = 1")
    rows = {number: text for number, text in rows.items() if number % 5 != 1}
    agree(name, rows.items())
    source = writer.spark.createDataFrame([(number, "again") for number in (3, 50, 70)], "id INT, name STRING")
    writer.merge(name, source, "t.id = s.id", ["WHEN MATCHED THEN DELETE",
                                                     "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"])
    rows = {number: text for number, text in rows.items() if number not in (3, 50)} | {70: "again"}
    agree(name, rows.items())
    assert texts(trino.sql(f"SELECT id FROM {name} WHERE id = 4 AND name = 'größe 4'")) == [("4",)]
    assert [one for one in check_table(writer.client, Files(), table_name(db, "t")) if not one.finding.is_unneeded] == []
    assert compacting.compact(db, "t", "major") == "compacted"
    agree(name, rows.items(), is_compacted=True)


def test_insert_only(writer, acid_session, db, compacting, trino, agree):
    name = f"{db}.t"
    writer.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (p STRING) STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    writer.sql(f"INSERT INTO {name} VALUES (1, 'a', 'x'), (2, NULL, 'y')")
    writer.sql(f"INSERT INTO {name} VALUES (3, 'c', 'x')")
    agree(name, [(1, "a", "x"), (2, None, "y"), (3, "c", "x")])
    with pytest.raises(ZeroDivisionError), acid_session.transaction():
        acid_session.sql(f"INSERT INTO {name} VALUES (99, 'gone', 'x')")
        raise ZeroDivisionError
    writer.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p = 'y') VALUES (4, 'd')")
    agree(name, [(1, "a", "x"), (3, "c", "x"), (4, "d", "y")])
    trino.sql(f"INSERT INTO {name} VALUES (5, 'e', 'x')")
    rows = [(1, "a", "x"), (3, "c", "x"), (4, "d", "y"), (5, "e", "x")]
    agree(name, rows)
    for kind in ("minor", "major"):
        assert compacting.compact(db, "t", kind, "p=x") == "compacted", compacting.report
        compacting.clean()
        agree(name, rows, is_compacted=True)
        writer.sql(f"INSERT INTO {name} VALUES (6, '{kind}', 'x')")
        rows.append((6, kind, "x"))
        agree(name, rows, is_compacted=True)


def test_splits_end_where_stripes_end(acid_session, db, spark, compacting, agree):
    """Rows deleted and updated on both sides of each border of our stripes; each stripe is a split of its own."""
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    hadoop = spark._jsc.hadoopConfiguration()
    hadoop.set("orc.stripe.size", "262144")
    try:
        rows = spark.range(0, 40_000, 1, 1).selectExpr("cast(id AS INT) AS id", "sha2(cast(id AS STRING), 512) AS name")
        acid_session.insert(name, rows)
        values = {row.id: row.name for row in rows.collect()}
        place = acid_session.client.get_table(db, "t").sd.location
        [file] = Path(unquote(urlsplit(place).path)).glob("delta_*/bucket_00000")
        with file.open("rb") as opened:
            reader = pyorc.Reader(opened)
            edges = list(accumulate(len(reader.read_stripe(one)) for one in range(reader.num_of_stripes)))
        assert len(edges) >= 4
        changed = ", ".join(str(edge + step) for edge in edges for step in (-2, 1))
        acid_session.delete(name, f"id IN ({', '.join(str(edge + step) for edge in edges for step in (-1, 0))})")
        acid_session.update(name, {"name": "'changed'"}, f"id IN ({changed})")
        for edge in edges:
            values.update({edge + step: "changed" for step in (-2, 1) if edge + step in values})
            values.pop(edge - 1, None)
            values.pop(edge, None)
        small = {"mapreduce.input.fileinputformat.split.maxsize": "100000",
                 "mapreduce.input.fileinputformat.split.minsize": "1"}
        agree(name, values.items(), least_splits=len(edges), **small)
        assert compacting.compact(db, "t", "major") == "compacted"
        agree(name, values.items(), is_compacted=True, least_splits=len(edges), **small)
    finally:
        hadoop.unset("orc.stripe.size")


def test_every_type(acid_session, db, hive, trino):
    name = f"{db}.t"
    types = {"b": "BOOLEAN", "t": "TINYINT", "s": "SMALLINT", "i": "INT", "l": "BIGINT", "f": "FLOAT", "d": "DOUBLE",
             "n": "DECIMAL(20,4)", "v": "VARCHAR(5)", "c": "CHAR(5)", "dt": "DATE", "ts": "TIMESTAMP"}
    acid_session.sql(f"CREATE TABLE {name} (id INT, {', '.join(f'{key} {kind}' for key, kind in types.items())}, "
                     "a ARRAY<INT>, m MAP<STRING,BIGINT>, r STRUCT<x:INT,y:STRING>) STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    acid_session.sql(f"""INSERT INTO {name} SELECT 1, true, -3, -300, 1073741824, 1152921504606846976, 1.5, -0.1,
        -12345678901.2345, 'größe', 'ab', date'1969-12-31', timestamp'2013-03-10 02:30:00.123', array(1, null, 3),
        map('k', 7L), named_struct('x', 1, 'y', 'z') UNION ALL SELECT 2, {', '.join(['NULL'] * 15)}""")
    acid_session.update(name, {"i": "i + 1"}, "id = 1")

    scalars = ["1", "true", "-3", "-300", "1073741825", "1152921504606846976", "1.5", "-0.1", "-12345678901.2345", "größe"]
    for vectorized in (False, True):
        first, second = hive.rows(acid_session.client, name, vectorized=vectorized)
        assert [value.lower() for value in first[:10]] == scalars
        assert first[10].strip() == "ab"
        assert first[11] == "1969-12-31"
        assert first[12].startswith("2013-03-10 02:30:00.123")
        assert (first[14][0], first[15]) != (None, None)
        assert second[1:] == (None,) * 15
    first, second = trino.rows(name)
    assert list(first[:10]) == scalars
    assert first[10:12] == ("ab   ", "1969-12-31")
    assert first[12] == "2013-03-10T02:30:00.123"
    assert first[13:] == ("[1, null, 3]", "{k=7}", "[1, z]")
    assert second == ("2", *[None] * 15)


def test_what_hives_writer_produces_is_read(acid_session, db, hive, compacting, agree):
    """OrcRecordUpdater under write ids of real transactions; then we change and compact what it wrote."""
    from metastore.client import TxnManager

    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    place = acid_session.client.get_table(*name.split(".")).sd.location

    def written(**what):
        with TxnManager(acid_session.client).transaction() as txn:
            write_id = txn.write_id(*name.split("."))
            hive.write(acid_session.client, name, place, write_id=write_id, **what)
        return write_id

    first = written(inserts=[[1, "a"], [2, "b"], [3, None], [4, "d"]])
    written(inserts=[[5, "e"]], bucket=1)
    agree(name, [(1, "a"), (2, "b"), (3, None), (4, "d"), (5, "e")])
    b0 = 536870912
    written(updates=[{"id": [first, b0, 1], "row": [2, "B"]}], deletes=[[first, b0, 3]])
    agree(name, [(1, "a"), (2, "B"), (3, None), (5, "e")])
    acid_session.update(name, {"name": "concat(name, '?')"}, "id <= 2")
    agree(name, [(1, "a?"), (2, "B?"), (3, None), (5, "e")])
    assert compacting.compact(db, "t", "minor") == "compacted"
    agree(name, [(1, "a?"), (2, "B?"), (3, None), (5, "e")], is_compacted=True)


def test_what_trino_writes_is_read(acid_session, db, trino, agree):
    """INSERT in Trino and in Spark, and an UPDATE in Trino of rows of both."""
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    trino.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    agree(name, [(1, "a"), (2, "b"), (3, "c")])
    acid_session.sql(f"INSERT INTO {name} VALUES (4, 'd'), (5, 'e')")
    trino.sql(f"UPDATE {name} SET name = 'T' WHERE id IN (1, 4)")
    agree(name, [(1, "T"), (2, "b"), (3, "c"), (4, "T"), (5, "e")])


def test_what_trino_updates_has_wrong_key_indexes(acid_session, db, hive, trino, compacting):
    """The new versions that an UPDATE of Trino 380 writes carry a key index that ends before their last row (it names the
    write id of the old versions). Hive 4 in vector mode loads no delete event beyond that key, so it shows what was deleted
    since, whoever deleted it. `table check` names the files, a setting of Hive reads them, a compaction replaces them."""
    from metastore.client import TxnManager

    name, client = f"{db}.t", acid_session.client
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    trino.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    trino.sql(f"UPDATE {name} SET name = 'T' WHERE id <= 2")
    [(write_id, bucket, row)] = acid_session.sql(f"SELECT ROW__ID.* FROM {name} WHERE id = 2").collect()
    with TxnManager(client).transaction() as txn:
        hive.write(client, name, client.get_table(db, "t").sd.location, write_id=txn.write_id(db, "t"),
                   deletes=[[write_id, bucket, row]])
    acid_session.update(name, {"name": "'S'"}, "id = 1")
    rows, wrong = texts([(1, "S"), (3, "c")]), texts([(1, "S"), (1, "T"), (2, "T"), (3, "c")])

    assert texts(acid_session.table(name).collect()) == trino.rows(name) == rows
    assert hive.rows(client, name, vectorized=False) == rows
    assert hive.rows(client, name, vectorized=True) == wrong, "Hive has changed: tell docs/explanation/correctness.md"
    assert hive.rows(client, name, vectorized=True, **{"hive.txn.filter.delete.events": "false"}) == rows
    assert [(one.finding.rule, one.finding.path) for one in check_table(client, Files(), table_name(db, "t"))] == [
        (LayoutRule.NO_VERSION_FILE, "delta_0000002_0000002_0000"),
        (LayoutRule.WRONG_KEY_INDEX, "delta_0000002_0000002_0000/bucket_00000")]
    assert compacting.compact(db, "t", "major") == "compacted"
    assert texts(acid_session.table(name).collect()) == hive.rows(client, name, vectorized=True) == rows
    assert check_table(client, Files(), table_name(db, "t")) == []
