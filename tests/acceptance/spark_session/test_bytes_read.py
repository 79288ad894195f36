"""Which bytes of a file are read: those of all columns that a query has no use for are destroyed, and it must not notice.

What a plan says that it reads is another question: ORC reads what it is told to, and it is told by ``AcidOrcFormat``.
"""

from pathlib import Path

import pyorc
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from metastore.acid_tables import deleted
from metastore.spark.read import scans
from tests.support.acid.orc_streams import columns, destroy

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
QUESTIONS = [
    ("SELECT count(*) FROM {t}", set(), {30}),
    ("SELECT id FROM {t}", {"row.id"}, set(range(30))),
    ("SELECT note FROM {t} WHERE id = 5", {"row.id", "row.note"}, {"n5"}),
    ("SELECT id FROM {t} WHERE note IN ('n6', 'n7') AND inside.far = 'f7'", {"row.id", "row.note", "row.inside.far"}, {7}),
    ("SELECT inside.deep FROM {t}", {"row.inside.deep"}, set(range(100, 130))),
    ("SELECT ROW__ID.rowid FROM {t}", {"originalTransaction", "bucket", "rowId"}, set(range(30))),
    ("SELECT ROW__ID.writeid FROM {t} WHERE note = 'n8'", {"originalTransaction", "bucket", "rowId", "row.note"}, {1}),
]
"""A query, the columns of the file that it needs, and its answer. Nothing is deleted."""
EACH_ONCE = [QUESTIONS[number] for number in (0, 2, 4, 6)]
"""No column, one of a condition, a part of one, and ids beside a condition."""

WITHOUT_TWO = [
    ("SELECT note FROM {t} WHERE id < 5", {"row.id", "row.note"}, {"n0", "n1", "n2", "n4"}),
    ("SELECT count(*) FROM {t}", set(), {28}),
]
"""The same, where the rows 3 and 20 are deleted."""


@pytest.fixture
def table(acid_session, spark, db) -> str:
    """Thirty rows in one file."""
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT, note STRING, inside STRUCT<deep: INT, far: STRING>, "
                     f"others ARRAY<INT>) {_ACID}")
    acid_session.insert(name, spark.range(0, 30, numPartitions=1).selectExpr(
        "id", "'n' || id AS note", "struct(CAST(id + 100 AS INT) AS deep, 'f' || id AS far) AS inside", "array(1) AS others"))
    return name


def _place(acid_session, name) -> Path:
    return Path(acid_session.client.get_table(*name.split(".")).sd.location.removeprefix("file:").replace("///", "/"))


def _must_need(acid_session, name, question, needed, answer) -> None:
    """Check that a query needs exactly these columns: their bytes suffice for the answer, and without one of them the query fails."""
    file = _place(acid_session, name) / "delta_0000001_0000001_0000" / "bucket_00000"
    whole = file.read_bytes()

    def asked():
        return {row[0] for row in acid_session.sql(question.format(t=name)).collect()}

    assert destroy(file, columns(file, needed)) > 0
    assert asked() == answer
    for one in needed:
        file.write_bytes(whole)
        destroy(file, columns(file, needed) - {max(columns(file, {one}))})
        with pytest.raises((PySparkException, Py4JJavaError)):
            asked()
    file.write_bytes(whole)


@pytest.mark.parametrize("questions", [EACH_ONCE, pytest.param(QUESTIONS, marks=pytest.mark.slow)], ids=["each once", "all"])
def test_no_byte_is_read_of_columns_that_a_query_has_no_use_for(acid_session, table, questions) -> None:
    for question in questions:
        _must_need(acid_session, table, *question)


def test_no_byte_more_is_read_beside_deletes(acid_session, table) -> None:
    """Bits need no ids: all rows are there that were written."""
    acid_session.sql(f"DELETE FROM {table} WHERE id IN (3, 20)")
    for question, needed, answer in WITHOUT_TWO:
        _must_need(acid_session, table, question, needed, answer)


@pytest.mark.parametrize("words", [1_000_000, 0], ids=["bits", "join"])
def test_each_split_of_a_file_shows_its_own_rows(acid_session, spark, db, monkeypatch, words) -> None:
    """Several stripes, rows deleted and updated on both sides of each border, and a split that is smaller than a stripe."""
    monkeypatch.setattr(deleted, "MAX_WORDS", words)
    name, hadoop = f"{db}.long", spark._jsc.hadoopConfiguration()
    acid_session.sql(f"CREATE TABLE {name} (n BIGINT, text STRING) {_ACID}")
    hadoop.set("orc.stripe.size", "262144")
    try:
        acid_session.insert(name, spark.range(0, 40_000, numPartitions=1).selectExpr("id AS n", "sha2(string(id), 512) AS text"))
    finally:
        hadoop.unset("orc.stripe.size")
    with (_place(acid_session, name) / "delta_0000001_0000001_0000" / "bucket_00000").open("rb") as file:
        sizes = [len(stripe) for stripe in pyorc.Reader(file).iter_stripes()]
    borders = [sum(sizes[:number]) for number in range(1, len(sizes))]
    gone = {border + step for border in borders for step in (-2, -1, 0)}
    acid_session.delete(name, f"n IN ({', '.join(map(str, gone))})")
    acid_session.update(name, {"text": "'new'"}, f"n IN ({', '.join(str(border + 1) for border in borders)})")

    spark.conf.set("spark.sql.files.maxPartitionBytes", "100000")
    try:
        frame = acid_session.table(name, row_id=True)
        tasks, rows = frame.rdd.getNumPartitions(), frame.collect()
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")

    assert len(sizes) >= 3
    assert tasks > len(sizes)
    assert sorted(row.n for row in rows) == [n for n in range(40_000) if n not in gone]
    assert len({row.ROW__ID for row in rows}) == len(rows)
    assert sorted(row.n for row in rows if row.text == "new") == [border + 1 for border in borders]


def test_a_file_that_has_grown_since_it_was_listed_is_read_to_its_end(acid_session, spark, table) -> None:
    file = _place(acid_session, table) / "delta_0000001_0000001_0000" / "bucket_00000"
    columns = acid_session._runner.lookup(table).columns
    for size in (file.stat().st_size, 900, 4):
        rows = scans.scan_files(spark, columns, [scans.NumberedFile(str(file), size, 0)], ["__acid_row_id"])
        assert {row["__acid_row_id"] for row in rows.collect()} == set(range(30))


def test_no_file_stays_open_behind_a_query_that_does_not_read_to_the_end(acid_session, spark, db) -> None:
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT) {_ACID}")
    acid_session.insert(name, spark.range(0, 30_000, numPartitions=1))
    place, process = str(_place(acid_session, name)), spark._jvm.java.lang.ProcessHandle.current().pid()

    def opened():
        targets = []
        for one in Path(f"/proc/{process}/fd").iterdir():
            try:
                targets.append(str(one.readlink()))
            except FileNotFoundError:
                continue   # closed meanwhile
        return [target for target in targets if target.startswith(place)]

    assert len(acid_session.table(name).limit(3).collect()) == 3
    assert opened() == []
