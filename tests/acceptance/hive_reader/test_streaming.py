"""What the streaming connection writes is read by Hive's own reader and by ours: closed batches, open ones, every type."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from metastore.acid.bucket import encode
from metastore.client import MetastoreClient
from metastore.streaming import Json, connect, orc_writer
from tests.support.able import AbleClient
from tests.support.acid.creating import create_database, create_table, snapshot
from tests.support.hive_oracle.oracle import HiveOracle
from tests.support.spark_sessions import drop_database

pytestmark = pytest.mark.spark

COLUMNS = {"n": "int", "v": "string"}
BATCH = "delta_0000001_0000005"


@pytest.fixture
def client(lakehouse):
    with AbleClient(lakehouse.uri) as connected:
        create_database(connected)
        yield connected
        drop_database(lakehouse.uri, "d")


def _ours(session: Any, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.table(f"d.{table}").collect())


def _hives(oracle: HiveOracle, client: MetastoreClient, place: Path, columns: dict[str, str], **options: Any) -> list[Any]:
    return sorted(tuple(row.values) for row in oracle.rows(place, snapshot(client, place.name), columns, **options))


@pytest.mark.slow
def test_batches_open_and_closed(client: MetastoreClient, oracle: HiveOracle, acid_session: Any) -> None:
    place = Path(create_table(client, "t", COLUMNS))
    expected = []
    with connect("d.t", client=client, transactions_per_batch=5) as connection:
        for turn in range(4):
            connection.begin_transaction()
            connection.write([{"n": turn, "v": f"{row}"} for row in range(100)])
            if turn == 2:
                connection.abort_transaction()
                continue
            connection.commit_transaction()
            expected += [(turn, f"{row}") for row in range(100)]
            assert _ours(acid_session, "t") == sorted(expected), "read while the writer goes on"
        frame = acid_session.table("d.t")
        events = oracle.events(place, snapshot(client, "t"), COLUMNS, 0, base=None, deltas=[BATCH], collapse=True)
        assert sorted(tuple(event["event"][5]) for event in events) == sorted(expected)
        connection.begin_transaction()
        connection.write({"n": 99, "v": "never committed"})
        assert _ours(acid_session, "t") == sorted(expected)

    assert frame.count() == 300, "the file was closed between planning and reading"
    assert _hives(oracle, client, place, COLUMNS) == sorted(expected)
    found = oracle.rows(place, snapshot(client, "t"), COLUMNS)
    assert {row.row_id for row in found} == {(turn, encode(0), row) for turn in (1, 2, 4) for row in range(100)}
    assert _ours(acid_session, "t") == sorted(expected)


def test_every_type_arrives(client: MetastoreClient, oracle: HiveOracle) -> None:
    columns = {
        "a_boolean": "boolean", "a_tinyint": "tinyint", "a_smallint": "smallint", "an_int": "int", "a_bigint": "bigint",
        "a_float": "float", "a_double": "double", "a_decimal": "decimal(20,4)", "a_string": "string", "a_varchar": "varchar(3)",
        "a_char": "char(5)", "a_binary": "binary", "a_date": "date", "a_timestamp": "timestamp", "an_array": "array<int>",
        "a_map": "map<string,bigint>", "a_struct": "struct<x:int,y:array<string>>", "a_null": "string"}
    place = Path(create_table(client, "types", columns))
    given = {
        "a_boolean": True, "a_tinyint": -3, "a_smallint": -300, "an_int": 1 << 30, "a_bigint": 1 << 60, "a_float": 1.5,
        "a_double": -0.1, "a_decimal": "-12345678901.2345", "a_string": "größe 你好", "a_varchar": "abc", "a_char": "ab",
        "a_binary": "AP8Q", "a_date": date(1969, 12, 31), "a_timestamp": datetime(2013, 3, 10, 2, 30, 0, 123456),
        "an_array": [1, None, 3], "a_map": {"k": 7}, "a_struct": {"x": 1, "y": ["z"]}}
    with connect("d.types", client=client, records=Json(), transactions_per_batch=2) as connection:
        for _ in range(2):
            with connection.transaction():
                connection.write(given)

    shown = {**given, "a_char": "ab   ", "a_date": "1969-12-31", "a_timestamp": "2013-03-10 02:30:00.123456",
             "a_map": [["k", 7]], "a_struct": [1, ["z"]], "a_null": None}
    assert [row.values for row in oracle.rows(place, snapshot(client, "types"), columns)] == [list(shown.values())] * 2


@pytest.mark.parametrize("compression", ["snappy", "zlib"])
def test_stripes_and_splits_lose_nothing(client: MetastoreClient, oracle: HiveOracle, monkeypatch: pytest.MonkeyPatch,
                                         compression: str) -> None:
    monkeypatch.setattr(orc_writer, "_STRIPE_BYTES", 256 * 1024)
    place = Path(create_table(client, "t", COLUMNS, buckets=("n",), bucket_count=2))
    with connect("d.t", client=client, transactions_per_batch=3, compression=compression) as connection:
        for turn in range(3):
            with connection.transaction():
                numbers = range(turn * 10_000, (turn + 1) * 10_000)
                connection.write(pa.table({"n": pa.array(numbers, pa.int32()), "v": [f"{one * 7919 % 104729}" * 9 for one in numbers]}))

    found = _hives(oracle, client, place, COLUMNS, split_size=100_000)
    assert [row[0] for row in found] == list(range(30_000))


def test_an_insert_only_table(client: MetastoreClient, oracle: HiveOracle, acid_session: Any) -> None:
    """Its files are plain ORC: Hive reads them as it reads those from before a conversion."""
    columns = {"n": "int", "v": "varchar(9)", "d": "decimal(20,4)", "at": "timestamp", "s": "struct<x:int,y:array<string>>"}
    place = Path(create_table(client, "log", columns, transactional_properties="insert_only"))
    row = {"v": "größe", "d": "-12345678901.2345", "at": "2013-03-10 02:30:00.123456", "s": {"x": 1, "y": ["z", None]}}
    with connect("d.log", client=client, records=Json()) as connection:
        for n in range(3):
            connection.begin_transaction()
            connection.write([{"n": n, **row}, {"n": n + 10}])
            if n == 1:
                connection.abort_transaction()
            else:
                connection.commit_transaction()
    acid_session.sql("INSERT INTO d.log (n) VALUES (7)")

    assert [one[0] for one in _ours(acid_session, "log")] == [0, 2, 7, 10, 12]
    [first] = acid_session.table("d.log").where("n = 2").collect()
    assert (first.v, str(first.d), str(first.at), first.s.asDict()) == (
        "größe", "-12345678901.2345", "2013-03-10 02:30:00.123456", {"x": 1, "y": ["z", None]})
    shown = [2, "größe", "-12345678901.2345", "2013-03-10 02:30:00.123456", [1, ["z", None]]]
    found = oracle.rows(place / "delta_0000003_0000003_0000", snapshot(client, "log"), columns)
    assert sorted((one.values for one in found), key=lambda one: one[0]) == [shown, [12, None, None, None, None]]
