"""NULLs at every level of nested columns, written without Spark: Hive's own reader gets each value at its place."""

import json
from pathlib import Path
from random import Random

import pytest

from metastore.acid.types import parse_type
from metastore.client import scan
from metastore.streaming import Json, connect
from metastore.streaming.columns import Column
from metastore.streaming.records import from_mappings
from tests.support.able import AbleClient
from tests.support.acid import nested_rows
from tests.support.acid.creating import create_database, create_table, snapshot
from tests.support.spark_sessions import drop_database

pytestmark = pytest.mark.spark


@pytest.fixture
def client(lakehouse):
    with AbleClient(lakehouse.uri) as connected:
        create_database(connected)
        yield connected
        drop_database(lakehouse.uri, "d")


def _found(oracle, client, place, columns, *, of="t"):
    kinds = dict(list(columns.items())[1:])
    found = sorted((row.values for row in oracle.rows(place, snapshot(client, of), columns)), key=lambda values: values[0])
    return [[values[0], *nested_rows.in_order(values[1:], kinds)] for values in found]


def test_a_null_struct_moves_no_later_value(client, oracle):
    columns = {"id": "int", "c": "struct<a:int>"}
    place = Path(create_table(client, "t", columns))
    with connect("d.t", client=client) as connection, connection.transaction():
        connection.write([{"id": 0, "c": None}, {"id": 1, "c": {"a": 1}}, {"id": 2, "c": {"a": 2}}])

    assert _found(oracle, client, place, columns) == [[0, None], [1, [1]], [2, [2]]]


@pytest.mark.parametrize("seed", range(4))
def test_every_writer_keeps_each_value_at_its_place(client, oracle, seed):
    """Mappings, JSON, slices of Arrow data, several transactions in a file, and changes by row ids; insert-only tables too."""
    dice, is_insert_only = Random(seed), seed % 2 == 1
    kinds = nested_rows.columns(dice, 8)
    columns = {"id": "int", **kinds}
    properties = {"transactional_properties": "insert_only"} if is_insert_only else {}
    place = Path(create_table(client, "t", columns, **properties))
    rows = [{"id": number, **row} for number, row in enumerate(nested_rows.rows(dice, kinds, 200))]
    arrow = from_mappings(rows, [Column(name, parse_type(kind)) for name, kind in columns.items()])
    with connect("d.t", client=client, records=Json(), transactions_per_batch=1 if is_insert_only else 3) as connection:
        for records in (rows[:50], [json.dumps(row) for row in rows[50:100]], arrow.slice(100, 47)):
            with connection.transaction():
                connection.write(records)
    with connect("d.t", client=client) as connection, connection.transaction():
        connection.write(arrow.slice(147, 53).to_batches()[0])

    expected = [[row["id"], *nested_rows.shown(row, kinds)] for row in rows]
    deltas = sorted(place.glob("delta_*")) if is_insert_only else [place]
    assert sorted((row for delta in deltas for row in _found(oracle, client, delta, columns)), key=lambda row: row[0]) == expected
    assert scan("d.t", client=client).to_arrow().sort_by("id").to_pylist() == arrow.to_pylist()
