"""Hive 4.0.1's own compactor beside ours, on copies of one table: `make interop-engine`; not part of `make test`.

Hive's Worker takes its request from the server and does it as in a cluster, its MapReduce job in the Worker's own JVM, or
by queries in Tez. What both wrote must be the same rows, and but for a rebalance the same events in the same files. Both are timed from the request to the commit
(with -s): COMPACTED_ROWS=1000000 COMPACTED_RUNS=3.
"""

import os
import shutil
import statistics
import time
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyorc
import pytest

from tests.interop.tables.old_copies import register
from tests.interop.tables.readers import described
from tests.support.compacting import Compacting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

ROWS, RUNS = int(os.environ.get("COMPACTED_ROWS", "20000")), int(os.environ.get("COMPACTED_RUNS", "1"))
COLUMNS = "id BIGINT, day INT, amount DECIMAL(9,2), customer STRING, note STRING, price DOUBLE, quantity INT, shop STRING"
VALUES = ("id", "cast(id % 365 AS INT)", "cast(hash(id) % 1000000 / 100 AS DECIMAL(9,2))", "concat('customer-', id % 5000)",
          "sha1(cast(id AS STRING))", "hash(id, 1) / 7", "cast(id % 40 AS INT)", "concat('shop-', id % 300)")


@pytest.fixture
def compacting(lakehouse, spark):
    with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as loops:
        yield loops


def base_and_deltas(session, name, deltas):
    """Create a table of a base, ten deltas and deletes of 1 %, or of a hundred small deltas."""
    def rows(first, last):
        return session.spark.range(first, last, 1, 2).selectExpr(*VALUES).toDF(*[one.split()[0] for one in COLUMNS.split(", ")])

    session.sql(f"CREATE TABLE {name} ({COLUMNS}) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    step = ROWS // 100
    if deltas == 10:
        session.overwrite(name, rows(0, 90 * step))
    for number in range(deltas):
        session.insert(name, rows((100 - deltas + number) * step, (101 - deltas + number) * step))
    if deltas == 10:
        session.sql(f"DELETE FROM {name} WHERE id % 100 = 7")


def copied(client, name, place):
    """Register a copy of the table over links to its files, and return the copy's name."""
    table = deepcopy(client.get_table(*name.split(".")))
    shutil.copytree(unquote(urlsplit(table.sd.location).path), place, copy_function=os.link)
    table.tableName, table.sd.location = f"{table.tableName}_{place.name}", place.as_uri()
    return register(client, table, described(client, name).write_ids)


def events(place: Path):
    """Every file of what a compaction wrote, with all its events; the directories without the numbers of transactions."""
    found = {}
    for file in place.glob("*_v*/bucket_*"):
        with file.open("rb") as opened:
            reader = pyorc.Reader(opened)
            found[file.parent.name.partition("_v")[0], file.name] = list(reader)
    return found


@pytest.mark.parametrize(("kind", "deltas", "way"), [
    ("major", 10, "by MapReduce"), ("minor", 100, "by MapReduce"), ("major", 10, "by queries"),
    ("minor", 100, "by queries"), ("rebalance", 10, "by queries")])
def test_both_write_the_same_events(acid_session, engine, db, compacting, tmp_path, kind, deltas, way):
    name, client = f"{db}.t", acid_session.client
    base_and_deltas(acid_session, name, deltas)
    before = sorted(map(tuple, acid_session.table(name).collect()))
    more = {"number_of_buckets": 4} if kind == "rebalance" else {}
    taken = {"ours": [], "Hive's": []}

    def by_us(table):
        assert compacting.compact(*table.split("."), kind, **more) == "compacted", compacting.report

    def by_hive(table):
        types = client.types
        asked = client.compact2(types.CompactionRequest(*table.split("."), type=getattr(types.CompactionType, kind.upper()),
                                                        numberOfBuckets=more.get("number_of_buckets")))
        engine.ask(compact=way)
        [done] = [one for one in client.show_compact(types.ShowCompactRequest(id=asked.id)).compacts if one.id == asked.id]
        assert done.state == "ready for cleaning", done.errorMessage

    for run in range(RUNS + 1):
        written = {}
        for who, compact in (("ours", by_us), ("Hive's", by_hive)):
            place = tmp_path / f"{who[:4].lower()}_{run}"
            table = copied(client, name, place)
            begin = time.perf_counter()
            compact(table)
            taken[who].append(time.perf_counter() - begin)
            assert sorted(map(tuple, acid_session.table(table).collect())) == before
            written[who] = events(place) if run == 0 else {}
        if kind != "rebalance":  # ours has a write id of its own (ADR 69), and other rows in each bucket
            assert written["ours"] == written["Hive's"]
    mine, theirs = (statistics.median(seconds[1:]) for seconds in taken.values())
    print(f"\n| {kind}, {ROWS} rows | {mine:.2f} s | {theirs:.2f} s | {way} | {mine / theirs:.2f} |")
