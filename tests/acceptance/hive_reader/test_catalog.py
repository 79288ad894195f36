"""What statements of Spark's own SQL write through the catalog, read by Hive's own reader: the same rows under the same ids."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from metastore.acid.snapshots import ValidWriteIdList
from metastore.client import DomainClient

pytestmark = pytest.mark.spark

_SOURCE = """(SELECT id AS n, named_struct('a', CAST(-id AS INT), 'b', array('m', NULL)) AS c, map('m', id) AS m,
              IF(id % 2 = 0, 'a b/ü=', NULL) AS k FROM range(4, 12)) s"""
_STATEMENTS = (
    """INSERT INTO {t} SELECT id, named_struct('a', CAST(id AS INT), 'b', array('x', NULL)), map('k', id), IF(id % 2 = 0, 'a b/ü=', NULL)
       FROM range(8)""",
    "UPDATE {t} SET c.a = c.a + 100 WHERE n % 3 = 1",
    "DELETE FROM {t} WHERE n % 5 = 2",
    f"""MERGE INTO {{t}} t USING {_SOURCE} ON t.n = s.n AND t.k <=> s.k WHEN MATCHED AND t.n = 6 THEN DELETE
        WHEN MATCHED THEN UPDATE SET m = s.m WHEN NOT MATCHED THEN INSERT *""",
    "INSERT OVERWRITE {t} SELECT 100, NULL, NULL, 'only'",
    "INSERT INTO {t} SELECT 101, named_struct('a', CAST(NULL AS INT), 'b', NULL), map(), 'only'",
    "INSERT OVERWRITE {t} PARTITION (k = 'a b/ü=') SELECT 102, NULL, NULL WHERE false",
)


@pytest.fixture
def hives_rows(oracle, lakehouse):
    """``hives_rows(name)``: (partition, ROW__ID, values) of every row, as Hive's OrcInputFormat has it."""
    def read(name):
        with DomainClient(lakehouse.uri) as client:
            table = client.get_table(*name.split("."))
            places = {(): table.sd.location}
            if table.partitionKeys:
                places = {tuple(one.values): one.sd.location for one in client.get_partitions(*name.split("."), -1)}
        columns = {one.name: one.type for one in table.sd.cols}
        return sorted((values, row.row_id, _shown(row.values)) for values, location in places.items() for row in oracle.rows(
            Path(urlsplit(location).path), ValidWriteIdList(name, 1000), columns))

    return read


def _shown(values):
    return json.dumps(values, ensure_ascii=False)


def _ours(catalog, name, keys):
    rows = []
    for row in catalog.sql(f"SELECT ROW__ID AS row_id, * FROM {name}").collect():
        place = tuple(getattr(row, key) or "__HIVE_DEFAULT_PARTITION__" for key in keys)
        c = None if row.c is None else [row.c.a, row.c.b]
        m = None if row.m is None else [list(one) for one in row.m.items()]
        rows.append((place, tuple(row.row_id), _shown([row.n, c, m])))
    return sorted(rows)


@pytest.mark.parametrize("buckets", [pytest.param("", marks=pytest.mark.slow), "CLUSTERED BY (n) INTO 3 BUCKETS"], ids=["plain", "bucketed"])
def test_hive_reads_what_each_statement_wrote(catalog, db, hives_rows, buckets) -> None:
    name = f"{db}.t"
    catalog.sql(f"""CREATE TABLE {name} (n BIGINT, c STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, BIGINT>) PARTITIONED BY (k STRING) {buckets}
                    STORED AS ORC TBLPROPERTIES ('transactional'='true', 'bucketing_version'='2')""")
    seen = []
    for statement in _STATEMENTS:
        catalog.sql(statement.format(t=name))
        ours = _ours(catalog, name, ["k"])
        assert hives_rows(name) == ours, statement
        seen.append(len(ours))
    assert seen == [8, 8, 6, 10, 11, 12, 8]


def test_hive_sees_texts_as_spark_does_but_for_those_that_are_too_long(catalog, db, hives_rows) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (n INT, c CHAR(5), v VARCHAR(3)) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'größe', 'äöü '), (2, 'ab', 'x '), (3, NULL, '')")
    catalog.conf.set("spark.sql.legacy.charVarcharAsString", "true")
    try:
        catalog.sql(f"INSERT INTO {name} VALUES (4, 'ab', 'x'), (5, 'too long', 'too long')")
    finally:
        catalog.conf.unset("spark.sql.legacy.charVarcharAsString")
    catalog.sql(f"UPDATE {name} SET n = n + 10 WHERE c IN ('ab', 'too long')")

    hives = sorted(json.loads(values) for _, _, values in hives_rows(name))
    assert hives == [[1, "größe", "äöü"], [3, None, ""], [12, "ab   ", "x "], [14, "ab   ", "x"], [15, "too l", "too"]]
    ours = sorted(map(list, catalog.table(name).collect()))
    assert ours == [*hives[:-1], [15, "too long", "too long"]]
