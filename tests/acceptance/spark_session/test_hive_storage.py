"""Insert-only tables that Hive's own classes store: text, CSV, Avro, RCFile, SequenceFile, JSON.

What the session writes is read by Spark's own Hive tables over the same directory, what those write is read by the session.
"""

import gzip
import shutil
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg2
import pytest
from pyspark.errors import PySparkException

from metastore.errors import InvalidOperationError

pytestmark = pytest.mark.spark

ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only'"
DELIMITED = "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\' STORED AS TEXTFILE"
SERDE = "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.{}'"
CSV = SERDE.format("OpenCSVSerde") + " WITH SERDEPROPERTIES ('separatorChar'=';') STORED AS TEXTFILE"
EVERY = ("i INT, t TINYINT, l BIGINT, f FLOAT, d DOUBLE, b BOOLEAN, s STRING, c CHAR(5), n DECIMAL(20,3), day DATE, "
         "at TIMESTAMP, bin BINARY, a ARRAY<STRING>, m MAP<STRING,INT>, st STRUCT<x:INT,y:ARRAY<INT>>")
ROWS = """
SELECT 1, 2Y, 9223372036854775807L, 1.5F, 0.1D, true, 'a,b\\\\c "q" \\'é\\t', 'ab', 12345678901234567.125, DATE'2020-02-29',
       TIMESTAMP'2021-03-04 05:06:07.123456', X'00FF0A', array('x', NULL, 'y,z'), map('k', 1, 'l', NULL),
       named_struct('x', 1, 'y', array(1, 2))
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
UNION ALL SELECT -1, -2Y, -3L, -0.0F, double('-Infinity'), false, '', ' x ', -0.001, DATE'1969-12-31',
       TIMESTAMP'1969-12-31 23:59:59', X'', array('only'), map('', 0), named_struct('x', NULL, 'y', NULL)"""


def location(session, name):
    found = session.client.get_table(*name.split(".")).sd.location
    return Path(unquote(urlsplit(found).path))


def shown(frame):
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def visible(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")
                  if path.is_file() and not any(part[0] in "._" for part in path.relative_to(root).parts))


@pytest.mark.parametrize(("columns", "row_format", "rows"), [
    (EVERY, DELIMITED, ROWS),
    (EVERY, "STORED AS SEQUENCEFILE", ROWS.replace("é", "é\\n")),
    (EVERY, "STORED AS RCFILE", ROWS.replace("é", "é\\n").replace("X''", "X'01'")),  # it has no empty BINARY
    (EVERY, SERDE.format("columnar.ColumnarSerDe") + " STORED AS RCFILE", ROWS),
    (EVERY.replace("TINYINT", "INT").replace("CHAR(5)", "STRING"), "STORED AS AVRO",
     ROWS.replace(".123456", ".123").replace("é", "é\\n")),
    ("s STRING, t STRING", CSV, "SELECT 'a;\\'b', 'say \"so\"' UNION ALL SELECT '', ' x\\t'"),
], ids=["text", "sequence", "rc", "rc of text", "avro", "csv"])
def test_both_read_what_the_other_writes(acid_session, spark, db, columns, row_format, rows):
    ours, other, theirs = f"{db}.ours", f"{db}.other", f"{db}.theirs"
    acid_session.sql(f"CREATE TABLE {ours} ({columns}) {row_format} {ONLY})")
    acid_session.sql(f"INSERT INTO {ours} {rows}")
    expected = [padded(row, columns) for row in shown(spark.sql(rows))]
    assert len(expected) > 1
    assert shown(acid_session.table(ours)) == expected

    written = location(acid_session, ours) / "delta_0000001_0000001_0000"
    copied = shutil.copytree(written, written.parents[1] / "other")  # a place inside of a table's is refused
    spark.sql(f"CREATE EXTERNAL TABLE {other} ({columns}) {row_format} LOCATION '{copied.as_uri()}'")
    assert shown(spark.table(other)) == expected

    spark.sql(f"CREATE TABLE {theirs} ({columns}) {row_format}")
    spark.sql(f"INSERT INTO {theirs} {rows}")
    for file in written.iterdir():
        file.unlink()
    for number, file in enumerate(sorted(location(acid_session, theirs).glob("part-*"))):
        file.rename(written / f"{number:06}_0")
    assert shown(acid_session.table(ours)) == expected


def padded(row, columns):
    """Return a row with the blanks of CHAR(5)."""
    if "CHAR(5)" not in columns:
        return row
    return (*row[:7], None if row[7] is None else row[7].ljust(5), *row[8:])


def test_partitions_snapshots_and_every_way_of_writing(acid_session, spark, db):
    name = f"{db}.logs"
    acid_session.sql(f"CREATE TABLE {name} (id INT, line STRING) PARTITIONED BY (day DATE, n INT) "
                     f"ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\t' NULL DEFINED AS 'nil' STORED AS TEXTFILE {ONLY})")
    acid_session.sql(f"INSERT INTO {name} SELECT id, concat('l', id), DATE'2024-05-01', id % 2 FROM range(4)")
    with pytest.raises(ZeroDivisionError), acid_session.transaction():
        acid_session.sql(f"INSERT INTO {name} VALUES (9, NULL, DATE'2024-05-02', 0)")
        assert acid_session.table(name).count() == 5
        raise ZeroDivisionError
    acid_session.sql(f"INSERT INTO {name} PARTITION (day='2024-05-02', n) SELECT 5, NULL, 1")
    assert [tuple(row) for row in acid_session.sql(
        f"SELECT id, line, n FROM {name} WHERE day = '2024-05-02' OR n = 0 ORDER BY id").collect()] == [
            (0, "l0", 0), (2, "l2", 0), (5, None, 1)]
    with acid_session.snapshot():
        assert acid_session.table(name, as_of_write_id=1).count() == 4
    acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (day, n) SELECT 7, 'new', DATE'2024-05-01', 0")
    acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (day='2024-05-01', n=1) SELECT 1, 'x' WHERE false")
    assert sorted(row.id for row in acid_session.table(name).collect()) == [5, 7]
    assert acid_session.sql(f"TRUNCATE TABLE {name} PARTITION (day='2024-05-02')").first()[0] == 1
    assert [row.id for row in acid_session.table(name).collect()] == [7]
    assert b"".join(path.read_bytes() for path in location(acid_session, name).rglob("base*4/0*")) == b"7\tnew\n"

    acid_session.sql(f"CREATE TABLE {db}.copy STORED AS AVRO {ONLY}) AS SELECT * FROM {name}")
    assert acid_session.sql(f"SELECT id, day, n FROM {db}.copy").first().asDict()["id"] == 7


def test_text_in_buckets_split_and_compressed(acid_session, spark, db):
    """A file is read in parts at lines' ends, a compressed one as a whole, an empty one not at all."""
    name = f"{db}.lines"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT, text STRING) CLUSTERED BY (id) SORTED BY (id) INTO 2 BUCKETS "
                     f"{DELIMITED} {ONLY}, 'acid.descending'='id')")
    acid_session.sql(f"INSERT INTO {name} SELECT id, repeat(char(97 + id % 26), id % 50) FROM range(2000)")
    root = location(acid_session, name) / "delta_0000001_0000001_0000"
    assert visible(root) == ["000000_0", "000001_0"]
    ids = [int(line.partition(b",")[0]) for line in (root / "000000_0").read_bytes().splitlines()]
    assert ids == sorted(ids, reverse=True)
    (root / "000000_0_copy_1.gz").write_bytes(gzip.compress(b"-1,zipped\n-2,\\N\n"))
    (root / "000001_0_copy_1").write_bytes(b"")
    whole = acid_session.table(name)
    assert whole.rdd.getNumPartitions() < 10
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4k")
    try:
        parts = acid_session.table(name)
        assert parts.rdd.getNumPartitions() > 10
        assert shown(parts) == shown(whole)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert whole.where("id < 0").count() == 2
    assert whole.count() == 2002


@pytest.mark.parametrize(("columns", "row_format", "query", "reason"), [
    ("a INT, s STRING", "STORED AS TEXTFILE", "SELECT 1, 'two\\nlines'", "line's end"),
    ("a INT, s STRING", DELIMITED, "SELECT 1, 'two\\rlines'", "line's end"),
    ("a INT, s STRING", "STORED AS TEXTFILE", "SELECT 1, 'a\\u0001b'", "column s"),
    ("s STRING", "STORED AS TEXTFILE", "SELECT '\\\\N'", "column s"),
    ("a ARRAY<STRING>", "STORED AS TEXTFILE", "SELECT array('a\\u0002b')", "column a"),
    ("s STRING, t STRING", CSV, "SELECT NULL, 'x'", "NULL of the column s"),
    ("s STRING, t STRING", CSV, "SELECT 'x', 'C:\\\\x'", "column t"),
    ("b BINARY", "STORED AS RCFILE", "SELECT X''", "zero length"),
    ("at TIMESTAMP", "STORED AS AVRO", "SELECT TIMESTAMP'2020-01-01 00:00:00.000001'", "column at"),
    ("s STRING", SERDE.format("RegexSerDe") + " WITH SERDEPROPERTIES ('input.regex'='(.*)') STORED AS TEXTFILE", "SELECT 'a'",
     "only reads"),
])
def test_what_a_format_cannot_hold_is_refused(acid_session, db, columns, row_format, query, reason):
    name = f"{db}.narrow"
    acid_session.sql(f"CREATE TABLE {name} ({columns}) {row_format} {ONLY})")
    with pytest.raises(InvalidOperationError, match=reason):
        acid_session.sql(f"INSERT INTO {name} {query}")
    assert acid_session.table(name).count() == 0
    assert list(location(acid_session, name).iterdir()) == []


def test_json_as_hive_4_writes_and_reads_it(acid_session, db):
    name = f"{db}.json"
    acid_session.sql(f"CREATE TABLE {name} ({EVERY}) STORED AS JSONFILE {ONLY})")
    query = ROWS.replace("double('-Infinity')", "-1e300D").replace("é", "é\\n")
    acid_session.sql(f"INSERT INTO {name} {query}")
    assert shown(acid_session.table(name)) == [padded(row, EVERY) for row in shown(acid_session.spark.sql(query))]
    delta = location(acid_session, name) / "delta_0000001_0000001_0000"
    for file in delta.iterdir():
        file.unlink()
    (delta / "000000_0").write_text(
        '{"I": 7, "s": 1.50, "n": 0.125, "day": "2020-01-01", "unknown": {"x": [1]}, "st": {"X": 3, "y": [4, null]}, "_col3": 2.5}\n'
        '{"a": ["x", 2], "m": {"k": "3"}, "bin": "AP8K", "at": "2020-01-02 03:04:05.5", "b": true, "n": "12345678901234567.125"}\n')
    first, second = (row.asDict(recursive=True) for row in acid_session.sql(f"SELECT * FROM {name} ORDER BY i DESC").collect())
    assert (first["i"], first["s"], str(first["n"]), str(first["day"]), first["f"]) == (7, "1.5", "0.125", "2020-01-01", 2.5)
    assert first["st"] == {"x": 3, "y": [4, None]}
    assert (second["a"], second["m"], bytes(second["bin"]), second["b"]) == (["x", "2"], {"k": 3}, b"\0\xff\n", True)
    assert (str(second["at"]), str(second["n"])) == ("2020-01-02 03:04:05.500000", "12345678901234567.125")
    (delta / "000000_0").write_text("no object\n")
    with pytest.raises(Exception, match="A line is no JSON object"):
        acid_session.table(name).collect()


@pytest.mark.parametrize(("statement", "reason"), [
    (f"(a INT) {CSV}", "makes the column a string"), ("(a SMALLINT) STORED AS AVRO", "makes the column a int"),
    ("(a ARRAY<VARCHAR(3)>) STORED AS AVRO", "declare it STRING"),
    ("(a INT) STORED AS KUDU", "not KUDU"),
    ("(a INT) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS AVRO", "ROW FORMAT DELIMITED is only compatible"),
    ("(a INT) ROW FORMAT SERDE 'x.Y' STORED AS PARQUET", "ROW FORMAT SERDE is incompatible"),
])
def test_tables_that_cannot_be_are_not_created(acid_session, spark, db, statement, reason):
    with pytest.raises((InvalidOperationError, PySparkException), match=reason):
        acid_session.sql(f"CREATE TABLE {db}.never {statement} {ONLY})")
    assert spark.sql(f"SHOW TABLES IN {db}").count() == 0


def test_partitions_are_read_as_they_are_stored(acid_session, db):
    """A partition keeps the delimiter that the table had, and an old one knows fewer columns."""
    name, client = f"{db}.mixed", acid_session.client
    acid_session.sql(f"CREATE TABLE {name} (a INT, b STRING) PARTITIONED BY (p INT) {DELIMITED} {ONLY})")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'x|y', 1)")
    table = client.get_table(db, "mixed")
    table.sd.serdeInfo.parameters = {**table.sd.serdeInfo.parameters, "field.delim": "|", "serialization.format": "|"}
    client.alter_table(db, "mixed", table)
    acid_session.sql(f"ALTER TABLE {name} ADD COLUMNS (c BIGINT)")
    acid_session.sql(f"INSERT INTO {name} VALUES (2, 'x,y', 5, 2)")
    assert shown(acid_session.table(name)) == [(1, "x|y", None, 1), (2, "x,y", 5, 2)]
    assert acid_session.sql(f"SELECT b FROM {name} WHERE p = 1").first().b == "x|y"
    with pytest.raises(InvalidOperationError, match="p=1 of .* is stored otherwise"):
        acid_session.sql(f"INSERT INTO {name} VALUES (3, 'z', 6, 1)")
    with pytest.raises(InvalidOperationError, match="not moved or dropped"):
        acid_session.sql(f"ALTER TABLE {name} DROP COLUMN b")
    assert acid_session.table(name).count() == 2


def test_files_with_a_first_line_that_is_no_row(acid_session, db):
    name = f"{db}.loaded"
    acid_session.sql(f"CREATE TABLE {name} (a INT, b STRING) {DELIMITED} {ONLY})")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    table = acid_session.client.get_table(db, "loaded")
    table.parameters["skip.header.line.count"] = "1"
    acid_session.client.alter_table(db, "loaded", table)
    for file in visible(location(acid_session, name)):
        path = location(acid_session, name) / file
        path.write_bytes(b"a,b\n" + path.read_bytes())
        path.with_name(f".{path.name}.crc").unlink()
        (path.parent / "loaded.csv.gz").write_bytes(gzip.compress(b"a,b\n3,z\n"))
    assert shown(acid_session.table(name)) == [(1, "x"), (2, "y"), (3, "z")]
    with pytest.raises(InvalidOperationError, match="first lines of each file"):
        acid_session.sql(f"INSERT INTO {name} VALUES (4, 'q')")


def test_a_class_that_is_not_listed_is_neither_read_by_nor_written_by(acid_session, spark, db, lakehouse):
    """A table of before the server refused it, or of an upstream: each Spark refuses to load the class, which it has."""
    name = f"{db}.foreign_class"
    acid_session.sql(f"CREATE TABLE {name} (a INT, b STRING) {DELIMITED} {ONLY})")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'x')")
    with closing(psycopg2.connect(lakehouse.database_url)) as session, session, session.cursor() as cursor:
        cursor.execute("UPDATE tables SET sd = jsonb_set(sd, '{inputFormat}', '\"org.apache.hadoop.mapred.lib.NLineInputFormat\"')"
                       " WHERE db = %s AND name = 'foreign_class'", [db])
    for statement in (f"SELECT * FROM {name}", f"INSERT INTO {name} VALUES (2, 'y')"):
        with pytest.raises((InvalidOperationError, PySparkException), match="NLineInputFormat.*none that are known to store tables"):
            acid_session.sql(statement).collect()
    assert visible(location(acid_session, name)) == ["delta_0000001_0000001_0000/000000_0"]
