"""The statements of ``statements.py`` through PySpark: beside models that no transaction touches, and mistakes by their errors."""

from uuid import uuid4

import pytest
from pyspark.errors import PySparkException

from metastore.client import DomainClient
from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table
from tests.acceptance.spark_catalog.models import Models
from tests.acceptance.spark_catalog.statements import ACID, CHANGES, DEFINITIONS, FIRST, MISTAKES, OURS, QUERIES, TABLES
from tests.support.spark_sessions import drop_database, skip_where_inserts_give_all_columns

pytestmark = pytest.mark.spark

LONGEST = 30


@pytest.fixture
def names(catalog, lakehouse):
    """Yield the values of the placeholders of statements: tables in a database of the test's own."""
    db = f"db_{uuid4().hex[:10]}"
    catalog.sql(f"CREATE DATABASE {db}")
    for name, columns in TABLES.items():
        catalog.sql(f"CREATE TABLE {db}.{name} {columns} {ACID}")
    yield {"db": db, **{name: f"{db}.{name}" for name in TABLES}}
    drop_database(lakehouse.uri, db)


@pytest.fixture
def models(catalog):
    made = Models(catalog)
    yield made
    made.drop()


def shown(frame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


@pytest.mark.slow
def test_each_statement_does_what_it_says(catalog, lakehouse, names, models) -> None:
    skip_where_inserts_give_all_columns(catalog)
    for change in CHANGES:
        catalog.sql(change.sql.format(**names))
        models.change(change)
        assert shown(catalog.table(names[change.table])) == shown(models.answer(f"SELECT * FROM {{{change.table}}}")), change.sql
    for query in QUERIES:
        assert shown(catalog.sql(query.format(**names))) == shown(models.answer(query)), query
    with DomainClient(lakehouse.uri) as client:
        for name in TABLES:
            assert [one for one in check_table(client, Files(), table_name(names["db"], name)) if not one.finding.is_unneeded] == []


@pytest.mark.slow
def test_definitions_show_what_those_of_a_plain_table_do(catalog, names) -> None:
    skip_where_inserts_give_all_columns(catalog)
    acid, plain = names["days"], f"{names['db']}.plain"
    catalog.sql(f"CREATE TABLE {plain} {TABLES['days']} STORED AS ORC")
    catalog.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    for name in (acid, plain):
        catalog.sql(FIRST["days"].format(days=name))
    for definition in DEFINITIONS:
        seen = []
        for name in (acid, plain):
            catalog.sql(definition.sql.format(t=name))
            seen.append(sorted(row.replace("__HIVE_DEFAULT_PARTITION__", "null") for row in shown(catalog.sql(definition.probe.format(t=name)))))
        assert seen[0] == seen[1], definition.sql


@pytest.mark.parametrize("are_ours", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["ours", "sparks"])
def test_each_mistake_is_told_in_a_sentence(catalog, names, are_ours) -> None:
    skip_where_inserts_give_all_columns(catalog)
    for name in TABLES:
        catalog.sql(FIRST[name].format(**names))
    wrong = []
    for mistake in MISTAKES:
        if (mistake.condition in OURS) is not are_ours:
            continue
        try:
            catalog.sql(mistake.sql.format(**names)).collect()
            wrong.append((mistake.sql, "was done"))
        except PySparkException as error:
            text = str(error)
            is_short = len(text.splitlines()) < LONGEST and "\tat " not in text and "Traceback" not in text
            if error.getCondition() != mistake.condition or not is_short or any(word not in text for word in mistake.said):
                wrong.append((mistake.sql, error.getCondition(), text[:600]))
        except Exception as error:  # noqa: BLE001 - what is none of Spark's has the frames of Java in it
            wrong.append((mistake.sql, type(error), str(error)[:600]))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("layout", ["", "PARTITIONED BY (k)", "CLUSTERED BY (id) INTO 3 BUCKETS"])
def test_several_rows_of_a_source_may_delete_the_same_row(catalog, lakehouse, db, layout) -> None:
    """By one unconditional DELETE, as with Delta; for anything else the source must be unique."""
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (id INT, k INT) {layout} {ACID}")
    catalog.sql(f"INSERT INTO {name} SELECT id, id % 2 FROM range(20)")
    source = "(SELECT explode(array(3, 3, 4, 3, 25, 4)) AS id)"
    catalog.sql(f"""MERGE INTO {name} t USING {source} s ON t.id = s.id
                    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 0)""")

    assert shown(catalog.sql(f"SELECT id FROM {name}")) == sorted(f"Row(id={number})" for number in (*range(3), *range(5, 20), 25))
    assert catalog.sql(f"CALL system.history('{name}')").first().rows_deleted == 2
    with DomainClient(lakehouse.uri) as client:
        assert list(check_table(client, Files(), table_name(db, "t"))) == []
    for action in ("THEN UPDATE SET id = 6", "AND s.id > 0 THEN DELETE"):
        with pytest.raises(PySparkException, match="MERGE_CARDINALITY_VIOLATION"):
            catalog.sql(f"MERGE INTO {name} t USING (SELECT explode(array(6, 6)) AS id) s ON t.id = s.id WHEN MATCHED {action}")
