"""NOT NULL, DEFAULT and CHECK are kept by whatever Spark's own SQL writes, as by acid(spark)."""

import re

import pytest
from pyspark.errors import PySparkException

from metastore.client import DomainClient
from metastore.files import Files
from tests.support.spark_sessions import is_before, skip_where_inserts_give_all_columns

pytestmark = pytest.mark.spark

BROKEN = [
    ("INSERT INTO {t} VALUES (NULL, 1, 'a', 'p'), (NULL, 2, 'b', 'q')", "NOT NULL given (id) by 2 rows"),
    ("INSERT INTO {t} (n, k) VALUES (1, 'p')", "NOT NULL given (id) by 1 row"),
    ("INSERT INTO {t} VALUES (5, 200, 'a', 'p')", "CHECK small (n < 100 OR lower(k) = 'big') by 1 row"),
    ("INSERT INTO {t} VALUES (NULL, 200, 'a', 'p')", "NOT NULL given (id) by 1 row; CHECK small (n < 100 OR lower(k) = 'big') by 1 row"),
    ("INSERT OVERWRITE {t} PARTITION (k = 'p') VALUES (NULL, 1, 'a')", "NOT NULL given (id) by 1 row"),
    ("UPDATE {t} SET n = n * 100 WHERE id = 1", "CHECK small (n < 100 OR lower(k) = 'big') by 1 row"),
    ("UPDATE {t} SET id = NULL", "NOT NULL given (id) by 2 rows"),
    ("MERGE INTO {t} t USING (SELECT 1 AS id, 300 AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n",
     "CHECK small (n < 100 OR lower(k) = 'big') by 1 row"),
    ("MERGE INTO {t} t USING (SELECT 9 AS id, 300 AS n) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (n, k) VALUES (s.n, 'p')",
     "NOT NULL given (id) by 1 row; CHECK small (n < 100 OR lower(k) = 'big') by 1 row"),
]


def rows(catalog, name):
    return sorted(map(tuple, catalog.table(name).collect()), key=repr)


def staged(lakehouse, name):
    with DomainClient(lakehouse.uri) as client:
        location = client.get_table(*name.split(".")).sd.location
    return [one.path for one in Files().listing(location) if "stage" in one.path]


def test_rows_that_break_a_constraint_are_not_written(catalog, db, lakehouse) -> None:
    if is_before(catalog, "4.1"):
        pytest.skip("Spark has no constraints")
    name = f"{db}.t"
    catalog.sql(f"""CREATE TABLE {name} (id INT NOT NULL, n INT DEFAULT 7, note STRING,
                    k STRING, CONSTRAINT small CHECK (n < 100 OR lower(k) = 'big')) PARTITIONED BY (k) STORED AS ORC TBLPROPERTIES ('transactional'='true')""")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 1, NULL, 'p'), (2, 1000, 'x', 'BIG')")
    before = rows(catalog, name)

    for statement, reason in BROKEN:
        with pytest.raises(PySparkException) as refused:
            catalog.sql(statement.format(t=name))
        said = re.sub(r"NOT NULL \w+ ", "NOT NULL given ", str(refused.value))  # a name that the metastore has chosen
        assert f"{name}: nothing was written, because rows break {reason}." in said, statement
    with pytest.raises(PySparkException, match=r"NOT NULL \w+ \(id\)"):
        catalog.sql("SELECT CAST(NULL AS INT) AS id, 1 AS n, '' AS note, 'p' AS k").writeTo(name).append()
    with pytest.raises(PySparkException, match=r"NOT NULL \w+ \(id\)"):
        catalog.sql("SELECT CAST(NULL AS INT) AS id, 1 AS n, '' AS note, 'p' AS k").write.insertInto(name)
    assert rows(catalog, name) == before
    assert staged(lakehouse, name) == []

    catalog.sql(f"ALTER TABLE {name} ALTER COLUMN note SET NOT NULL")
    assert catalog.sql(f"SELECT id FROM {name} WHERE note IS NULL").collect() == [(1,)]
    assert catalog.sql(f"SELECT count(note), count(*) FROM {name}").first() == (1, 2)
    with pytest.raises(PySparkException, match=r"NOT NULL \w+ \(note\)"):
        catalog.sql(f"UPDATE {name} SET n = n + 1 WHERE id = 1")
    catalog.sql(f"UPDATE {name} SET n = n + 1, note = 'now' WHERE id = 1")
    catalog.sql(f"ALTER TABLE {name} DROP CONSTRAINT small")
    catalog.sql(f"ALTER TABLE {name} ALTER COLUMN id DROP NOT NULL")
    catalog.sql(f"INSERT INTO {name} VALUES (NULL, 1, 'z', 'p')")
    catalog.sql(f"DELETE FROM {name} WHERE id IS NULL")
    catalog.sql(f"INSERT INTO {name} VALUES (3, 500, 'y', 'p')")
    assert rows(catalog, name) == [(1, 2, "now", "p"), (2, 1000, "x", "BIG"), (3, 500, "y", "p")]


@pytest.mark.slow
def test_a_column_that_is_left_out_has_its_default(catalog, db) -> None:
    name = f"{db}.t"
    skip_where_inserts_give_all_columns(catalog)
    catalog.sql(f"""CREATE TABLE {name} (id INT, n INT DEFAULT 7, note STRING DEFAULT concat('a', 'b'))
                         STORED AS ORC TBLPROPERTIES ('transactional'='true')""")
    catalog.sql(f"INSERT INTO {name} (id) VALUES (1)")
    catalog.sql(f"INSERT INTO {name} VALUES (2, DEFAULT, DEFAULT), (3, NULL, NULL)")
    catalog.sql("SELECT 4 AS id").writeTo(name).append()
    catalog.sql(f"MERGE INTO {name} t USING (SELECT 5 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
    catalog.sql(f"UPDATE {name} SET n = DEFAULT WHERE id = 3")

    assert rows(catalog, name) == [(1, 7, "ab"), (2, 7, "ab"), (3, 7, None), (4, 7, "ab"), (5, 7, "ab")]
