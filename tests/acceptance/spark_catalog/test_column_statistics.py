"""What Spark's cost-based optimizer makes of statistics of columns."""

import re

import pytest

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_COLUMNS = """id INT, odd BOOLEAN, small TINYINT, price DECIMAL(7,2), part DOUBLE, day DATE, at TIMESTAMP, name STRING, raw BINARY, rare INT, l ARRAY<INT>"""
_SELECTED = """CAST(id AS INT), id % 2 = 1, CAST(id % 100 AS TINYINT), CAST(id / 10 AS DECIMAL(7,2)), id / 1000D, DATE'2026-01-01' + CAST(id % 100 AS INT),
    TIMESTAMP'2026-01-01 00:00:00' + make_dt_interval(0, 0, CAST(id AS INT)), 'name ' || id % 10, CAST('x' AS BINARY), IF(id < 10, CAST(id AS INT), NULL), array(1)"""


@pytest.fixture
def cbo(catalog):
    """Yield a function that turns the cost-based optimizer on."""
    keys = ("spark.sql.cbo.enabled", "spark.sql.cbo.joinReorder.enabled")
    yield lambda: [catalog.conf.set(key, "true") for key in keys]
    for key in keys:
        catalog.conf.unset(key)


def estimated(catalog, query) -> float | None:
    """How many rows Spark expects of a query."""
    text = catalog.sql(f"EXPLAIN COST {query}").first()[0]
    rows = re.search(r"Statistics\(sizeInBytes=[^,)]*(?:, rowCount=([^,)]*))?", text)[1]  # of the top of the plan
    return float(rows) if rows else None


@pytest.fixture
def facts(catalog, db):
    """1000 rows. What Spark expects of them is nothing that this table told it before."""
    catalog.sql(f"CREATE TABLE {db}.facts ({_COLUMNS}) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.facts SELECT {_SELECTED} FROM range(1000)")
    return f"{db}.facts"


def test_how_many_rows_pass_a_filter(catalog, facts, cbo) -> None:
    catalog.sql(f"ANALYZE TABLE {facts} COMPUTE STATISTICS FOR ALL COLUMNS")
    assert estimated(catalog, f"SELECT * FROM {facts} WHERE id < 100") is None  # the optimizer does not ask
    cbo()
    wanted = {
        "id = 7": 1, "id > 5000": 0, "small >= 90": 91, "price < 10": 100, "part > 0.5": 500, "day > DATE'2026-01-01' + 49": 505,
        "at < TIMESTAMP'2026-01-01 08:20:00'": 500, "name = 'name 3'": 100, "rare IS NULL": 990, "rare IS NOT NULL": 10, "raw IS NULL": 0}
    told = {where: estimated(catalog, f"SELECT * FROM {facts} WHERE {where}") for where in wanted}
    assert told == pytest.approx(wanted, rel=0.1, abs=2)
    assert catalog.sql(f"SELECT count(*) FROM {facts} WHERE id > 5000 OR rare IS NULL").first()[0] == 990

    catalog.sql(f"INSERT INTO {facts} SELECT {_SELECTED} FROM range(1000, 2000)")  # statistics are of a state before
    assert catalog.sql(f"SELECT count(*), max(id), count(rare) FROM {facts} WHERE id > 999").first() == (1000, 1999, 0)
    assert estimated(catalog, f"SELECT * FROM {facts} WHERE rare IS NOT NULL") == pytest.approx(20, abs=4)
    assert estimated(catalog, f"SELECT * FROM {facts} VERSION AS OF 1 WHERE id < 100") == pytest.approx(100, abs=10)


@pytest.mark.slow  # seconds; which numbers the optimizer gets is above
def test_a_join_begins_with_what_leaves_the_fewest_rows(catalog, facts, db, cbo) -> None:
    for name, count in (("middle", 100), ("few", 5)):
        catalog.sql(f"CREATE TABLE {db}.{name} (id INT, k INT) {_ACID}")
        catalog.sql(f"INSERT INTO {db}.{name} SELECT CAST(id AS INT), CAST(id AS INT) FROM range({count})")
    query = f"SELECT f.id FROM {facts} f JOIN {db}.middle m ON f.small = m.k JOIN {db}.few e ON f.id = e.id"

    def order():
        leaves = catalog.sql(query)._jdf.queryExecution().optimizedPlan().collectLeaves()
        return [re.search(r"AcidScan \S*?(\w+),", leaves.apply(place).scan().description())[1] for place in range(leaves.size())]

    cbo()
    assert order() == ["facts", "middle", "few"]
    for name in (facts, f"{db}.middle", f"{db}.few"):
        catalog.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
    assert order().index("middle") != 1
    assert sorted(row.id for row in catalog.sql(query).collect()) == [0, 1, 2, 3, 4]


def test_what_a_block_has_written_is_in_no_statistics(catalog, facts) -> None:
    catalog.sql("CALL system.begin()")
    catalog.sql(f"DELETE FROM {facts} WHERE id > 10")
    with pytest.raises(Exception, match="at once, whatever becomes of a transaction"):
        catalog.sql(f"ANALYZE TABLE {facts} COMPUTE STATISTICS FOR COLUMNS id")
    catalog.sql("CALL system.rollback()")
