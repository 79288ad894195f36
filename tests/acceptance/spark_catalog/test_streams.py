"""Streams into a table and out of one, in Spark's own words: every row once, in the order of the transactions."""

from contextlib import closing
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest
from pyspark.errors import StreamingQueryException

from metastore.client import streams
from metastore.config import TxnSettings
from metastore.db.engine import Database
from metastore.housekeeping.service import PurgeService
from metastore.ids import table_name
from metastore.loops.reaper import Reaper
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from metastore.planner.calls import CALLS
from metastore.spark import acid
from tests.support.compacting import Compacting
from tests.support.json_stream import JsonStream
from tests.support.spark_sessions import skip_without_acid

pytestmark = pytest.mark.spark


@pytest.fixture
def table(catalog, db):
    name = f"{db}.events"
    catalog.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (part INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    return name


def ids(catalog, name):
    return sorted(row.id for row in catalog.table(name).collect())


def position(client, name):
    [one] = streams.positions(client, table_name(*name.split(".")))
    return one


def data_files(client, name):
    root = Path(urlsplit(client.get_table(*name.split(".")).sd.location).path)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.name.endswith(".crc"))


def test_batches_arrive_once_though_their_end_is_not_known(catalog, client, table, tmp_path, open_transactions, monkeypatch) -> None:
    skip_without_acid(catalog)
    stream = JsonStream(catalog, tmp_path)
    stream.add(1, 2)
    query = stream.to_table(table)
    before = position(client, table)
    assert (before.batch.query_id, before.batch.batch_id) == (query.id, 0)

    stream.forget(0)
    stream.add(3)
    with acid(catalog) as session:  # which knows the batch too
        stream.run(session, table)
    assert ids(catalog, table) == [1, 2, 3]
    known, files = position(client, table), data_files(client, table)
    assert known.batch.batch_id == 1

    # Another run of the query is quicker: it commits after this one has asked.
    asked = []

    def not_there(call):
        asked.append(call.body.number("batch"))
        return CALLS["batch"].answer(call) if len(asked) > 1 else {"has_batch": False}

    monkeypatch.setattr(planner_server, "CALLS", {**CALLS, "batch": Method(not_there)})
    stream.forget(1)
    stream.to_table(table)

    assert asked == [1, 1]
    assert ids(catalog, table) == [1, 2, 3]
    assert position(client, table) == known
    assert data_files(client, table) == files
    assert open_transactions() == []


@pytest.mark.slow
def test_rows_of_new_transactions_come_in_order(catalog, lakehouse, spark, table, tmp_path, open_transactions) -> None:
    skip_without_acid(spark)  # which a compaction needs, too
    catalog.sql(f"INSERT INTO {table} VALUES (1, 'a', 0), (2, 'b', 1)")
    catalog.sql(f"DELETE FROM {table} WHERE id = 2")
    batches = []

    def read(**options):
        """Everything that there is; which rows came, batch by batch."""
        batches.clear()
        rows = catalog.readStream.options(maxTransactionsPerTrigger=1, **options).table(table)
        query = (rows.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint"))
                 .foreachBatch(lambda frame, _: batches.append(sorted(row.id for row in frame.collect()))).start())
        query.awaitTermination(300)
        return batches

    assert read() == [[1]]
    for number in (3, 4):
        catalog.sql(f"INSERT INTO {table} VALUES ({number}, 'n', {number % 2})")
    assert read() == [[3], [4]]

    catalog.sql(f"INSERT INTO {table} VALUES (5, 'n', 0)")
    with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as compacting:
        compacting.compact(*table.split("."), "major", "part=0")
    catalog.sql(f"UPDATE {table} SET name = 'late' WHERE id = 1")
    catalog.sql(f"INSERT INTO {table} VALUES (6, 'n', 1)")
    with pytest.raises(StreamingQueryException, match=f"write id 6 updated, deleted, overwrote or rebalanced rows of {table}"):
        read()
    assert batches == [[5]]
    assert read(skipChangeCommits="true") == [[], [6]]
    assert open_transactions() == []


class Gate:
    """The question of a stream how far it may read: it waits at a closed gate, between two batches."""

    def __init__(self, answer) -> None:
        self.answer, self.is_open, self.somebody_waits = answer, Event(), Event()
        self.is_open.set()

    def __call__(self, call):
        if not self.is_open.is_set():
            self.somebody_waits.set()
            assert self.is_open.wait(120)
        return self.answer(call)

    def close(self) -> None:
        self.somebody_waits.clear()
        self.is_open.clear()
        assert self.somebody_waits.wait(120)


def test_what_a_stream_has_yet_to_read_is_not_cleaned(catalog, lakehouse, spark, table, tmp_path, open_transactions, nobody_reads, monkeypatch) -> None:
    """Between its batches too. Once it has read it the Cleaner goes on, though the stream lives; with other tables it never waits."""
    skip_without_acid(spark)  # which a compaction needs
    gate = Gate(CALLS["settled"].answer)
    calls = {**CALLS, "settled": Method(gate), "begin": Method(lambda call: {**CALLS["begin"].answer(call), "timeout_s": 1})}
    monkeypatch.setattr(planner_server, "CALLS", calls)  # the time-out makes its transactions short
    catalog.sql(f"INSERT INTO {table} VALUES (1, 'a', 0)")
    other = f"{table}_beside"
    catalog.sql(f"CREATE TABLE {other} (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for number in range(2):
        catalog.sql(f"INSERT INTO {other} VALUES ({number})")
    batches = []
    rows = catalog.readStream.option("skipChangeCommits", "true").table(table)
    query = (rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
             .foreachBatch(lambda frame, _: batches.append(sorted(row.id for row in frame.collect()))).start())
    try:
        query.processAllAvailable()
        gate.close()
        catalog.sql(f"INSERT INTO {table} VALUES (2, 'b', 0), (3, 'c', 0)")
        catalog.sql(f"DELETE FROM {table} WHERE id = 2")
        with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as compacting:
            assert compacting.compact(*table.split("."), "major", "part=0") == "compacted"
            assert compacting.compact(*other.split("."), "major") == "compacted"
            outcomes = {str(entry.entity.table): entry.outcome.value for entry in compacting.clean()}
            assert outcomes == {table: "waiting", other: "cleaned"}
            gate.is_open.set()
            query.processAllAvailable()
            assert [ids for ids in batches if ids] == [[1], [2, 3]]
            while "cleaned" not in [entry.outcome.value for entry in compacting.clean()]:
                assert query.isActive
                Event().wait(0.2)
    finally:
        gate.is_open.set()
        query.stop()
    assert open_transactions() == []


def test_what_is_compacted_and_cleaned_at_once_stays_on_record(catalog, lakehouse, spark, table, tmp_path, nobody_reads) -> None:
    """Before house-keeping has come: rows that were added arrive, and no row that was changed is read as a new row."""
    skip_without_acid(spark)  # which a compaction needs
    batches = []

    def read(**options):
        batches.clear()
        rows = catalog.readStream.options(**options).table(table)
        query = (rows.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint"))
                 .foreachBatch(lambda frame, _: batches.append(sorted(row.id for row in frame.collect()))).start())
        query.awaitTermination(300)
        return batches

    def cleaned(statement):
        catalog.sql(statement)
        with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as compacting:
            assert compacting.compact(*table.split("."), "major", "part=0") == "compacted"
            assert "cleaned" in [entry.outcome.value for entry in compacting.clean() if str(entry.entity.table) == table]

    catalog.sql(f"INSERT INTO {table} VALUES (1, 'a', 0)")
    assert read() == [[1]]
    with closing(Database(lakehouse.database_url)) as database:
        assert Reaper(PurgeService(database, TxnSettings())).tick().failed == {}
    cleaned(f"UPDATE {table} SET name = 'late' WHERE id = 1")
    with pytest.raises(StreamingQueryException, match=f"write id 2 updated, deleted, overwrote or rebalanced rows of {table}"):
        read()
    assert read(skipChangeCommits="true") == [[]]
    cleaned(f"INSERT INTO {table} VALUES (2, 'b', 0)")
    assert read() == [[2]]
    history = catalog.sql(f"CALL system.history('{table}')").collect()
    assert [(row.write_id, row.operations) for row in history] == [(3, "insert"), (2, "update"), (1, "insert")]
