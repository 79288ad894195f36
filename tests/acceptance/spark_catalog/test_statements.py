"""The statements of ``statements.py`` through PySpark: definitions beside a plain table's, and mistakes by their errors."""

from uuid import uuid4

import pytest
from pyspark.errors import PySparkException

from tests.acceptance.spark_catalog.statements import ACID, DEFINITIONS, MISTAKES, ROWS, TABLES
from tests.support.spark_sessions import drop_database

pytestmark = pytest.mark.spark

OURS = {"UNSUPPORTED", "INVALID_VERSION", "InvalidOperationError", "InvalidInputError", "MetaError"}
LONGEST = 30


@pytest.fixture
def names(catalog, lakehouse):
    """What the placeholders of statements stand for: tables of a database of the test's own."""
    db = f"db_{uuid4().hex[:10]}"
    catalog.sql(f"CREATE DATABASE {db}")
    for name, columns in TABLES.items():
        catalog.sql(f"CREATE TABLE {db}.{name} {columns} {ACID}")
    yield {"db": db, **{name: f"{db}.{name}" for name in TABLES}}
    drop_database(lakehouse.uri, db)


def shown(frame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


@pytest.mark.robustness
def test_definitions_show_what_those_of_a_plain_table_do(catalog, names) -> None:
    acid, plain = names["days"], f"{names['db']}.plain"
    catalog.sql(f"CREATE TABLE {plain} {TABLES['days']} STORED AS ORC")
    catalog.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    for name in (acid, plain):
        catalog.sql(ROWS[1].format(days=name))
    for definition in DEFINITIONS:
        seen = []
        for name in (acid, plain):
            catalog.sql(definition.sql.format(t=name))
            seen.append(sorted(row.replace("__HIVE_DEFAULT_PARTITION__", "null") for row in shown(catalog.sql(definition.probe.format(t=name)))))
        assert seen[0] == seen[1], definition.sql


@pytest.mark.parametrize("are_ours", [True, pytest.param(False, marks=pytest.mark.robustness)], ids=["ours", "sparks"])
def test_each_mistake_is_told_in_a_sentence(catalog, names, are_ours) -> None:
    for statement in ROWS:
        catalog.sql(statement.format(**names))
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
