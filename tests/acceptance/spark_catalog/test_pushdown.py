"""What Spark leaves to a scan: conditions on partition keys, limits, aggregates. The model is the same rows in parquet."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import Row

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_KEYS = "day DATE, price DECIMAL(5,2), at TIMESTAMP, name STRING, n INT, flag BOOLEAN"
_ROWS = """(1, DATE'2026-01-01', 1.5, TIMESTAMP'2026-01-01 10:00:00.5', 'abc', 1, true),
    (2, DATE'2026-01-01', 1.5, TIMESTAMP'2026-01-01 10:00:00.5', 'abc', 1, true),
    (3, DATE'2026-01-02', 15, TIMESTAMP'2026-01-02 00:00:00', 'b%/=', 2, false),
    (4, NULL, -0.25, TIMESTAMP'1969-12-31 23:59:59', 'Abc', NULL, NULL),
    (5, DATE'1500-01-01', NULL, NULL, NULL, -3, true)"""
_ANSWERED = (
    "day = DATE'2026-01-01'", "day <> DATE'2026-01-01'", "day < '2026-01-02'", "day IS NULL", "day IS NOT NULL", "day <=> NULL", "day IN (DATE'2026-01-02', NULL)",
    "day NOT IN (DATE'2026-01-02')", "price = 1.5", "price IN (1.5, 15)", "price > 1.25 AND price <= 15", "at = TIMESTAMP'2026-01-01 10:00:00.5'",
    "at < TIMESTAMP'1970-01-01'", "name LIKE 'a%'", "name LIKE '%bc'", "name = 'b%/='", "name > 'B'", "NOT (n = 1)", "n = 1 OR name = 'Abc'", "n <=> 2", "flag",
    "NOT flag", "n BETWEEN -5 AND 1")
_NOT_ANSWERED = ("n = 1 OR id = 3", "n + 1 = 2", "upper(name) = 'ABC'", "id > 2")


def plan(frame) -> str:
    return frame._jdf.queryExecution().executedPlan().toString()


def rows(frame) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.fixture
def both(catalog, db):
    """``t``, and ``model`` with the same rows."""
    catalog.sql(f"CREATE TABLE {db}.t (id INT) PARTITIONED BY ({_KEYS}) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.t VALUES {_ROWS}")
    catalog.sql(f"CREATE TABLE {db}.model USING parquet AS SELECT * FROM {db}.t")
    return db


def test_what_keys_answer_is_not_evaluated_again(catalog, both) -> None:
    meant = catalog.sql(f"SELECT *, {', '.join(f'{where} AS `{where}`' for where in (*_ANSWERED, *_NOT_ANSWERED))} FROM {both}.model").collect()

    def filtered(where: str) -> bool:
        frame = catalog.sql(f"SELECT * FROM {both}.t WHERE {where}")
        assert rows(frame) == sorted(str(Row(*frame.columns)(*row[:len(frame.columns)])) for row in meant if row[where]), where
        return "Filter (" in plan(frame)

    assert [where for where in _ANSWERED if filtered(where)] == []
    assert [where for where in _NOT_ANSWERED if not filtered(where)] == []
    catalog.sql(f"UPDATE {both}.t SET id = id + 10 WHERE n <> 1 AND price IS NOT NULL")
    assert [row.id for row in catalog.sql(f"SELECT id FROM {both}.t ORDER BY id").collect()] == [1, 2, 4, 5, 13]


def test_footers_answer_for_whole_partitions(catalog, both) -> None:
    """A partition without rows is no group; where a row of a wanted one may be deleted rows are read."""
    def pushed(query: str) -> bool:
        frame = catalog.sql(query.format(t=f"{both}.t"))
        assert rows(frame) == rows(catalog.sql(query.format(t=f"{both}.model"))), query
        return "from footers" in plan(frame)

    keys = "day = DATE'2020-02-02', price = 7, at = TIMESTAMP'2020-02-02 00:00:00', name = 'empty', n = 9, flag = true"
    catalog.sql(f"ALTER TABLE {both}.t ADD PARTITION ({keys})")
    answered = (
        "SELECT count(*) FROM {t} WHERE day = DATE'2026-01-01'", "SELECT count(*), min(id), max(id) FROM {t} WHERE n <> 1", "SELECT count(*) FROM {t} WHERE n = 77",
        "SELECT day, count(*) FROM {t} GROUP BY day", "SELECT max(id), price, count(*), flag FROM {t} WHERE n IS NOT NULL GROUP BY flag, price",
        "SELECT DISTINCT name FROM {t}", "SELECT min(day), max(day), min(price), max(at), min(name), count(n), max(flag) FROM {t}",
        "SELECT n, max(day), count(name) FROM {t} GROUP BY n HAVING count(*) > 1 OR n IS NULL", "SELECT max(day) FROM {t} WHERE n > 100",
        "SELECT count(*), max(id) FROM {t} WHERE at = TIMESTAMP'2026-01-02 00:00:00'", "SELECT count(*) FROM {t} WHERE n = 2 OR name = 'Abc'")
    read = ("SELECT day, count(DISTINCT n) FROM {t} GROUP BY day", "SELECT n + 1, count(*) FROM {t} GROUP BY n + 1", "SELECT id, count(*) FROM {t} GROUP BY id",
            "SELECT day, sum(id) FROM {t} GROUP BY day", "SELECT day, count(*) FROM {t} WHERE id > 1 GROUP BY day")

    assert [query for query in answered if not pushed(query)] == []
    assert [query for query in read if pushed(query)] == []
    catalog.sql(f"DELETE FROM {both}.t WHERE id = 1")
    catalog.sql(f"INSERT OVERWRITE {both}.model SELECT * FROM {both}.t")
    elsewhere = ("n = 77", "n > 100", "n <> 1", "at = ", "n = 2 OR")
    assert [query for query in answered if pushed(query)] == [query for query in answered if any(where in query for where in elsewhere)]


def test_a_limit_beside_conditions_on_keys(catalog, both) -> None:
    """The planner does not know every condition: then the files that it chose would be of the wrong partitions."""
    for where, ids in (("day = DATE'2026-01-01'", {1, 2}), ("name NOT LIKE 'a%'", {3, 4}), ("at > TIMESTAMP'2026-01-01 12:00:00'", {3})):
        frame = catalog.sql(f"SELECT id FROM {both}.t WHERE {where} LIMIT 2")
        assert {row.id for row in frame.collect()} == ids
        assert ", limit 2" in plan(frame)
    assert ", limit" not in plan(catalog.sql(f"SELECT id FROM {both}.t WHERE id > 1 LIMIT 2"))


def test_insert_only_tables_in_orc_count_by_footers(catalog, db) -> None:
    only = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
    for stored_as in ("ORC", "PARQUET"):
        catalog.sql(f"CREATE TABLE {db}.{stored_as} (id INT) PARTITIONED BY (n INT) STORED AS {stored_as} {only}")
        catalog.sql(f"INSERT INTO {db}.{stored_as} VALUES (1, 1), (2, 1), (3, NULL), (4, 3)")
    queries = ("SELECT n, count(*) FROM {t} WHERE n IS NOT NULL GROUP BY n", "SELECT count(*), max(n) FROM {t}", "SELECT max(id) FROM {t}")
    frames = {stored_as: [catalog.sql(query.format(t=f"{db}.{stored_as}")) for query in queries] for stored_as in ("ORC", "PARQUET")}

    assert [rows(frame) for frame in frames["ORC"]] == [rows(frame) for frame in frames["PARQUET"]]
    assert {stored_as: ["from footers" in plan(frame) for frame in of] for stored_as, of in frames.items()} == {
        "ORC": [True, True, False], "PARQUET": [False, False, False]}
    limited = [catalog.sql(f"SELECT id FROM {db}.{stored_as} WHERE n = 1 LIMIT 1") for stored_as in ("ORC", "PARQUET")]
    assert [len(frame.collect()) for frame in limited] == [1, 1]
    assert [", limit 1" in plan(frame) for frame in limited] == [True, True]


def test_explain_shows_what_is_left_to_the_scan(catalog, both) -> None:
    text = catalog.sql(f"EXPLAIN SELECT id FROM {both}.t WHERE day >= DATE'2026-01-01' AND price = 1.5 AND id > 2").first()[0]
    [scan] = re.findall(r"AcidScan .*", text)

    keys, pushed = re.search(r"partitions \[(.*)\], pushed \[(.*?)\]", scan).groups()
    assert {"GreaterThanOrEqual(day,2026-01-01)", "EqualTo(price,1.50)"} <= set(re.findall(r"\w+\([^()]*\)", keys))
    assert pushed == "IsNotNull(id), GreaterThan(id,2)"
    assert "Filter (isnotnull(id" in text
    assert "day" not in re.search(r"Filter \((.*)\)", text)[1]


@pytest.mark.parametrize("kind", ["", ", 'transactional_properties'='insert_only'"], ids=["full ACID", "insert-only"])
def test_a_condition_is_known_to_files_as_a_whole_or_not_at_all(catalog, db, kind) -> None:
    """Files that can hold no row of one side of an OR may hold those of the other, which has a function that they do not know."""
    catalog.sql(f"CREATE TABLE {db}.t (n INT, a STRING, b STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true'{kind})")
    for row in ("1, 'x', 'y'", "2, 'z', 'q'", "3, 'z', 'r'"):
        catalog.sql(f"INSERT INTO {db}.t VALUES ({row})")
    for condition, found in {"a = 'x' OR upper(b) = 'Q'": [1, 2], "NOT (a = 'z' AND upper(b) <> 'Q')": [1, 2], "upper(b) = 'Q' OR n = 3": [2, 3],
                             "n > 1 AND (a = 'x' OR length(b) = 1)": [2, 3]}.items():
        assert sorted(row.n for row in catalog.sql(f"SELECT n FROM {db}.t WHERE {condition}").collect()) == found, condition
    if not kind:
        catalog.sql(f"UPDATE {db}.t SET n = n + 10 WHERE a = 'x' OR upper(b) = 'Q'")
        catalog.sql(f"DELETE FROM {db}.t WHERE n = 12 OR upper(b) = 'R'")
        assert [row.n for row in catalog.table(f"{db}.t").collect()] == [11]


def test_rows_are_estimated_by_the_bytes_that_are_read(catalog, db) -> None:
    """What ``analyze`` has noted is of an earlier state."""
    def estimated(where: str) -> int:
        plan = catalog.sql(f"SELECT id FROM {db}.sized WHERE {where}")._jdf.queryExecution().optimizedPlan()
        return plan.collectLeaves().head().scan().estimateStatistics().numRows().getAsLong()

    catalog.sql(f"CREATE TABLE {db}.sized (id INT) PARTITIONED BY (n INT) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.sized SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(1000)")
    catalog.sql(f"CALL system.analyze('{db}.sized')")
    before = [estimated("n IS NOT NULL"), estimated("n = 1")]
    catalog.sql(f"INSERT INTO {db}.sized SELECT id, n FROM {db}.sized")

    assert before[0] == 1000
    assert before[1] == pytest.approx(500, rel=0.1)
    assert estimated("n IS NOT NULL") == pytest.approx(2000, rel=0.1)


def test_a_join_opens_no_file_of_partitions_that_its_other_side_lacks(catalog, client, db) -> None:
    """Their files are damaged: whoever opens one fails."""
    catalog.sql(f"CREATE TABLE {db}.wide (id INT) PARTITIONED BY (n INT) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.wide SELECT CAST(id AS INT), CAST(id % 4 AS INT) FROM range(40)")
    catalog.sql(f"CREATE TABLE {db}.chosen (n INT, note STRING) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.chosen VALUES (1, 'this'), (2, 'other')")
    for number in (0, 2, 3):
        for file in Path(urlsplit(client.get_table(db, "wide").sd.location).path).glob(f"n={number}/delta_*/bucket_*"):
            file.write_bytes(b"no ORC file")
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    frame = catalog.sql(f"SELECT w.id FROM {db}.wide w JOIN {db}.chosen c ON w.n = c.n WHERE c.note = 'this'")
    assert sorted(row.id for row in frame.collect()) == list(range(1, 40, 4))
    with pytest.raises(Exception, match="ORC"):
        catalog.sql(f"SELECT w.id FROM {db}.wide w JOIN {db}.chosen c ON w.n = c.n").collect()
