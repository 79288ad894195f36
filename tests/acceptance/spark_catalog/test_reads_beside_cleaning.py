"""Reads, while what they read and other tables are compacted and cleaned."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from metastore.client import scan
from tests.support.compacting import Compacting
from tests.support.thrift_server import until

pytestmark = pytest.mark.spark

GONE = "has been cleaned since this query was planned: .* Make the DataFrame anew"


@pytest.fixture
def compacting(lakehouse, spark):
    """Its Cleaner keeps replaced files for nobody but readers."""
    with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as opened:
        yield opened


@pytest.fixture
def keeping(lakehouse, spark):
    """Its Cleaner keeps them for an hour."""
    with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark, cleaner_retention=timedelta(hours=1))) as opened:
        yield opened


@pytest.fixture
def three(catalog, db):
    """Three tables of three rows and files each."""
    for table in "abc":
        catalog.sql(f"CREATE TABLE {db}.{table} (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
        for number in range(3):
            catalog.sql(f"INSERT INTO {db}.{table} VALUES ({number})")
    return [f"{db}.{table}" for table in "abc"]


def outcomes(compacting, tables):
    """Run the Cleaner, and return its outcomes for tables that were compacted."""
    report = {str(entry.entity.table): entry for entry in compacting.clean()}
    return [report[name].outcome.value if name in report else "kept" for name in tables]


def compacted(compacting, tables):
    for name in tables:
        assert compacting.compact(*name.split("."), "major") == "compacted"


def ids(frame):
    return sorted(row.id for row in frame.collect())


def slow(frame, pipe):
    """Return rows that wait until the test writes into a pipe."""
    return frame.select("id", F.udf(lambda _: pipe.read_text())("id").alias("said")).where("id = 1")


RUNNING = {
    "an execution": lambda frame, pipe, _: slow(frame, pipe).collect(),
    "an execution of what was planned before": lambda frame, pipe, ended:
        ended(planned(slow(frame.sparkSession.range(10).join(frame, "id"), pipe))).collect(),
    "a job of an RDD, which is outside of executions": lambda frame, pipe, _: slow(frame, pipe).rdd.collect(),
}


def planned(frame):
    frame._jdf.queryExecution().executedPlan()
    return frame


@pytest.mark.parametrize("form", RUNNING)
def test_what_runs_is_waited_for(catalog, three, compacting, open_transactions, tmp_path, form) -> None:
    """Its task reads from a pipe, whose other end the test opens once the Cleaner has looked."""
    def ended(frame):
        until(lambda: open_transactions() == [])
        return frame

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(RUNNING[form], catalog.table(three[0]), pipe, ended)
        with pipe.open("w") as said:  # the task has opened it
            compacted(compacting, three[:2])
            assert outcomes(compacting, three[:2]) == ["waiting", "cleaned"]
            said.write("done")
        assert [tuple(row) for row in running.result()] == [(1, "done")]
    until(lambda: open_transactions() == [])
    assert outcomes(compacting, three[:1]) == ["cleaned"]


def test_arrow_is_waited_for(three, compacting, lakehouse) -> None:
    batches = scan(three[0], uri=lakehouse.uri).to_batches()
    found = [next(batches)]
    compacted(compacting, three[:2])
    assert outcomes(compacting, three[:2]) == ["waiting", "cleaned"]
    assert sum(batch.num_rows for batch in [*found, *batches]) == 3


def iterator(_, frame):
    each = frame.toLocalIterator()
    first = next(each)
    return lambda: sorted(row.id for row in [first, *each])


def second_action(_, frame):
    assert len(frame.collect()) == 3
    return lambda: ids(frame)


def cache_without_blocks(_, frame):
    assert frame.cache().count() == 3
    frame._jdf.queryExecution().withCachedData().cacheBuilder().cachedColumnBuffers().unpersist(True)
    return lambda: ids(frame)


def explained(make):
    """Plan frames that join and unite, of which Spark has asked how large they are. Of a table alone it asks when it runs."""
    def form(catalog, frame):
        made = planned(make(catalog, frame))
        return lambda: ids(made)
    return form


def rdd(make):
    def form(_, frame):
        made = make(frame)
        assert made.getNumPartitions()  # its files are chosen
        return lambda: ids(made)
    return form


FORMS = {
    "iterator": iterator,
    "second action": second_action,
    "cache whose blocks are lost": cache_without_blocks,
    "explained join": explained(lambda catalog, frame: catalog.range(10).join(frame, "id")),
    "explained cross join": explained(lambda catalog, frame: frame.crossJoin(catalog.range(1).toDF("one")).where("id >= 0")),
    "rdd": rdd(lambda frame: frame.rdd),
    "rdd of another": rdd(lambda frame: frame.rdd.map(lambda row: row)),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_outlives_its_execution_rests_on_time(catalog, three, compacting, keeping, open_transactions, form) -> None:
    name = three[0]
    catalog.conf.set("spark.sql.files.openCostInBytes", "128mb")  # each file is of a task of its own
    try:
        within, after = [FORMS[form](catalog, catalog.table(name)) for _ in range(2)]
        compacted(keeping, [name])
        assert outcomes(keeping, [name]) == ["kept"]
        assert within() == [0, 1, 2]

        until(lambda: open_transactions() == [])
        assert outcomes(compacting, [name]) == ["cleaned"]
        with pytest.raises(Exception, match=GONE):
            after()
    finally:
        catalog.conf.unset("spark.sql.files.openCostInBytes")
        catalog.catalog.clearCache()
    assert ids(catalog.table(name)) == [0, 1, 2]


def test_frames_of_a_snapshot_rest_on_time(catalog, session, three, compacting, keeping, open_transactions) -> None:
    """Frames of the same files that were made at different times, before and after what was deleted."""
    name, other, _ = three
    before, of_other = session.table(name), session.table(other)
    with session.snapshot():
        assert ids(session.table(name)) == [0, 1, 2]
        compacted(keeping, [other])
        assert outcomes(compacting, [other]) == ["waiting"]  # the block may read it yet
        of_block = session.table(other)
    catalog.sql(f"DELETE FROM {name} WHERE id = 0")
    now = session.table(name)
    compacted(keeping, [name])
    assert outcomes(keeping, [name]) == ["kept"]
    assert (ids(before), ids(now), ids(before.join(now, "id")), ids(before.join(of_other, "id"))) == ([0, 1, 2], [1, 2], [1, 2], [0, 1, 2])

    assert open_transactions() == []
    assert outcomes(compacting, [name, other]) == ["cleaned", "cleaned"]
    found = [ids(frame.where("id < 9")) for frame in (now, of_other, of_block)]
    assert found == [[1, 2], [0, 1, 2], [0, 1, 2]]  # the compacted files have the same rows
    with pytest.raises(PySparkException, match="Not enough history .* Read again with a new snapshot"):
        before.where("id < 9").collect()


def test_what_was_inserted_in_files_without_ids_rests_on_time(catalog, session, db, compacting, keeping) -> None:
    name = f"{db}.only"
    catalog.sql(f"CREATE TABLE {name} (id INT) STORED AS PARQUET "
                "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    catalog.sql(f"INSERT INTO {name} VALUES (0)")
    frame = session.table(name)
    catalog.sql(f"INSERT INTO {name} VALUES (1)")
    assert keeping.compact(*name.split("."), "minor") == "compacted"
    assert outcomes(keeping, [name]) == ["kept"]
    assert ids(frame) == [0]
    assert outcomes(compacting, [name]) == ["cleaned"]
    with pytest.raises(PySparkException, match="holds rows from before and from after then"):
        frame.where("id < 9").collect()


def test_a_cache_is_in_the_way_of_no_table(catalog, three, compacting) -> None:
    cached, second, third = three
    frame = catalog.table(cached).cache()
    frame.createOrReplaceTempView("held")
    try:
        assert frame.count() == 3
        compacted(compacting, three[:2])
        assert outcomes(compacting, three[:2]) == ["cleaned", "cleaned"]
        assert catalog.sql(f"SELECT * FROM held JOIN {second} USING (id) JOIN {third} USING (id)").count() == 3
        assert catalog.table(cached).where("id > 0").count() == 2
    finally:
        catalog.sql("DROP VIEW held")
        frame.unpersist()
