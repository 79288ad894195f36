"""Structured Streaming into transactional tables: every row once, whatever is repeated, raced or set back."""

import shutil
import time
import traceback

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from pyspark.sql.utils import ForeachBatchFunction

from metastore.ids import table_name
from metastore.spark import acid
from metastore.spark.streaming import BatchSink
from tests.support.json_stream import JsonStream
from tests.support.thrift_server import until

pytestmark = pytest.mark.spark


@pytest.fixture
def table(acid_session, db):
    """Create an empty, partitioned table, and return its name."""
    name = f"{db}.events"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (part INT) STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    return name


@pytest.fixture
def stream(spark, tmp_path):
    return JsonStream(spark, tmp_path)


def ids(session, name):
    return sorted(row["id"] for row in session.table(name).collect())


def test_batches_arrive_and_the_query_goes_on_where_it_was(acid_session, table, stream):
    stream.add(1, 2)
    stream.add(3)
    first = stream.run(acid_session, table)
    [position] = acid_session.stream_positions(table)
    assert (position.batch.query_id, position.batch.batch_id) == (first.id, 1)

    stream.add(4, 5)
    assert stream.run(acid_session, table).id == first.id

    assert ids(acid_session, table) == [1, 2, 3, 4, 5]
    assert acid_session.stream_positions(table)[0].batch.batch_id == 2


def test_a_batch_whose_end_spark_does_not_know_is_not_written_again(acid_session, table, stream):
    stream.add(1, 2)
    stream.run(acid_session, table)
    [before] = acid_session.stream_positions(table)
    stream.forget(0)
    stream.add(3)

    stream.run(acid_session, table)

    assert ids(acid_session, table) == [1, 2, 3]
    [after] = acid_session.stream_positions(table)
    assert (before.batch.batch_id, after.batch.batch_id) == (0, 1)
    assert {row["ROW__ID"]["writeid"] for row in acid_session.table(table, row_id=True).collect()} == {1, 2}


def test_a_batch_that_failed_is_written_once(acid_session, table, stream):
    stream.add(1, 2)

    def fails(session, rows):
        session.insert(table, rows)
        raise ZeroDivisionError

    with pytest.raises(StreamingQueryException):
        stream.run(acid_session, table, write=fails)
    assert (ids(acid_session, table), acid_session.stream_positions(table)) == ([], [])

    stream.run(acid_session, table)
    assert ids(acid_session, table) == [1, 2]


def test_of_two_runs_of_a_query_one_brings_the_batch(acid_session, table, stream, lakehouse):
    """Both have seen that the batch is not there; the other one commits while this one writes."""
    stream.add(1, 2)
    db, name = table.split(".")
    rival = BatchSink(table_name(db, name), str(stream.checkpoint), BatchSink.inserting(table), lambda spark: acid(spark.newSession()))

    def overtaken(session, rows):
        session.insert(table, rows)
        rival(rows, 0)

    stream.run(acid_session, table, write=overtaken)

    assert ids(acid_session, table) == [1, 2]
    [position] = acid_session.stream_positions(table)
    directories = {path.name for path in (lakehouse.warehouse / f"{db}.db" / name).glob("part=*/*")}
    assert directories == {"delta_0000002_0000002_0000"}, "what the slower run had written is gone"
    assert position.batch.batch_id == 0


def test_merging_each_batch(acid_session, table, stream):
    stream.add(1, 2)
    stream.run(acid_session, table)

    def merged(session, rows):
        session.merge(table, rows.withColumn("name", F.lit("new")), "t.id = s.id AND t.part = s.part", [
            "WHEN MATCHED THEN UPDATE SET name = s.name", "WHEN NOT MATCHED THEN INSERT *"])

    stream.add(2, 3)
    stream.run(acid_session, table, write=merged)

    found = sorted((row["id"], row["name"]) for row in acid_session.table(table).collect())
    assert found == [(1, "n1"), (2, "new"), (3, "new")]


def test_insert_only_tables(acid_session, db, stream):
    name = f"{db}.log"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING, part INT) STORED AS PARQUET TBLPROPERTIES "
                     "('transactional'='true', 'transactional_properties'='insert_only')")
    stream.add(1)
    stream.run(acid_session, name)
    stream.forget(0)
    stream.run(acid_session, name)
    assert ids(acid_session, name) == [1]


def test_a_batch_that_breaks_a_constraint_stops_the_query_and_nothing_of_it_is_there(acid_session, table, stream):
    acid_session.sql(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK (id < 10)")
    acid_session.sql(f"ALTER TABLE {table} ALTER COLUMN name SET DEFAULT 'new'")
    stream.add(1)
    stream.run(acid_session, table)
    stream.add(2, 10)
    with pytest.raises(StreamingQueryException, match=r"CHECK small \(id < 10\) by 1 row"):
        stream.run(acid_session, table)
    assert ids(acid_session, table) == [1]
    assert acid_session.stream_positions(table)[0].batch.batch_id == 0
    stream.run(acid_session, table, write=lambda session, rows: session.insert(table, rows.where("id < 10").drop("name")))
    assert sorted((row["id"], row["name"]) for row in acid_session.table(table).collect()) == [(1, "n1"), (2, "new")]


def test_a_checkpoint_that_was_set_back_is_refused(acid_session, table, stream, tmp_path):
    stream.add(1)
    stream.run(acid_session, table)
    shutil.copytree(stream.checkpoint, tmp_path / "copy")
    stream.add(2)
    stream.run(acid_session, table)
    shutil.rmtree(stream.checkpoint)
    (tmp_path / "copy").rename(stream.checkpoint)
    stream.add(3)

    with pytest.raises(StreamingQueryException, match="Batch 1 of streaming query .* has other rows than before"):
        stream.run(acid_session, table)
    assert ids(acid_session, table) == [1, 2]


def test_a_stop_in_the_middle_of_a_batch_is_quiet_and_loses_nothing(acid_session, table, stream, tmp_path, monkeypatch):
    """Spark looks for a stop in the text of the error, with a pattern that overflows in a long one: 1,000 frames of log."""
    began, go, said = tmp_path / "began", tmp_path / "go", []

    def slow(name):
        began.touch()
        while not go.exists():
            time.sleep(0.01)  # noqa: TID251 - until it is killed
        return name

    def heard(function, *arguments, call=ForeachBatchFunction.call):
        try:
            call(function, *arguments)
        except BaseException:
            said.append(traceback.format_exc())  # as it goes to the JVM
            raise

    monkeypatch.setattr(ForeachBatchFunction, "call", heard)
    stream.add(1, 2)
    rows = stream.rows().withColumn("name", F.udf(slow)("name"))
    query = acid_session.stream_into(rows, table, checkpoint=str(stream.checkpoint))
    until(began.exists)
    query.stop()
    go.touch()

    assert (query.isActive, query.exception()) == (False, None)
    assert "the query was stopped: batch 0 is read again" in said[0]
    assert len(said[0]) < 3000
    assert not (stream.checkpoint / "commits" / "0").exists()
    assert (ids(acid_session, table), acid_session.stream_positions(table)) == ([], [])

    stream.run(acid_session, table)
    assert ids(acid_session, table) == [1, 2]
    assert acid_session.stream_positions(table)[0].batch.batch_id == 0
