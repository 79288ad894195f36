"""Changes of rows by their ids against a real server; the outcome is read with pyorc."""

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from metastore.acid.bucket import decode, encode
from metastore.client.lock_manager import LockNotAcquiredError, LockWait
from metastore.errors import InvalidInputError, InvalidOperationError, TxnAbortedError
from metastore.streaming import MutationWorker, RecordError, connect, mutate
from tests.support.acid.creating import create_database, create_table, snapshot
from tests.support.acid.plain_reading import rows
from tests.support.in_flight import commit_in_flight

__all__ = ["commit_in_flight"]

COLUMNS = {"id": "bigint", "v": "string"}


@pytest.fixture
def place(client):
    """``d.t`` with rows 0 to 9 in two files."""
    create_database(client)
    where = Path(create_table(client, "t", COLUMNS, buckets=("id",), bucket_count=2))
    with connect("d.t", client=client) as connection, connection.transaction():
        connection.write([{"id": number, "v": f"v{number}"} for number in range(10)])
    return where


def _rows(client, place, table="t"):
    return rows(place, snapshot(client, table))


def test_inserts_updates_and_deletes_in_one_transaction(client, place):
    with mutate("d.t", client=client) as mutation:
        ids = {row[0]: key for key, row in rows(place, mutation.snapshot).items()}
        [lock] = client.show_locks(client.types.ShowLocksRequest()).locks
        assert client.types.LockType._VALUES_TO_NAMES[lock.type] == "EXCL_WRITE"
        worker = mutation.worker()
        changed = sorted(ids[number] for number in (1, 2, 3, 4))
        by_id = {key: number for number, key in ids.items()}
        assert worker.update([{"ROW__ID": key, "id": by_id[key], "v": "new"} for key in changed]) == 4
        gone = pa.table({"ROW__ID": pa.array(
            [dict(zip(("writeid", "bucketid", "rowid"), key, strict=True)) for key in sorted(ids[number] for number in (5, 6, 9))],
            pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())]))})
        assert worker.delete(gone) == 3
        assert worker.insert({"id": 100, "v": "more"}) == 1

    found = _rows(client, place)
    assert sorted(found.values()) == [(0, "v0"), (1, "new"), (2, "new"), (3, "new"), (4, "new"), (7, "v7"), (8, "v8"), (100, "more")]
    assert sorted(path.name for path in place.iterdir()) == [
        "delete_delta_0000002_0000002_0000", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert client.show_locks(client.types.ShowLocksRequest()).locks == []


def test_changes_in_partitions_are_told_to_the_metastore(client, database):
    create_database(client)
    where = Path(create_table(client, "t", COLUMNS, keys={"p": "string"}))
    with connect("d.t", client=client) as connection, connection.transaction():
        connection.write("1,a,x\n2,b,x\n3,c,y")
    row = {"ROW__ID": (1, encode(0), 0), "id": 1, "v": "changed", "p": "x"}
    with mutate("d.t", client=client) as mutation:
        worker = mutation.worker()
        worker.update(row)
        worker.insert([{"id": 4, "v": "d", "p": "z"}])

    assert sorted(rows(where / "p=x", snapshot(client, "t")).values()) == [(1, "changed"), (2, "b")]
    assert list(rows(where / "p=y", snapshot(client, "t")).values()) == [(3, "c")]
    assert list(rows(where / "p=z", snapshot(client, "t")).values()) == [(4, "d")]
    found = database.once("SELECT partition FROM completed_txn_components WHERE write_id = 2 ORDER BY 1", [])
    assert [tuple(one) for one in found] == [("p=x",), ("p=z",)]
    found = database.once('SELECT partition, operation FROM write_sets', [])
    assert [tuple(one) for one in found] == [("p=x", "u")]


@pytest.mark.parametrize(("ids", "text"), [
    ([(1, encode(0), 1), (1, encode(0), 0)], "Record 1, field ROW__ID: row .* comes behind"),
    ([(1, encode(0), 1), (1, encode(1), 0), (1, encode(0), 1)], "Record 2, .* is named twice"),
    ([(1, 7 << 29, 0)], "Record 0, field ROW__ID: .*codec version"), ([None], "is no row id"), ([(1, 2)], "is no row id")])
def test_rows_come_in_the_order_of_their_ids(client, place, ids, text):
    before = _rows(client, place)
    mutation = mutate("d.t", client=client)
    worker = mutation.worker()
    with pytest.raises(RecordError, match=text):
        worker.delete([{"ROW__ID": one} for one in ids])
    worker.delete([{"ROW__ID": (1, encode(0), 0)}])
    with pytest.raises(RecordError, match="is named twice"):
        worker.update([{"ROW__ID": (1, encode(0), 0), "id": 1}])
    mutation.abort()

    assert _rows(client, place) == before
    assert [path.name for path in place.iterdir()] == ["delta_0000001_0000001_0000"]


def test_constraints_hold_for_changes_too(client, place):
    types = client.types
    at = {"table_db": "d", "table_name": "t", "enable_cstr": True}
    client.add_check_constraint(types.AddCheckConstraintRequest([types.SQLCheckConstraint(
        column_name=None, check_expression="id < 50 AND v IS NOT NULL", dc_name="small", **at)]))
    client.add_default_constraint(types.AddDefaultConstraintRequest([types.SQLDefaultConstraint(
        column_name="v", default_value="'new'", dc_name="fresh", **at)]))
    with mutate("d.t", client=client) as mutation:
        first, second = sorted(rows(place, mutation.snapshot))[:2]
        worker = MutationWorker(pickle.loads(pickle.dumps(mutation.ticket)), 1, client=client)
        for refused in (lambda: worker.insert([{"id": 1}, {"id": 50}]), lambda: worker.update({"ROW__ID": first, "id": 7})):
            with pytest.raises(RecordError, match="breaks CHECK small"):
                refused()
        worker.insert({"id": 40})
        worker.update({"ROW__ID": second, "id": 41, "v": "changed"})
        mutation.commit([worker.close()])

    found = sorted(_rows(client, place).values())
    assert (len(found), found[-2:]) == (11, [(40, "new"), (41, "changed")])


_WORKER = """
import pickle, sys
from metastore.streaming import MutationWorker
ticket, ids, number = pickle.load(sys.stdin.buffer)
worker = MutationWorker(ticket, number)
worker.update([{"ROW__ID": one, "id": number, "v": "by another process"} for one in ids])
worker.insert([{"id": 1000 + number, "v": "new"}])
pickle.dump(worker.close(), sys.stdout.buffer)
"""


def test_workers_in_other_processes(client):
    create_database(client)
    place = Path(create_table(client, "t", COLUMNS))
    with connect("d.t", client=client) as connection, connection.transaction():
        connection.write("\n".join(f"{number},x" for number in range(10)))
    mutation = mutate("d.t", client=client)
    ids = sorted(rows(place, mutation.snapshot))
    written = []
    for number, share in enumerate((ids[::2], ids[1::2])):
        done = subprocess.run([sys.executable, "-c", _WORKER], input=pickle.dumps((mutation.ticket, share, number)),
                              capture_output=True, check=True)
        written.append(pickle.loads(done.stdout))
    total = mutation.commit(written)

    assert (total.inserted, total.deleted) == (12, 10)
    found = _rows(client, place)
    assert sorted(value[0] for value in found.values()) == [0] * 5 + [1] * 5 + [1000, 1001]
    assert {decode(key[1]).statement_id for key in found} == {0, 1}


def test_a_worker_that_died_is_not_committed(client, place):
    before = _rows(client, place)
    mutation = mutate("d.t", client=client)
    dead, alive = MutationWorker(mutation.ticket, 0), MutationWorker(mutation.ticket, 1)
    for worker in (dead, alive):
        worker.insert({"id": 50, "v": "x"})
    written = alive.close()
    with pytest.raises(InvalidOperationError, match="_0000 was written by worker 0"):
        mutation.commit([written])
    assert _rows(client, place) == before
    dead.abort()

    mutation = mutate("d.t", client=client)
    failed, second = MutationWorker(mutation.ticket, 0), MutationWorker(mutation.ticket, 1)
    for worker in (failed, second):
        worker.insert({"id": 51, "v": "y"})
    failed.abort()
    mutation.commit([second.close()])
    assert sorted(_rows(client, place).values()) == sorted([*before.values(), (51, "y")])


def test_a_transaction_that_was_aborted_meanwhile_changes_nothing(client, place):
    before = _rows(client, place)
    mutation = mutate("d.t", client=client)
    mutation.worker().delete([{"ROW__ID": (1, encode(0), 0)}])
    client.abort_txn(client.types.AbortTxnRequest(mutation.ticket.txn_id))

    with pytest.raises(TxnAbortedError):
        mutation.commit()

    assert _rows(client, place) == before


def test_two_mutations_exclude_each_other(client, place):
    with mutate("d.t", client=client), pytest.raises(LockNotAcquiredError):
        mutate("d.t", client=client, wait=LockWait(retries=1))
    with mutate("d.t", client=client) as mutation, pytest.raises(InvalidInputError, match="from 0 to 4095"):
        mutation.worker(4096)


def test_what_a_commit_in_flight_wrote_stays(client, place, commit_in_flight):
    """The server loses PostgreSQL while the commit runs there, which goes on and is done."""
    mutation = mutate("d.t", client=client)
    mutation.worker().insert({"id": 100, "v": "more"})
    with commit_in_flight():
        mutation.commit()

    assert (100, "more") in _rows(client, place).values()


def test_a_worker_that_was_stopped_finishes_nothing_afterwards(client, place, monkeypatch):
    """Its transaction was ended and forgotten meanwhile: what appears would be read."""
    before = sorted(place.rglob("*"))
    mutation = mutate("d.t", client=client)
    worker = mutation.worker()
    client.abort_txns(client.types.AbortTxnsRequest(txn_ids=[mutation.ticket.txn_id]))
    with pytest.raises(TxnAbortedError):
        worker.insert({"id": 100, "v": "more"})
    with pytest.raises(TxnAbortedError):
        worker.close()
    mutation.abort()

    assert sorted(place.rglob("*")) == before
