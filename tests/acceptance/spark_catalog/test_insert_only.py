"""Insert-only tables through the catalog: rows are added and replaced, in any format; what needs their ids is refused."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.errors import PySparkException

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
DELIMITED = "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\' STORED AS TEXTFILE"


def rows(frame) -> list[tuple]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def place(acid_session, db: str) -> Path:
    """Where ``t`` is."""
    return Path(unquote(urlsplit(acid_session.client.get_table(db, "t").sd.location).path))


def files(acid_session, db: str) -> list[str]:
    """List the files below ``t`` whose names do not begin with a dot."""
    root = place(acid_session, db)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.name.startswith(".") and path.is_file())


@pytest.mark.parametrize("stored_as", [
    "PARQUET", *(pytest.param(each, marks=pytest.mark.slow) for each in ("TEXTFILE", "ORC", "AVRO"))])
def test_rows_are_added_and_replaced(catalog, acid_session, db, open_transactions, stored_as) -> None:
    name = f"{db}.t"
    catalog.sql(f"""CREATE TABLE {name} (id INT, s STRUCT<a:INT,b:STRING>) PARTITIONED BY (k INT)
                    STORED AS {stored_as} {ONLY}""")
    catalog.sql(f"INSERT INTO {name} VALUES (1, named_struct('a', 1, 'b', 'x'), 1), (2, NULL, 2), (3, named_struct('a', 3, 'b', NULL), NULL)")
    catalog.sql(f"INSERT INTO {name} PARTITION (k = 1) SELECT 4, named_struct('a', 4, 'b', 'y')")

    assert rows(catalog.sql(f"SELECT id, s.a, k FROM {name}")) == [(1, 1, 1), (2, None, 2), (3, 3, None), (4, 4, 1)]
    assert rows(catalog.sql(f"SELECT id FROM {name} WHERE k = 1 AND s.b = 'y'")) == [(4,)]
    assert catalog.sql(f"SELECT count(*), min(id), max(k) FROM {name}").first() == (4, 1, 2)
    assert rows(catalog.table(name)) == rows(acid_session.table(name))

    catalog.sql(f"INSERT OVERWRITE {name} PARTITION (k = 1) SELECT id, s FROM {name} WHERE id = 4")
    catalog.sql(f"INSERT OVERWRITE {name} SELECT 5, NULL, 2")
    assert rows(catalog.sql(f"SELECT id, k FROM {name}")) == [(3, None), (4, 1), (5, 2)]
    assert rows(catalog.sql(f"SELECT id, k FROM {name} VERSION AS OF 2")) == [(1, 1), (2, 2), (3, None), (4, 1)]
    catalog.sql(f"TRUNCATE TABLE {name} PARTITION (k = 2)")
    assert rows(catalog.sql(f"SELECT id, k FROM {name}")) == rows(acid_session.sql(f"SELECT id, k FROM {name}")) == [(3, None), (4, 1)]
    written = [path.split("/")[1:] for path in files(acid_session, db) if path.startswith("k=1/")]
    assert [directory for directory, _ in written] == ["base_0000003", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert all(re.fullmatch("[0-9]{6}_0", file) for _, file in written)
    catalog.sql(f"TRUNCATE TABLE {name}")
    assert rows(catalog.table(name)) == []
    assert open_transactions() == []


def test_a_statement_is_seen_whole_or_not_at_all(catalog, acid_session, db, open_transactions) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} STORED AS PARQUET {ONLY} AS SELECT id, id AS n FROM range(3)")

    with pytest.raises(PySparkException):
        catalog.sql(f"INSERT INTO {name} SELECT id, raise_error('no') FROM range(3)")
    assert rows(catalog.table(name)) == [(0, 0), (1, 1), (2, 2)]
    assert {path.partition("/")[0] for path in files(acid_session, db)} == {"delta_0000001_0000001_0000"}
    catalog.sql("CALL system.begin()")
    catalog.sql(f"INSERT INTO {name} VALUES (3, 3)")
    assert catalog.table(name).count() == 4
    catalog.sql("CALL system.rollback()")
    assert catalog.table(name).count() == 3
    assert open_transactions() == []


def test_what_needs_ids_of_rows_is_refused(catalog, db, open_transactions) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} STORED AS ORC {ONLY} AS SELECT 1 AS id")
    catalog.sql("CREATE OR REPLACE TEMPORARY VIEW more AS SELECT 2 AS id")

    try:
        for command, statement in {
                "UPDATE": f"UPDATE {name} SET id = 2",
                "DELETE": f"DELETE FROM {name} WHERE id = 1",
                "DELETE ": f"DELETE FROM {name}",
                "MERGE": f"MERGE INTO {name} t USING more s ON t.id = s.id WHEN MATCHED THEN DELETE",
                "MERGE ": f"MERGE INTO {name} t USING more s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"}.items():
            with pytest.raises(PySparkException, match=f"{command.strip()} needs a full ACID table, and {name} is insert-only"):
                catalog.sql(statement)
    finally:
        catalog.catalog.dropTempView("more")
    with pytest.raises(PySparkException, match="ROW__ID"):
        catalog.sql(f"SELECT ROW__ID FROM {name}")
    assert rows(catalog.table(name)) == [(1,)]
    assert open_transactions() == []


def test_buckets_and_their_order_are_hives(catalog, acid_session, db) -> None:
    for who, session in (("ours", catalog), ("theirs", acid_session)):
        session.sql(f"""CREATE TABLE {db}.{who} (id INT, name STRING) CLUSTERED BY (name) SORTED BY (id ASC) INTO 3 BUCKETS
                        STORED AS ORC {ONLY}""")
        session.sql(f"INSERT INTO {db}.{who} SELECT CAST(id AS INT), concat('n', id % 7) FROM range(20) ORDER BY id DESC")

    assert rows(catalog.table(f"{db}.ours")) == rows(catalog.table(f"{db}.theirs"))


def test_delimiters_are_the_tables(catalog, acid_session, db) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (id INT, name STRING) {DELIMITED} {ONLY}")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'a,b'), (2, NULL)")

    assert rows(catalog.table(name)) == rows(acid_session.table(name)) == [(1, "a,b"), (2, None)]
    assert sorted("".join((place(acid_session, db) / file).read_text() for file in files(acid_session, db)).splitlines()) == ["1,a\\,b", "2,\\N"]
    with pytest.raises(PySparkException, match="A row cannot be stored in .*a value has a line's end.*Nothing was written"):
        catalog.sql(f"INSERT INTO {name} VALUES (3, 'c\\nd')")
    assert catalog.table(name).count() == 2


def test_partitions_that_are_stored_otherwise_are_read_and_not_written(catalog, acid_session, db) -> None:
    name, client = f"{db}.t", acid_session.client
    catalog.sql(f"CREATE TABLE {name} (id INT, s STRUCT<a:INT,b:INT>) PARTITIONED BY (k INT) STORED AS TEXTFILE {ONLY}")
    catalog.sql(f"INSERT INTO {name} VALUES (1, named_struct('a', 1, 'b', 2), 1)")
    table = client.get_table(db, "t")
    catalog.sql(f"CREATE TABLE {db}.other (id INT) STORED AS PARQUET {ONLY}")
    other = client.get_table(db, "other").sd
    table.sd.inputFormat, table.sd.outputFormat, table.sd.serdeInfo = other.inputFormat, other.outputFormat, other.serdeInfo
    client.alter_table(db, "t", table)
    catalog.sql(f"INSERT INTO {name} VALUES (2, named_struct('a', 3, 'b', 4), 2)")

    assert rows(catalog.sql(f"SELECT id, s.b, k FROM {name}")) == [(1, 2, 1), (2, 4, 2)]
    with pytest.raises(PySparkException, match="k=1 of .* is stored otherwise than the table is now"):
        catalog.sql(f"INSERT INTO {name} VALUES (3, NULL, 1)")
