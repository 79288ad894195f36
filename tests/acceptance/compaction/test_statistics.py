"""What a compaction's job says of columns is what Spark says when it looks at all rows (hive.compactor.gather.stats)."""

from datetime import date
from decimal import Decimal
from math import isfinite

import pytest

from tests.support.compacting import Compacting

pytestmark = pytest.mark.spark
COLUMNS = {"i": "int", "l": "bigint", "d": "double", "s": "string", "v": "varchar(20)", "b": "boolean", "x": "binary",
           "n": "decimal(10,2)", "w": "decimal(38,3)", "y": "date", "t": "timestamp"}
INSERT_ONLY = "'transactional'='true', 'transactional_properties'='insert_only'"
ROWS = [
    f"{number}, {number} * 10000000000, {number} / 4.0, repeat('ä', {number}), 'v{number}', {number} > 2, cast(repeat('b', {number}) AS BINARY), -{number}.25, "
    f"12345678901234567890.125 + {number}, DATE '1970-01-0{number}', TIMESTAMP '1969-12-31 23:59:5{number}.5'"
    for number in range(1, 6)] + [", ".join(["NULL"] * 11), "9, 9, double('NaN'), '', '', false, X'', 99, 9, NULL, NULL"]


@pytest.fixture
def compacting(lakehouse, spark, nobody_reads):
    made = Compacting(lakehouse.database_url, lakehouse.uri, spark)
    yield made
    made.close()


def plain(data):
    """Statistics as a dict of plain values; only Thrift knows them as structs."""
    if hasattr(data, "unscaled"):
        return Decimal(int.from_bytes(data.unscaled, "big", signed=True)).scaleb(-data.scale)
    for name in ("daysSinceEpoch", "secondsSinceEpoch"):
        if hasattr(data, name):
            return getattr(data, name)
    return data


def fields(struct):
    """Those that are set."""
    return {name: value for name in struct.__slots__ if (value := getattr(struct, name)) is not None}


def known(client, db):
    answer = client.get_table_statistics_req(client.types.TableStatsRequest(db, "t", list(COLUMNS), engine="hive"))
    said = {}
    for each in answer.tableStats:
        [data] = fields(each.statsData).values()
        said[each.colName] = {name: plain(value) for name, value in fields(data).items()}
    return said


def expected(rows, column):
    """By Spark, of all rows: (low, high, nulls, distinct values, longest, average length, true values)."""
    values = [row[column] for row in rows]
    there = [value for value in values if value is not None]
    said = {"numNulls": len(values) - len(there)}
    if column == "b":
        return said | {"numTrues": sum(there), "numFalses": len(there) - sum(there)}
    if column in "sxv":
        said |= {"maxColLen": max(map(len, there)), "avgColLen": sum(map(len, there)) / len(values)}
        return said if column == "x" else said | {"numDVs": len(set(there))}
    finite = [value for value in there if not isinstance(value, float) or isfinite(value)]
    shown = {"y": lambda day: (day - date(1970, 1, 1)).days, "t": lambda time: int(time.strftime("%S")) - 60}.get(column, lambda value: value)
    return said | {"lowValue": shown(min(finite)), "highValue": shown(max(finite)), "numDVs": len(set(map(str, there)))}


@pytest.mark.parametrize("properties", [
    pytest.param("'transactional'='true'", id="full ACID"),
    pytest.param(INSERT_ONLY, id="insert-only", marks=pytest.mark.slow)])
def test_they_are_what_the_rows_are(acid_session, db, compacting, lakehouse, properties):
    table, client = f"{db}.t", acid_session.client
    types = client.types
    acid_session.sql(f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())}) STORED AS ORC "
                     f"TBLPROPERTIES ({properties})")
    for some in (ROWS[:3], ROWS[3:]):
        acid_session.sql(f"INSERT INTO {table} VALUES {', '.join(f'({row})' for row in some)}")
    if properties != INSERT_ONLY:
        acid_session.sql(f"DELETE FROM {table} WHERE i = 5")  # the longest, the highest
    old = types.ColumnStatisticsData(longStats=types.LongColumnStatsData(numNulls=77, numDVs=77))
    client.update_table_column_statistics(types.ColumnStatistics(
        types.ColumnStatisticsDesc(True, db, "t"),
        [types.ColumnStatisticsObj(name, kind, old) for name, kind in COLUMNS.items()]))
    compacting.database.once("UPDATE column_statistics SET last_analyzed = 0")
    rows = acid_session.table(table).collect()

    assert compacting.compact(db, "t", "major") == "compacted"

    assert known(client, db) == {column: expected(rows, column) for column in COLUMNS}
