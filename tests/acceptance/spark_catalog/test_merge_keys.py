"""What a MERGE takes of its target: rows whose keys the source may have, where the source is the same each time that it is read."""

import pytest

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_MERGE = ("MERGE INTO {db}.t USING {source} AS s ON {on} WHEN MATCHED THEN UPDATE SET name = s.name "
          "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)")
ASKED = {
    "rows": "VALUES (3, 'new'), (300, 'new') AS v (id, name)",
    "no rows": "SELECT * FROM changes WHERE id < 0",
    "files": "SELECT * FROM changes WHERE id % 3 = 0",
    "table of files": "SELECT * FROM {db}.plain",
    "ACID table": "SELECT * FROM {db}.others",
    "grouped": "SELECT id, max(name) AS name FROM changes GROUP BY id",
    "joined": "SELECT s.id, o.name FROM changes AS s JOIN {db}.others AS o ON s.id = o.id",
    "of both": "SELECT * FROM changes WHERE id < 100 UNION ALL SELECT * FROM {db}.others WHERE id >= 100",
}
NOT_ASKED = {
    "partitions of a table of files, which are listed each time": "SELECT id, name FROM {db}.parts",
    "some rows": "SELECT * FROM changes LIMIT 5",
    "some rows of an ACID table": "SELECT * FROM {db}.others LIMIT 5",
    "the first of each": "SELECT id, name FROM (SELECT *, row_number() OVER (PARTITION BY id % 9 ORDER BY name) AS place FROM changes) WHERE place = 1",
    "by an aggregate of them": "SELECT CAST(sum(CAST(id AS DOUBLE)) AS INT) AS id, name FROM changes GROUP BY name",
    "by a subquery": "SELECT * FROM changes WHERE id > (SELECT min(id) FROM {db}.parts)",
    "rows of nobody knows where": "SELECT * FROM made",
}


@pytest.fixture
def changes(catalog, tmp_path):
    """Create views of files, and of rows that Python made."""
    catalog.sql("SELECT CAST(id * 4 AS INT) AS id, concat('c', id) AS name FROM range(60)").write.parquet(f"{tmp_path}/changes")
    catalog.read.parquet(f"{tmp_path}/changes").createOrReplaceTempView("changes")
    catalog.createDataFrame(catalog.sparkContext.parallelize([(1, "x"), (500, "y")]), "id INT, name STRING").createOrReplaceTempView("made")


@pytest.fixture
def target(catalog, db, changes):
    catalog.sql(f"CREATE TABLE {db}.t (id INT, name STRING) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.t SELECT CAST(id AS INT), concat('t', id) FROM range(200)")
    catalog.sql(f"CREATE TABLE {db}.others (id INT, name STRING) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.others SELECT CAST(id * 5 AS INT), concat('o', id) FROM range(50)")
    catalog.sql(f"CREATE TABLE {db}.plain USING parquet AS SELECT CAST(id * 7 AS INT) AS id, concat('p', id) AS name FROM range(40)")
    catalog.sql(f"CREATE TABLE {db}.parts (id INT, name STRING, day INT) USING parquet PARTITIONED BY (day)")
    catalog.sql(f"INSERT INTO {db}.parts SELECT id, name, id % 2 FROM {db}.plain")
    return f"{db}.t"


def asks(catalog, statement):
    plan = catalog.sql(f"EXPLAIN {statement}").first()[0]
    assert "WriteDelta" in plan
    return "might_contain" in plan


def test_the_rows_are_those_of_the_join(catalog, db, target) -> None:
    rows = dict(map(tuple, catalog.table(target).collect()))
    for name, source in ASKED.items():
        statement = _MERGE.format(db=db, source=f"({source.format(db=db)})", on="t.id = s.id")
        assert asks(catalog, statement), name
        found = dict(map(tuple, catalog.sql(source.format(db=db)).collect()))
        catalog.sql(statement)
        merged = dict(map(tuple, catalog.table(target).collect()))
        assert catalog.table(target).count() == len(merged), name
        assert merged == rows | found, name
        rows = merged


def test_a_source_that_may_differ_is_read_once(catalog, db, target) -> None:
    merges = {name: _MERGE.format(db=db, source=f"({source.format(db=db)})", on="t.id = s.id") for name, source in NOT_ASKED.items()}
    assert [name for name, merge in merges.items() if asks(catalog, merge)] == []


def test_keys_of_each_kind(catalog, db, changes) -> None:
    kinds = {"s": "STRING", "d": "DECIMAL(10,2)", "w": "TIMESTAMP", "n": "BIGINT", "o": "DATE", "b": "BINARY", "f": "DOUBLE"}
    values = ("IF(id = 0, NULL, concat('ä', id)), CAST(id / 4 AS DECIMAL(10,2)), timestamp_seconds(id), id * 10000000000, "
              "date_add(DATE'2020-01-01', CAST(id AS INT)), CAST(concat('b', id) AS BINARY), IF(id = 1, -0.0D, CAST(id AS DOUBLE))")
    catalog.sql(f"CREATE TABLE {db}.t ({', '.join(f'{name} {kind}' for name, kind in kinds.items())}, name STRING) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.t SELECT {values}, 'old' FROM range(40)")
    catalog.sql(f"CREATE TABLE {db}.s ({', '.join(f'{name} {kind}' for name, kind in kinds.items())}, name STRING) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.s SELECT {values.replace('-0.0D', '0.0D')}, 'new' FROM range(30, 50)")
    for on, same in [*((f"t.{name} = s.{name}", name != "f") for name in kinds), ("t.s <=> s.s", True), ("t.n = s.n AND t.f = s.f", True),
                     ("CAST(t.n AS STRING) = CAST(s.n AS STRING) AND s.d > 0", True), ("t.n > s.n", False), ("t.n = s.n OR t.d = s.d", False)]:
        statement = f"MERGE INTO {db}.t USING {db}.s ON {on} AND s.name = 'new' WHEN MATCHED THEN UPDATE SET name = 'new' WHEN NOT MATCHED THEN INSERT *"
        assert asks(catalog, statement) is same, on
    catalog.sql(f"MERGE INTO {db}.t USING {db}.s ON t.s <=> s.s AND t.d = s.d AND t.w = s.w AND t.n = s.n AND t.o = s.o AND t.b = s.b AND t.f = s.f "
                "WHEN MATCHED THEN UPDATE SET name = 'new' WHEN NOT MATCHED THEN INSERT *")
    assert {tuple(row) for row in catalog.sql(f"SELECT name, count(*) FROM {db}.t GROUP BY name").collect()} == {("old", 30), ("new", 20)}


def test_who_wants_the_other_rows_or_has_few_does_not_ask(catalog, db, target) -> None:
    statement = _MERGE.format(db=db, source="changes", on="t.id = s.id")
    assert asks(catalog, statement)
    assert not asks(catalog, statement + " WHEN NOT MATCHED BY SOURCE THEN DELETE")
    assert asks(catalog, f"MERGE INTO {target} AS t USING changes AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
    catalog.conf.set("spark.sql.optimizer.runtime.bloomFilter.enabled", "false")
    try:
        assert not asks(catalog, statement)
    finally:
        catalog.conf.unset("spark.sql.optimizer.runtime.bloomFilter.enabled")
    catalog.sql(f"ANALYZE TABLE {target} COMPUTE STATISTICS")
    assert not asks(catalog, statement)
