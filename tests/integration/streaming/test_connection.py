"""A streaming connection against a real server; what it wrote is read with pyorc."""

import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic

import pyarrow as pa
import pyorc
import pytest

from metastore.acid.bucket import decode
from metastore.acid.hashes import bucket_of
from metastore.acid.types import parse_type
from metastore.client import outcome
from metastore.client.lock_manager import LockNotAcquiredError, LockWait
from metastore.errors import InvalidInputError, InvalidOperationError, TxnAbortedError
from metastore.streaming import Json, RecordError, State, connect, event_file, plain_file
from tests.support.acid.creating import create_database, create_table, snapshot
from tests.support.acid.plain_reading import rows
from tests.support.in_flight import commit_in_flight

__all__ = ["commit_in_flight"]

COLUMNS = {"id": "bigint", "v": "string"}


@pytest.fixture
def place(client):
    """Where the table ``d.t`` lies."""
    create_database(client)
    return Path(create_table(client, "t", COLUMNS))


def _values(client, place, table="t"):
    return sorted(rows(place, snapshot(client, table)).values())


def _names(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def _open_txns(client):
    return [txn.id for txn in client.get_open_txns_info().open_txns if txn.state == client.types.TxnState.OPEN]


def test_what_is_committed_is_seen_and_nothing_else(client, place):
    with connect("d.t", client=client) as connection:
        connection.begin_transaction()
        assert connection.write("1,a\n2,b\n") == 2
        assert connection.write([b"3,c", "4,\\N"]) == 2
        assert _values(client, place) == []
        connection.commit_transaction()
        assert sorted(_values(client, place)) == [(1, "a"), (2, "b"), (3, "c"), (4, None)]
        connection.begin_transaction()
        connection.write("5,e")
        connection.abort_transaction()
        with connection.transaction():
            connection.write({"id": 6})

    assert sorted(_values(client, place)) == [(1, "a"), (2, "b"), (3, "c"), (4, None), (6, None)]
    assert _names(place) == ["delta_0000001_0000001_0000/_orc_acid_version", "delta_0000001_0000001_0000/bucket_00000",
                             "delta_0000003_0000003_0000/_orc_acid_version", "delta_0000003_0000003_0000/bucket_00000"]
    assert (connection.counts.records, connection.counts.committed_records, connection.counts.committed,
            connection.counts.aborted) == (6, 5, 2, 1)
    assert _open_txns(client) == []
    assert client.show_locks(client.types.ShowLocksRequest()).locks == []


def test_a_batch_shares_its_files(client, place):
    connection = connect("d.t", client=client, transactions_per_batch=4)
    for turn in range(3):
        connection.begin_transaction()
        connection.write([{"id": turn, "v": str(row)} for row in range(3)])
        if turn == 1:
            connection.abort_transaction()
        else:
            connection.commit_transaction()
    files = ["delta_0000001_0000004/_orc_acid_version", "delta_0000001_0000004/bucket_00000",
             "delta_0000001_0000004/bucket_00000_flush_length"]
    assert _names(place) == files
    lengths = (place / files[2]).read_bytes()
    assert len(lengths) == 3 * 8
    assert lengths[:8] == bytes(8)
    expected = [(0, "0"), (0, "1"), (0, "2"), (2, "0"), (2, "1"), (2, "2")]
    assert sorted(_values(client, place)) == expected
    assert len(_open_txns(client)) == 1, "one of the batch is left"

    connection.close()

    assert _names(place) == files[:2]
    assert sorted(_values(client, place)) == expected
    assert {key[0] for key in rows(place, snapshot(client, "t"))} == {1, 3}
    assert _open_txns(client) == []


def test_batches_follow_each_other(client, place):
    with connect("d.t", client=client, transactions_per_batch=2) as connection:
        for turn in range(5):
            with connection.transaction():
                connection.write(f"{turn},x")
                assert connection.remaining == 1 - turn % 2

    assert sorted(value[0] for value in _values(client, place)) == [0, 1, 2, 3, 4]
    assert sorted({name.partition("/")[0] for name in _names(place)}) == [
        "delta_0000001_0000002", "delta_0000003_0000004", "delta_0000005_0000006"]


def test_a_batch_without_rows_leaves_no_files(client, place):
    with connect("d.t", client=client, transactions_per_batch=2) as connection:
        with connection.transaction():
            pass
        connection.begin_transaction()
        connection.write("1,x")

    assert list(place.iterdir()) == []


def test_a_record_that_does_not_fit_is_named_and_nothing_of_its_call_is_taken(client, place):
    with connect("d.t", client=client) as connection, connection.transaction():
        with pytest.raises(RecordError, match="Record 1, field id: 'two' is no bigint") as caught:
            connection.write("1,a\ntwo,b\n3,c")
        assert (caught.value.record, caught.value.field) == (1, "id")
        connection.write("7,fits")
        assert connection.state is State.OPEN

    assert _values(client, place) == [(7, "fits")]


def test_dynamic_partitions_are_created_and_announced(client):
    create_database(client)
    place = Path(create_table(client, "t", COLUMNS, keys={"day": "date", "kind": "string"}))
    with connect("d.t", client=client, records=Json(), transactions_per_batch=2) as connection:
        with connection.transaction():
            connection.write(['{"id": 1, "v": "a", "day": "2024-05-01", "kind": "x/y"}',
                              '{"id": 2, "v": "b", "day": "2024-05-02", "kind": null}',
                              '{"id": 3, "v": "c", "day": "2024-05-01", "kind": "x/y"}'])
            [lock] = client.show_locks(client.types.ShowLocksRequest()).locks
            assert (lock.dbname, lock.tablename, lock.partname) == ("d", "t", None)
            assert client.types.LockType._VALUES_TO_NAMES[lock.type] == "SHARED_READ"
        with connection.transaction():
            connection.write('{"id": 4, "day": "2024-05-02"}')

    assert client.get_partition_names("d", "t", -1) == [
        "day=2024-05-01/kind=x%2Fy", "day=2024-05-02/kind=__HIVE_DEFAULT_PARTITION__"]
    seen = snapshot(client, "t")
    assert sorted(rows(place / "day=2024-05-01" / "kind=x%2Fy", seen).values()) == [(1, "a"), (3, "c")]
    assert list(rows(place / "day=2024-05-02" / "kind=__HIVE_DEFAULT_PARTITION__", seen).values()) == [(2, "b"), (4, None)]


def test_what_was_written_dynamically_is_known_to_the_compactor(client, database):
    create_database(client)
    create_table(client, "t", COLUMNS, keys={"p": "int"})
    with connect("d.t", client=client) as connection, connection.transaction():
        connection.write("1,a,5\n2,b,6")

    found = database.once('SELECT partition, write_id FROM completed_txn_components ORDER BY partition', [])
    assert [tuple(row) for row in found] == [("p=5", 1), ("p=6", 1)]


def test_a_static_partition(client):
    create_database(client)
    place = Path(create_table(client, "t", COLUMNS, keys={"day": "date"}))
    with connect("d.t", client=client, partition={"DAY": "2024-05-01"}) as connection, connection.transaction():
        connection.write("1,a")
        [lock] = client.show_locks(client.types.ShowLocksRequest()).locks
        assert lock.partname == "day=2024-05-01"

    assert list(rows(place / "day=2024-05-01", snapshot(client, "t")).values()) == [(1, "a")]
    with pytest.raises(InvalidInputError, match="partitioned by day"):
        connect("d.t", client=client, partition={"month": "x"})


@pytest.mark.parametrize("version", [1, 2])
def test_rows_go_to_hives_buckets(client, version):
    create_database(client)
    place = Path(create_table(client, "t", {"id": "int", "name": "string", "n": "bigint"}, buckets=("name", "id"),
                              bucket_count=5, bucketing_version=str(version)))
    given = [(one, f"größe {one % 13}", one * 7) for one in range(200)]
    with connect("d.t", client=client, transactions_per_batch=2) as connection:
        for half in (given[:100], given[100:]):
            with connection.transaction():
                connection.write("\n".join(",".join(map(str, row)) for row in half))

    found = rows(place, snapshot(client, "t"))
    assert sorted(found.values()) == given
    types = [parse_type("string"), parse_type("int")]
    for (_, bucket, _), (number, name, _) in found.items():
        assert decode(bucket).writer_id == bucket_of((name, number), types, 5, version)


def test_several_threads_write_one_transaction(client, place):
    with connect("d.t", client=client, transactions_per_batch=2) as connection:
        for turn in range(2):
            with connection.transaction():
                barrier = threading.Barrier(4)

                def work(number, turn=turn, barrier=barrier):
                    barrier.wait()
                    for block in range(10):
                        connection.write([{"id": turn, "v": f"{number}-{block}-{row}"} for row in range(50)])

                threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

    found = _values(client, place)
    assert len(found) == len(set(found)) == 2 * 4 * 10 * 50


def test_arrow_data(client, place):
    with connect("d.t", client=client) as connection, connection.transaction():
        connection.write(pa.table({"ID": pa.array([1, 2], pa.int32()), "v": ["a", None]}))
        with pytest.raises(RecordError, match="Record 1, field id"):
            connection.write(pa.table({"id": [1.0, 1.5]}))

    assert sorted(_values(client, place)) == [(1, "a"), (2, None)]


def test_a_transaction_that_was_aborted_meanwhile_is_not_committed(client, place):
    connection = connect("d.t", client=client)
    connection.begin_transaction()
    connection.write("1,a")
    client.abort_txn(client.types.AbortTxnRequest(connection.txn_id))

    with pytest.raises(TxnAbortedError):
        connection.commit_transaction()

    assert connection.state is State.IDLE
    assert list(place.iterdir()) == [], "what it wrote is removed"
    with connection.transaction():
        connection.write("2,b")
    connection.close()
    assert _values(client, place) == [(2, "b")]


def test_an_exclusive_lock_keeps_writers_out(client, place):
    types = client.types
    lock = client.lock(types.LockRequest(component=[types.LockComponent(
        type=types.LockType.EXCLUSIVE, level=types.LockLevel.TABLE, dbname="d", tablename="t",
        operationType=types.DataOperationType.NO_TXN, isTransactional=True)], txnid=0, user="u", hostname="h"))
    with connect("d.t", client=client, wait=LockWait(retries=1), transactions_per_batch=3) as connection:
        with pytest.raises(LockNotAcquiredError):
            connection.begin_transaction()
        assert _open_txns(client) == []
        client.unlock(types.UnlockRequest(lock.lockid))
        with connection.transaction():
            connection.write("1,a")

    assert _values(client, place) == [(1, "a")]


def test_calls_out_of_order_are_refused(client, place):
    connection = connect("d.t", client=client)
    for call in (connection.commit_transaction, connection.abort_transaction, lambda: connection.write("1,a")):
        with pytest.raises(InvalidOperationError, match="is idle"):
            call()
    connection.begin_transaction()
    with pytest.raises(InvalidOperationError, match="is in a transaction"):
        connection.begin_transaction()
    connection.close()
    connection.close()
    with pytest.raises(InvalidOperationError, match="is closed"):
        connection.begin_transaction()


def test_tables_that_cannot_be_streamed_into(client):
    create_database(client)
    create_table(client, "log", COLUMNS, transactional_properties="insert_only")
    create_table(client, "u", {"u": "uniontype<int,string>"})
    create_table(client, "plain", COLUMNS, transactional="false")
    with pytest.raises(InvalidOperationError, match="insert-only.*one transaction per batch"):
        connect("d.log", client=client, transactions_per_batch=2)
    with pytest.raises(InvalidOperationError, match="is not transactional"):
        connect("d.plain", client=client)
    with pytest.raises(InvalidOperationError, match="Column u is a uniontype"):
        connect("d.u", client=client)
    with pytest.raises(InvalidInputError, match="one of snappy"):
        connect("d.u", client=client, compression="zstd")


def _declare(client, *, table="t", not_null=(), checks=(), defaults=(), is_enabled=True):
    """Constraints named after their columns."""
    types = client.types
    place = {"table_db": "d", "table_name": table, "enable_cstr": is_enabled}
    if not_null:
        client.add_not_null_constraint(types.AddNotNullConstraintRequest([types.SQLNotNullConstraint(
            column_name=column, nn_name=f"{column}_given", **place) for column in not_null]))
    if checks:
        client.add_check_constraint(types.AddCheckConstraintRequest([types.SQLCheckConstraint(
            column_name=None, check_expression=condition, dc_name=f"check_{number}", **place)
            for number, condition in enumerate(checks)]))
    if defaults:
        client.add_default_constraint(types.AddDefaultConstraintRequest([types.SQLDefaultConstraint(
            column_name=column, default_value=value, dc_name=f"{column}_default", **place) for column, value in defaults]))


def test_a_record_that_breaks_a_constraint_is_named_and_nothing_of_its_call_is_taken(client, place):
    _declare(client, not_null=["v"], is_enabled=False)
    _declare(client, not_null=["id"], checks=["id > 0 OR v = 'zero'", "length(v) < 5"], defaults=[("v", "'new'")])
    broken = [([{"id": 1}, {"v": "x"}], "Record 1, field id: breaks NOT NULL id_given"),
              ("1,a\n-1,b\n", r"Record 1: it breaks CHECK check_0 \(id > 0 OR v = 'zero'\)"),
              (pa.table({"id": [1, 2, 3], "v": ["a", None, "much too long"]}), "Record 2: it breaks CHECK check_1"),
              (pa.table({"v": ["a"]}), "Record 0, field id: breaks NOT NULL")]
    with connect("d.t", client=client) as connection, connection.transaction():
        for records, reason in broken:
            with pytest.raises(RecordError, match=reason):
                connection.write(records)
        assert not place.exists() or list(place.iterdir()) == []
        connection.write([{"id": 1}, {"id": 0, "v": "zero"}, {"id": 3, "v": None}])
        connection.write(pa.table({"id": [4]}))

    assert sorted(rows(place, snapshot(client, "t")).values()) == [(0, "zero"), (1, "new"), (3, None), (4, "new")]


def test_a_static_partition_is_part_of_a_check(client):
    create_database(client)
    place = Path(create_table(client, "t", COLUMNS, keys={"p": "int"}))
    _declare(client, checks=["id < p"], not_null=["p"])
    with connect("d.t", client=client, partition={"p": 5}) as connection, connection.transaction():
        connection.write("4,a")
        with pytest.raises(RecordError, match=r"check_0 \(id < p\)"):
            connection.write("5,a")
    with connect("d.t", client=client, partition={"p": None}) as connection, connection.transaction():
        with pytest.raises(RecordError, match="NOT NULL p_given"):
            connection.write("4,a")
        assert connection.write([]) == 0
    assert list(rows(place / "p=5", snapshot(client, "t")).values()) == [(4, "a")]


def test_a_check_that_cannot_be_evaluated_without_spark(client, place):
    _declare(client, checks=["rlike(v, 'x+')"])
    with pytest.raises(InvalidOperationError, match=r"CHECK check_0 .* is not understood without Spark"):
        connect("d.t", client=client)


def test_a_check_of_before_that_calls_anything_is_not_evaluated(client, place, monkeypatch):
    monkeypatch.setattr("metastore.catalog.rules.constraints.refused_expression", lambda _text: None)
    _declare(client, checks=["reflect('a', 'b') = 1"])
    with pytest.raises(InvalidOperationError, match="cannot be written: .*the function reflect is none"):
        connect("d.t", client=client)


def test_an_insert_only_table(client):
    create_database(client)
    place = Path(create_table(client, "log", COLUMNS, keys={"p": "string"}, transactional_properties="insert_only"))
    _declare(client, table="log", not_null=["id"])
    with connect("d.log", client=client) as connection:
        with connection.transaction():
            connection.write("1,a,x\n2,b,y\n")
            with pytest.raises(RecordError, match="NOT NULL"):
                connection.write({"v": "c"})
            assert connection.write("3,c,x") == 1
        connection.begin_transaction()
        connection.write("9,never,x")
        connection.abort_transaction()
        with connection.transaction():
            pass

    assert _names(place) == ["p=x/delta_0000001_0000001_0000/000000_0", "p=y/delta_0000001_0000001_0000/000000_0"]
    with (place / _names(place)[0]).open("rb") as file:
        reader = pyorc.Reader(file)
        assert (str(reader.schema), list(reader)) == ("struct<id:bigint,v:string>", [(1, "a"), (3, "c")])


def test_an_insert_only_table_in_buckets_by_several_threads(client):
    create_database(client)
    place = Path(create_table(client, "log", COLUMNS, buckets=("id",), bucket_count=3, transactional_properties="insert_only"))
    with connect("d.log", client=client) as connection, connection.transaction():
        threads = [threading.Thread(target=connection.write, args=([{"id": 10 * one + row} for row in range(10)],))
                   for one in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = {}
    for path in place.glob("*/*"):
        with path.open("rb") as file:
            found.update({row[0]: path.name for row in pyorc.Reader(file)})
    assert sorted(found) == list(range(40))
    assert all(name == f"{bucket_of((number,), [parse_type('bigint')], 3, 2):06d}_0" for number, name in found.items())


def test_a_full_disk_leaves_nothing_of_an_insert_only_transaction(client, monkeypatch):
    create_database(client)
    place = Path(create_table(client, "log", COLUMNS, transactional_properties="insert_only"))
    with connect("d.log", client=client) as connection:
        with monkeypatch.context() as patch, pytest.raises(OSError, match="full"), connection.transaction():
            connection.write("2,lost")
            patch.setattr(plain_file.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
        assert list(place.iterdir()) == []
        with connection.transaction():
            connection.write("3,behind")
    assert _names(place) == ["delta_0000002_0000002_0000/000000_0"]


@pytest.mark.parametrize("batch", [1, 3])
def test_a_disk_that_is_full_costs_one_transaction(client, place, monkeypatch, batch):
    with connect("d.t", client=client, transactions_per_batch=batch) as connection:
        with connection.transaction():
            connection.write("1,before")
        with monkeypatch.context() as patch, pytest.raises(OSError, match="full"), connection.transaction():
            connection.write("2,lost")
            patch.setattr(event_file.Segments, "tail", lambda *given: (_ for _ in ()).throw(OSError("disk full")))
        with connection.transaction():
            connection.write("3,behind")

    assert _values(client, place) == [(1, "before"), (3, "behind")]


_WRITER = """
import os, signal, sys
from metastore.streaming import connect, event_file
from metastore.streaming import batch as batches

uri, when = sys.argv[1:]
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)

connection = connect("d.t", uri=uri, transactions_per_batch=5)
for turn in range(3):
    connection.begin_transaction()
    connection.write([{"id": turn, "v": str(row)} for row in range(1000)])
    if turn == 1: connection.abort_transaction()
    else: connection.commit_transaction()
connection.begin_transaction()
connection.write([{"id": 99, "v": "x" * 1000} for row in range(5000)])
if when == "in the middle of a segment":
    connection._delta._open[next(iter(connection._delta._open))]._out.flush()
    die()
if when == "before its length is noted": event_file.Path.open = die
if when == "before the commit is sent": batches.outcome.commit = die
if when == "behind the commit":
    real = batches.outcome.commit
    batches.outcome.commit = lambda *given: (real(*given), die())
connection.commit_transaction()
"""


@pytest.mark.parametrize("when", ["in the middle of a segment", "before its length is noted", "before the commit is sent",
                                  "behind the commit"])
def test_a_writer_that_is_killed_leaves_what_it_committed(client, place, server, when):
    done = subprocess.run([sys.executable, "-c", _WRITER, server.thrift_uri, when], check=False, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr

    assert "delta_0000001_0000005/bucket_00000_flush_length" in _names(place)
    expected = [(turn, str(row)) for turn in (0, 2) for row in range(1000)]
    if when == "behind the commit":
        expected += [(99, "x" * 1000)] * 5000
    assert _values(client, place) == sorted(expected)
    client.abort_txns(client.types.AbortTxnsRequest(_open_txns(client)))  # as time would do
    assert _values(client, place) == sorted(expected)


def test_spark_is_not_needed():
    script = ("import sys\nfor name in ('pyspark', 'pandas', 'pyorc', 'sqlalchemy', 'psycopg2'):\n"
              "    sys.modules[name] = None\nimport metastore.streaming")
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_a_commit_in_flight_wrote_stays(client, place, commit_in_flight):
    """The server loses PostgreSQL while the commit runs there, which goes on and is done."""
    with connect("d.t", client=client) as connection:
        connection.begin_transaction()
        connection.write("1,a")
        with commit_in_flight():
            connection.commit_transaction()

    assert _values(client, place) == [(1, "a")]
    assert connection.counts.committed == 1


def test_an_interrupted_commit_keeps_its_files_if_it_was_done(client, place, monkeypatch):
    committed = outcome.commit

    def interrupted(*arguments):
        committed(*arguments)
        raise InterruptedError

    with connect("d.t", client=client) as connection:
        connection.begin_transaction()
        connection.write("1,a")
        with monkeypatch.context() as patched, pytest.raises(InterruptedError):
            patched.setattr(outcome, "commit", interrupted)
            connection.commit_transaction()

    assert _values(client, place) == [(1, "a")]


@pytest.fixture
def stopped(client, monkeypatch):
    """``stopped(txn_id)``: the process was stopped, and the metastore has ended its transaction meanwhile."""
    def after(txn_id):
        client.abort_txns(client.types.AbortTxnsRequest(txn_ids=[txn_id]))
        monkeypatch.setattr(outcome, "monotonic", lambda: monotonic() + 600)
    return after


def test_a_process_that_was_stopped_makes_no_directory_afterwards(client, place, stopped):
    """Whoever asked for it has forgotten the transaction by then: what appears would be read."""
    with connect("d.t", client=client) as connection:
        connection.begin_transaction()
        stopped(connection.txn_id)
        with pytest.raises(TxnAbortedError):
            connection.write("1,a")
        connection.abort_transaction()

    assert _names(place) == []


def test_a_process_that_was_stopped_flushes_nothing_afterwards(client, place, stopped, monkeypatch):
    flushed = []
    monkeypatch.setattr(event_file.InsertFile, "flush", flushed.append)
    with connect("d.t", client=client) as connection:
        connection.begin_transaction()
        connection.write("1,a")
        stopped(connection.txn_id)
        with pytest.raises(TxnAbortedError):
            connection.commit_transaction()

    assert flushed == []
