"""A session's settings, and values at the limits of their types: the model is a plain ORC table."""

import pytest

pytestmark = pytest.mark.spark

_COLUMNS = "id INT, f DOUBLE, d DATE, t TIMESTAMP, n DECIMAL(38,18), s STRING, b BINARY, place STRUCT<City: STRING, At: TIMESTAMP>, l BIGINT"
_ROWS = """(1, -0.0D, DATE'1582-10-04', TIMESTAMP'1899-12-31 23:59:59.123456', 99999999999999999999.999999999999999999BD, '', X'', struct('x', TIMESTAMP'1900-01-01'), 9223372036854775807L),
    (2, double('NaN'), DATE'0001-01-01', TIMESTAMP'0001-01-01 00:00:00', -99999999999999999999.999999999999999999BD, ' ', X'00FF', NULL, -9223372036854775808L),
    (3, 0.0D, DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999', 0.000000000000000001BD, 'x ', X'20', struct(NULL, NULL), 0L),
    (4, double('-Infinity'), DATE'1582-10-15', TIMESTAMP'1582-10-15 12:00:00', 0BD, NULL, NULL, struct('', NULL), NULL),
    (5, NULL, NULL, TIMESTAMP'2024-03-10 02:30:00', 1.5BD, 'A', X'41', struct('A', TIMESTAMP'2024-10-06 02:15:00'), 5L)"""
_CONDITIONS = (
    "f = 0.0D", "f = double('NaN')", "f <= 0D", "f > 1D", "f IN (-0.0D, double('NaN'))", "d = DATE'1582-10-04'", "d < DATE'1582-10-15'", "d = '0001-01-01'",
    "t < TIMESTAMP'1900-01-01'", "t = '2024-03-10 02:30:00'", "t = TIMESTAMP'1899-12-31 23:59:59.123456'", "n = 99999999999999999999.999999999999999999BD",
    "n < 0.000000000000000001BD", "n > 1e19D", "s = ''", "s = 'x'", "s > ''", "b = X''", "b > X'20'", "place.City = ''", "place.At >= '2024-10-06'",
    "l >= 9223372036854775807L")
_SHOWN = "SELECT id, f, cast(d AS STRING), cast(t AS STRING), unix_micros(t), cast(t AS DATE), n, s, b, place.City, cast(place.At AS STRING), l FROM {t}"
_COUNTED = "SELECT f, count(*), max(d), min(s), max(n), min(l) FROM {t} GROUP BY f"


def answers(session, table: str) -> list[str]:
    met = " UNION ALL ".join(f"SELECT {number}, id FROM {table} WHERE {one}" for number, one in enumerate(_CONDITIONS))
    return [sorted(map(str, session.sql(query.format(t=table)).collect())) for query in (met, _SHOWN, _COUNTED)]


@pytest.mark.parametrize("settings", [
    {"caseSensitive": True, "session.timeZone": "America/Los_Angeles", "datetime.java8API.enabled": True, "orc.columnarReaderBatchSize": 2},
    pytest.param(
        {"ansi.enabled": False, "session.timeZone": "Australia/Lord_Howe", "orc.enableVectorizedReader": False, "orc.filterPushdown": False,
         "legacy.timeParserPolicy": "LEGACY", "storeAssignmentPolicy": "STRICT"}, marks=pytest.mark.slow),
], ids=["Los Angeles", "Lord Howe"])
def test_whatever_is_set_rows_are_those_of_a_plain_table(catalog, db, settings) -> None:
    before = {f"spark.sql.{key}": catalog.conf.get(f"spark.sql.{key}") for key in settings}
    try:
        for key, value in settings.items():
            catalog.conf.set(f"spark.sql.{key}", value)
        catalog.sql(f"CREATE TABLE {db}.t ({_COLUMNS}) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
        catalog.sql(f"CREATE TABLE {db}.model ({_COLUMNS}) USING orc")
        for table in ("t", "model"):
            catalog.sql(f"INSERT INTO {db}.{table} VALUES {_ROWS}")
        assert answers(catalog, f"{db}.t") == answers(catalog, f"{db}.model")
    finally:
        for key, value in before.items():
            catalog.conf.set(key, value)


def test_both_zeros_are_the_same_number(catalog, db) -> None:
    """To the statistics of ORC files they are not."""
    catalog.sql(f"CREATE TABLE {db}.t (id INT, f DOUBLE, r FLOAT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql(f"INSERT INTO {db}.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, -0.0D, float(0.0)), (2, 0.0D, float(-0.0))")
    for condition in ("f = 0.0D", "r = float(-0.0)", "f >= 0.0D AND r <= float(-0.0)", "f IN (0.0D, 7D)", "NOT (f < 0.0D)", "NOT (r > float(-0.0))"):
        assert catalog.table(f"{db}.t").where(condition).count() == 2, condition
    catalog.sql(f"UPDATE {db}.t SET id = 3 WHERE f = 0.0D")
    assert [row.id for row in catalog.table(f"{db}.t").collect()] == [3, 3]


@pytest.mark.slow  # beside those of the table
def test_both_zeros_are_the_same_number_in_changes(catalog, session, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (id INT, f DOUBLE) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql(f"INSERT INTO {db}.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, -0.0D), (2, 0.0D)")
    for condition in ("f = 0.0D", "f IN (0.0D, 7D)", "NOT (f < 0.0D)"):
        assert session.changes(f"{db}.t", 0).where(condition).count() == 2, condition


def test_files_that_hold_one_row_are_read_where_it_meets_the_condition(catalog, db) -> None:
    """Their statistics are that row: conditions lose microseconds on the way to them, and a list with a NULL was an error."""
    times = ("2026-01-01 00:00:00", "2026-01-01 00:00:00.123456", "1969-12-31 12:00:00.000001")
    catalog.sql(f"CREATE TABLE {db}.t (id INT, t TIMESTAMP) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for number, time in enumerate(times):
        catalog.sql(f"INSERT INTO {db}.t VALUES ({number}, TIMESTAMP'{time}')")

    def met(where: str) -> list[int]:
        return sorted(row.id for row in catalog.sql(f"SELECT id FROM {db}.t WHERE {where}").collect())

    for number, time in enumerate(times):
        at = f"TIMESTAMP'{time}'"
        equal = (f"t = {at}", f"t IN ({at}, NULL)", f"NOT (t <> {at})", f"t >= {at} AND t <= {at}", f"t BETWEEN {at} AND {at}", f"NOT (t < {at} OR t > {at})")
        assert [where for where in equal if met(where) != [number]] == []
    assert met("t < TIMESTAMP'2026-01-01 00:00:00.123457' AND id > 0") == [1, 2]
    assert met("id IN (1, NULL)") == [1]
    assert met("id NOT IN (1, NULL)") == []
    catalog.sql(f"UPDATE {db}.t SET id = 9 WHERE t = TIMESTAMP'{times[1]}'")
    catalog.sql(f"DELETE FROM {db}.t WHERE t = TIMESTAMP'{times[2]}'")
    assert met("true") == [0, 9]
