"""Tables on S3 are written in place: what the store is asked, what is there at each moment, and whatever fails meanwhile."""

import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress

import pytest
from pyspark.errors import SparkRuntimeException

from metastore.errors import MetastoreError
from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table
from tests.acceptance.spark_session import test_streaming
from tests.acceptance.tables import test_concurrent_writers, test_kills
from tests.acceptance.tables.dying import POINTS, Point
from tests.acceptance.tables.surviving import ROWS, WAYS
from tests.interop.s3.tables import create, rows
from tests.support.json_stream import JsonStream

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

COPIES = {"CopyObject", "UploadPartCopy"}
COMPLETE, PART = "CompleteMultipartUpload", "UploadPart"
DELTA = "delta_0000001_0000001_0000"

__all__ = ["create"]


def some(session, numbers, text="n", tasks=2):
    return session.spark.createDataFrame([(number, f"{text}{number}", "ab"[number % 2]) for number in numbers],
                                         "id INT, name STRING, p STRING").repartition(tasks)


def statements(session, name):
    """Yield the names of an INSERT, an UPDATE and a MERGE, each with the function that runs it."""
    yield "INSERT", lambda: session.insert(name, some(session, range(20)))
    yield "UPDATE", lambda: session.update(name, {"name": "'u'"}, "id < 5")
    yield "MERGE", lambda: session.merge(name, some(session, range(15, 25), "m"), "t.id = s.id", [
        "WHEN MATCHED AND s.id = 16 THEN DELETE", "WHEN MATCHED THEN UPDATE SET name = s.name", "WHEN NOT MATCHED THEN INSERT *"])


RESULT = sorted([(number, "u" if number < 5 else f"n{number}" if number < 15 else f"m{number}", "ab"[number % 2])
                 for number in range(25) if number != 16])


def asked(session, store, name):
    """How often the store was asked for what by each statement."""
    counted = {}
    for statement, run in statements(session, name):
        with store.watched() as seen:
            run()
        counted[statement] = Counter(request.kind for request in seen)
    assert rows(session, name) == sorted(RESULT, key=repr)
    return counted


def test_nothing_is_copied(acid_session, db, store, create):
    name, prefix = create(is_partitioned=True)
    in_place = asked(acid_session, store, name)
    assert all(not COPIES & counted.keys() for counted in in_place.values())
    assert all(counted["CreateMultipartUpload"] == counted[COMPLETE] > 0 for counted in in_place.values())
    assert store.uploads(prefix) == []
    assert check_table(acid_session.client, Files(), table_name(db, "t")) == []


def test_nobody_sees_a_file_before_its_upload_is_completed(acid_session, store, create):
    name, prefix = create()
    seen = []

    def look(request):
        if request.kind in (PART, COMPLETE) and request.key.startswith(prefix):
            seen.append((request.kind, [key.rpartition("/")[2] for key in store.keys(prefix)], len(store.uploads(prefix))))

    with store.answering(look):
        assert acid_session.insert(name, some(acid_session, range(8)).drop("p")) == 8

    parts = [one for one in seen if one[0] == PART]
    assert len(parts) == 2
    assert all(keys == [] for _, keys, _ in parts)
    first = next(one for one in seen if one[0] == COMPLETE)
    assert first[1:] == (["_orc_acid_version"], 2), "all of them are there when the first is completed"
    assert store.keys(prefix) == [f"{prefix}{DELTA}/{file}" for file in ("_orc_acid_version", "bucket_00000", "bucket_00001")]
    assert store.uploads(prefix) == []


class Refusing:
    """Refuses requests of a kind, those of these numbers (all: None)."""

    def __init__(self, kind, numbers=None, status="403 Forbidden"):
        self.kind, self.numbers, self.status, self.passed, self.refused = kind, numbers, status, 0, 0

    def __call__(self, request):
        if request.kind != self.kind:
            return None
        self.passed += 1
        if self.numbers is not None and self.passed not in self.numbers:
            return None
        self.refused += 1
        return self.status


def test_an_attempt_that_fails_takes_its_uploads_with_it(acid_session, db, store, create):
    """The files of a task are in two partitions; its first attempt has uploaded one of them when the other fails."""
    name, prefix = create(is_partitioned=True)
    with store.answering(refusing := Refusing(PART, {2})), store.watched() as seen:
        assert acid_session.insert(name, some(acid_session, range(20), tasks=1)) == 20
    kinds = Counter(request.kind for request in seen)
    assert refusing.refused == 1
    assert (kinds["CreateMultipartUpload"], kinds["AbortMultipartUpload"], kinds[COMPLETE]) == (4, 2, 2)
    assert store.uploads(prefix) == []
    assert [key.removeprefix(prefix) for key in store.keys(prefix)] == [
        f"p={value}/{DELTA}/{file}" for value in "ab" for file in ("_orc_acid_version", "bucket_00000")]
    assert len(rows(acid_session, name)) == 20
    assert check_table(acid_session.client, Files(), table_name(db, "t")) == []


def test_a_part_that_the_store_did_not_take_is_sent_again(acid_session, store, create):
    name, prefix = create()
    with store.answering(refusing := Refusing(PART, {1}, "500 Internal Server Error")):
        assert acid_session.insert(name, some(acid_session, range(50), tasks=1).drop("p")) == 50
    assert (refusing.refused, refusing.passed) == (1, 2)
    assert rows(acid_session, name) == sorted([(number, f"n{number}") for number in range(50)], key=repr)
    assert store.uploads(prefix) == []


def test_a_statement_whose_tasks_fail_leaves_nothing(acid_session, store, create):
    name, prefix = create(is_partitioned=True)
    assert acid_session.insert(name, some(acid_session, range(4))) == 4
    before = store.keys(prefix)
    is_bad = Refusing(PART)

    def answer(request):
        return is_bad(request) if "/p=b/" in request.key and request.key.endswith("bucket_00001") else None

    with store.watched() as seen, store.answering(answer), pytest.raises(Exception, match="403"):
        acid_session.insert(name, some(acid_session, range(4, 20)))
    assert is_bad.refused == 3, "tried as often as a task is"
    assert any(request.key.endswith("bucket_00000") for request in seen), "while the other task was done"
    assert (store.keys(prefix), store.uploads(prefix)) == (before, [])
    assert acid_session.update(name, {"name": "'x'"}, "id = 1") == 1


@pytest.mark.parametrize("refused", [1, 2])
def test_half_of_a_statement_is_withdrawn(acid_session, store, create, refused):
    """The others of its transaction are committed, unless what it left cannot be taken back."""
    name, prefix = create(is_partitioned=True)
    with acid_session.transaction():
        acid_session.insert(name, some(acid_session, range(4)))
        before = store.keys(prefix)
        with store.answering(refusing := Refusing(COMPLETE, {refused})), pytest.raises(Exception, match="403"):
            acid_session.insert(name, some(acid_session, range(4, 20), tasks=1))
        assert refusing.refused == 1
        assert (store.keys(prefix), store.uploads(prefix)) == (before, [])
    assert len(rows(acid_session, name)) == 4

    def nothing_goes(request):
        return "403 Forbidden" if request.kind in (COMPLETE, "AbortMultipartUpload") and "/p=b/" in request.key else None

    with pytest.raises(MetastoreError), acid_session.transaction():
        acid_session.insert(name, some(acid_session, [98]))
        with store.answering(nothing_goes), pytest.raises(SparkRuntimeException, match="cannot be removed, and is not to be committed"):
            acid_session.insert(name, some(acid_session, range(4, 20), tasks=1))
    assert len(rows(acid_session, name)) == 4
    assert all("/p=b/" in key for key in store.uploads(prefix))


def test_partitions_that_lie_elsewhere_are_written_by_way_of_staging(acid_session, db, store, create):
    name, prefix = create(is_partitioned=True)
    acid_session.sql(f"ALTER TABLE {name} ADD PARTITION (p = 'b') LOCATION 's3a://{store.bucket}/elsewhere/{db}'")
    with store.watched() as seen:
        assert acid_session.insert(name, some(acid_session, range(10))) == 10
        assert acid_session.update(name, {"name": "'u'"}, "id < 4") == 4
    kinds = {request.kind for request in seen}
    assert ("CopyObject" in kinds, "CreateMultipartUpload" in kinds) == (True, False), "the planner knows where the partition lies"
    assert rows(acid_session, name) == sorted([(one, "u" if one < 4 else f"n{one}", "ab"[one % 2]) for one in range(10)], key=repr)
    assert [key for key in store.keys(prefix) if "p=b" in key] == []
    assert len(store.keys(f"elsewhere/{db}")) > 3
    assert store.uploads(prefix) == []


def test_overwriting(acid_session, store, create):
    name, prefix = create(is_partitioned=True)
    acid_session.insert(name, some(acid_session, range(10)))
    with store.watched() as seen:
        acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p) SELECT id + 100, name, p FROM {name}")
    assert not COPIES & {request.kind for request in seen}
    assert [row[0] for row in rows(acid_session, name)] == [*range(100, 110)]
    acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p = 'a') SELECT id, name FROM {name} WHERE id < 0")
    assert [row[0] for row in rows(acid_session, name)] == [*range(101, 110, 2)]
    assert store.uploads(prefix) == []


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_compacting(acid_session, db, store, create, compacting, kind):
    name, prefix = create()
    for start in (0, 5):
        acid_session.insert(name, some(acid_session, range(start, start + 5)).drop("p"))
    acid_session.delete(name, "id = 3")
    with store.watched() as seen:
        assert compacting.compact(db, "t", kind) == "compacted", compacting.report
    kinds = {request.kind for request in seen}
    assert COMPLETE in kinds
    assert not COPIES & kinds
    assert [row[0] for row in rows(acid_session, name)] == [0, 1, 2, *range(4, 10)]
    assert store.uploads(prefix) == []


NOTHING_SEEN = test_kills.NOTHING_WRITTEN | {"complete in staging", "names given by the planner"}
CHOSEN = [name for name, point in POINTS.items() if isinstance(point, Point)] if os.environ.get("TABLE_SEEDS") else ["complete in staging", "all published"]


@pytest.mark.parametrize("point", CHOSEN)
def test_a_driver_killed(point, acid_session, db, killed, compacting, expire, store):
    test_kills.goes_on_after(point, acid_session, db, killed, compacting, expire, NOTHING_SEEN)
    left = store.uploads(f"warehouse/{db}.db/")
    has_uploads = point in ("complete in staging", "names given by the planner")
    assert bool(left) >= has_uploads, "which are no files, and become none"
    for one in store.client.list_multipart_uploads(Bucket=store.bucket).get("Uploads", []):   # as a lifecycle rule does
        store.client.abort_multipart_upload(Bucket=store.bucket, Key=one["Key"], UploadId=one["UploadId"])


@pytest.mark.parametrize("way", WAYS)
def test_executors_that_fail(way, acid_session, db, lakehouse, store):
    name, prefix = f"{db}.t", f"warehouse/{db}.db/t/"
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    done = subprocess.run([sys.executable, "-m", "tests.acceptance.tables.surviving", lakehouse.uri, name, way],
                          check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    assert [row[0] for row in sorted(rows(acid_session, name))] == [*range(ROWS)]
    assert [key.removeprefix(f"{prefix}{DELTA}/") for key in store.keys(prefix)] == [
        "_orc_acid_version", *(f"bucket_0000{number}" for number in range(4))]
    assert store.uploads(prefix) == []


def test_two_writers_at_once(acid_session, db, spark, monkeypatch, store):
    modes = test_concurrent_writers.LockModes(exclusive_write=False)
    test_concurrent_writers.test_no_change_is_lost_and_none_is_done_twice(acid_session, db, spark, monkeypatch, modes)
    assert store.uploads(f"warehouse/{db}.db/") == []


def test_a_stream(acid_session, db, spark, tmp_path, store):
    """A batch that comes again is not written again, and one that failed is."""
    name, stream = f"{db}.events", JsonStream(spark, tmp_path)
    acid_session.sql(f"CREATE TABLE {name} (id INT, name STRING) PARTITIONED BY (part INT) STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true')")
    stream.add(1, 2)
    stream.add(3)
    with store.watched() as seen:
        stream.run(acid_session, name)
        stream.forget(1)
        stream.add(4)
        stream.run(acid_session, name)
    assert not COPIES & {request.kind for request in seen if db in request.key}
    assert test_streaming.ids(acid_session, name) == [1, 2, 3, 4]
    stream.add(5, 6)
    with store.answering(Refusing(COMPLETE, {2})), suppress(test_streaming.StreamingQueryException):
        stream.run(acid_session, name)
    assert test_streaming.ids(acid_session, name) == [1, 2, 3, 4]
    stream.run(acid_session, name)
    assert test_streaming.ids(acid_session, name) == [1, 2, 3, 4, 5, 6]
    assert store.uploads(f"warehouse/{db}.db/") == []
