"""Tables read as Arrow, without Spark: what was written by streams and changes is what is read."""

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from metastore.acid_tables import deleted
from metastore.acid_tables.serde_storage import CLASSES
from metastore.client import scan
from metastore.errors import InvalidInputError, InvalidOperationError, NoSuchObjectError
from metastore.streaming import connect
from tests.support.acid.changing import change
from tests.support.acid.creating import create_database, create_table


@pytest.fixture(autouse=True)
def database_d(client):
    create_database(client)


def insert(client, table, *rows):
    with connect(f"d.{table}", client=client) as stream, stream.transaction():
        stream.write(pa.Table.from_pylist(list(rows)))


def open_txns(client):
    return [one for one in client.get_open_txns_info().open_txns if one.state == client.types.TxnState.OPEN]


def rows(client, table, *options, **more):
    found = scan(f"d.{table}", *options, client=client, **more).to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row.get("id")))


def test_every_type_comes_back_as_it_was_written(client):
    create_table(client, "t", {
        "id": "bigint", "flag": "boolean", "small": "smallint", "real": "double", "price": "decimal(10,2)", "name": "varchar(20)",
        "day": "date", "at": "timestamp", "raw": "binary", "tags": "array<string>", "by": "map<string,int>", "who": "struct<A:int,b:array<int>>"})
    written = [{"id": 1, "flag": True, "small": 2, "real": 0.5, "price": Decimal("1.20"), "name": "ä", "day": dt.date(2026, 1, 2),
                "at": dt.datetime(2026, 1, 2, 3, 4, 5, 678901), "raw": b"\x00\xff", "tags": ["x", None], "by": [("k", 1)],
                "who": {"a": 1, "b": [2]}},
               {"id": 2, **dict.fromkeys(("flag", "small", "real", "price", "name", "day", "at", "raw", "tags", "by", "who"))}]
    with connect("d.t", client=client) as stream, stream.transaction():
        stream.write(written)

    found = scan("d.t", client=client).to_arrow()

    assert found.schema.field("at").type == pa.timestamp("us")
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == written


@pytest.mark.parametrize("events", ["as bits", "one by one"])
def test_changes_past_and_present(client, events, monkeypatch):
    if events == "one by one":
        monkeypatch.setattr(deleted, "MAX_EVENTS", 0)
    create_table(client, "t", {"id": "int", "name": "string"})
    insert(client, "t", *({"id": one, "name": "a"} for one in range(5)))
    change(client, "d.t", update=[{"ROW__ID": (1, 536870912, 1), "id": 1, "name": "b"}], delete=[{"ROW__ID": (1, 536870912, 3)}])
    insert(client, "t", {"id": 9, "name": "c"})

    now = [(one["id"], one["name"]) for one in rows(client, "t")]

    assert now == [(0, "a"), (1, "b"), (2, "a"), (4, "a"), (9, "c")]
    assert [one["id"] for one in rows(client, "t", 1)] == [0, 1, 2, 3, 4]
    assert rows(client, "t", columns=["NAME"], partitions=())[0].keys() == {"name"}
    assert scan("d.t", client=client, columns=["id"]).to_arrow().num_rows == 5
    with pytest.raises(InvalidOperationError, match="names at least one column"):
        rows(client, "t", columns=[])
    assert open_txns(client) == []


def test_partitions_columns_and_what_there_is_not(client):
    create_table(client, "t", {"id": "int", "name": "string"}, keys={"day": "date", "n": "int"})
    for number, day in ((1, "2026-01-01"), (2, "2026-01-02"), (3, "2026-01-02")):
        insert(client, "t", {"id": number, "name": "x", "day": day, "n": number})

    assert rows(client, "t", columns=["n", "day", "id"])[0] == {"n": 1, "day": dt.date(2026, 1, 1), "id": 1}
    assert [one["id"] for one in rows(client, "t", partitions=[("day", "=", "2026-01-02"), ("n", ">", "2")])] == [3]
    assert sum(batch.num_rows for batch in scan("d.t", client=client).to_batches()) == 3
    with pytest.raises(InvalidOperationError, match="has no column nothing. It has: id, name, day, n"):
        rows(client, "t", columns=["nothing"])
    with pytest.raises(NoSuchObjectError):
        rows(client, "u")
    with pytest.raises(InvalidOperationError, match="has no time zone"):
        rows(client, "t", dt.datetime(2026, 1, 1))
    assert open_txns(client) == []


def test_a_condition_is_decided_or_refused(client):
    create_table(client, "t", {"id": "int"}, keys={"ok": "boolean", "day": "date", "n": "bigint"})
    for number in range(3):
        insert(client, "t", {"id": number, "ok": number == 1, "day": dt.date(2026, 1, number + 1), "n": 9223372036854775805 + number})

    for condition, ids in ((("ok", "=", "true"), [1]), (("n", "=", "9223372036854775807"), [2]), (("ok", "is null"), [])):
        assert [one["id"] for one in rows(client, "t", partitions=[condition])] == ids, condition
    for condition in (("n", "=", "x"), ("day", ">", "2026-1-1"), ("ok", "=", "maybe")):
        with pytest.raises(InvalidInputError, match="is no value of the partition key"):
            rows(client, "t", partitions=[condition])
    assert open_txns(client) == []


def test_files_from_before_have_ids_and_lose_rows_by_them(client):
    location = Path(create_table(client, "t", {"id": "int", "late": "string"}))
    location.mkdir(parents=True, exist_ok=True)
    orc.write_table(pa.table({"ID": pa.array([1, 2], pa.int16())}), location / "000000_0")
    orc.write_table(pa.table({"_col0": [3], "_col1": ["z"]}), location / "000000_0_copy_1")
    orc.write_table(pa.table({"id": [4]}), location / "part-7")
    change(client, "d.t", delete=[{"ROW__ID": (0, 536870912, 1)}])

    assert rows(client, "t") == [{"id": 1, "late": None}, {"id": 3, "late": "z"}, {"id": 4, "late": None}]
    assert scan("d.t", client=client, columns=["late"]).to_arrow().num_rows == 3


def test_insert_only_tables_of_parquet(client):
    location = Path(create_table(client, "t", {"id": "int", "more": "double", "at": "timestamp"}, transactional_properties="insert_only"))
    request = client.types.OpenTxnRequest(num_txns=1, user="u", hostname="h")
    [txn] = client.open_txns(request).txn_ids
    client.allocate_table_write_ids(client.types.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[txn]))
    found = client.get_table("d", "t")
    found.sd.inputFormat, found.sd.outputFormat, found.sd.serdeInfo.serializationLib = CLASSES["parquet"]
    client.alter_table("d", "t", found)
    delta = location / "delta_0000001_0000001_0000"
    delta.mkdir(parents=True)
    far = pa.array([dt.datetime(1500, 1, 2, 3), dt.datetime(2300, 1, 2, 3)], pa.timestamp("us"))  # as INT96, as Hive and Spark write them
    parquet.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "at": far}), delta / "000000_0", use_deprecated_int96_timestamps=True)
    assert rows(client, "t") == []
    client.commit_txn(client.types.CommitTxnRequest(txnid=txn))

    assert rows(client, "t") == [{"id": 1, "more": None, "at": far[0].as_py()}, {"id": 2, "more": None, "at": far[1].as_py()}]


def test_the_transaction_is_open_as_long_as_batches_are_read(client):
    create_table(client, "t", {"id": "int"})
    insert(client, "t", {"id": 1})
    insert(client, "t", {"id": 2})
    batches = scan("d.t", client=client).to_batches()
    next(batches)
    [found] = open_txns(client)
    assert found.agentInfo == "metastore.client.scan"
    batches.close()
    assert open_txns(client) == []


def test_a_file_that_is_no_orc_file_is_named(client):
    location = Path(create_table(client, "t", {"id": "int"}))
    insert(client, "t", {"id": 1})
    [file] = location.glob("delta*/bucket_00000")
    file.write_bytes(b"not at all")
    with pytest.raises(OSError, match="bucket_00000 cannot be read as an ORC file"):
        rows(client, "t")


def test_the_programs_of_the_page(client, server, monkeypatch, capsys):
    monkeypatch.setattr("tests.support.acid.creating.DATABASE", "sales")
    create_database(client, "sales")
    create_table(client, "orders", {"id": "int", "state": "string"})
    with connect("sales.orders", client=client) as stream, stream.transaction():
        stream.write(pa.table({"id": [1, 2, 3], "state": ["open", "paid", "open"]}))
    page = Path(__file__).parents[3] / "docs/how-to/read-without-spark.md"
    names = {}
    for program in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(program.replace("thrift://localhost:9083", server.thrift_uri), str(page), "exec"), names)
    assert capsys.readouterr().out.splitlines()[-2:] == ["3 ['id', 'state']", "2"]
