"""The table of statements that PySpark's tests have, through Spark's shell, JDBC and Spark Connect; `make spark-clients`.

What each should do is worked out once, by models in a Spark that knows no metastore. Rows are compared as one text each, which
Spark makes, since every client shows nested values in a way of its own.
"""

import pytest
from pyspark.sql import SparkSession

from tests.acceptance.spark_catalog.models import Models
from tests.acceptance.spark_catalog.statements import ACID, CHANGES, DEFINITIONS, FIRST, MISTAKES, OURS, QUERIES, TABLES

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


def as_text(query):
    return f"SELECT CAST(struct(*) AS STRING) FROM ({query})"


def rows_of(table):
    return f"SELECT * FROM {{{table}}}"


@pytest.fixture(scope="session")
def expected(tmp_path_factory):
    """Return the sorted rows of each change's table after the change, then those of each query."""
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("no_warehouse")))
        .getOrCreate())
    models, known = Models(session), []

    def note(query):
        known.append(sorted(row for (row,) in models.answer(as_text(query)).collect()))

    for change in CHANGES:
        models.change(change)
        note(rows_of(change.table))
    for query in QUERIES:
        note(query)
    session.stop()
    return known


def made(db):
    """Statements that make a database of the tables; what their names stand for."""
    names = {"db": db, **{name: f"{db}.{name}" for name in TABLES}}
    return names, [f"CREATE DATABASE {db}", *(f"CREATE TABLE {names[name]} {columns} {ACID}" for name, columns in TABLES.items())]


@pytest.mark.parametrize("client", ["shell", "jdbc", "connect"])
def test_changes_and_queries(request, expected, client):
    names, statements = made(f"all_of_{client}")
    for change in CHANGES:
        statements += [change.sql.format(**names), as_text(rows_of(change.table).format(**names))]
    statements += [as_text(query.format(**names)) for query in QUERIES]

    answers = request.getfixturevalue(client)(statements)

    begin = 1 + len(TABLES)
    assert answers[:begin] == [[]] * begin
    of_changes, of_queries = answers[begin:begin + 2 * len(CHANGES)], answers[begin + 2 * len(CHANGES):]
    assert [(change.sql, done) for change, done in zip(CHANGES, of_changes[::2], strict=True) if done != []] == []
    selected = [(one.sql, rows) for one, rows in zip(CHANGES, of_changes[1::2], strict=True)] + list(zip(QUERIES, of_queries, strict=True))
    differ = [(sql, rows, right) for (sql, rows), right in zip(selected, expected, strict=True) if texts(rows) != right]
    assert not differ, f"{len(differ)}: {differ[0]}"


@pytest.mark.parametrize("client", ["shell", "jdbc", "connect"])
def test_definitions(request, client):
    """Of a transactional table and of a plain one."""
    db = f"definitions_of_{client}"
    acid, plain = f"{db}.acid", f"{db}.plain"
    begin = [f"CREATE DATABASE {db}", f"CREATE TABLE {acid} {TABLES['days']} {ACID}", f"CREATE TABLE {plain} {TABLES['days']} STORED AS ORC",
             "SET hive.exec.dynamic.partition.mode=nonstrict", FIRST["days"].format(days=acid), FIRST["days"].format(days=plain)]
    told = [text.format(t=table) for one in DEFINITIONS for text in (one.sql, one.probe) for table in (acid, plain)]

    answers = request.getfixturevalue(client)([*begin, *told])[len(begin):]

    for number, definition in enumerate(DEFINITIONS):
        of_acid, of_plain, seen, wanted = answers[4 * number:4 * number + 4]
        assert (of_acid, of_plain) == ([], []), definition.sql
        assert shown(seen) == shown(wanted), definition.sql


@pytest.mark.parametrize("client", ["shell", "jdbc", "connect"])
def test_mistakes(request, client):
    names, statements = made(f"mistakes_of_{client}")
    statements += [first.format(**names) for first in FIRST.values()]

    answers = request.getfixturevalue(client)([*statements, *(one.sql.format(**names) for one in MISTAKES)])

    assert answers[:len(statements)] == [[]] * len(statements)
    wrong = []
    for mistake, answer in zip(MISTAKES, answers[len(statements):], strict=True):
        said = answer.partition("\n\tat ")[0] if isinstance(answer, str) else ""  # which JDBC and Connect append to any error
        words = mistake.said if mistake.condition in OURS or mistake.condition.startswith("_") else (f"[{mistake.condition}]", *mistake.said)
        if not said or any(word not in said for word in words) or "Traceback" in said:
            wrong.append((mistake.sql, mistake.condition, answer if isinstance(answer, list) else said[:800]))
    assert not wrong, "\n".join(map(str, wrong))


def texts(rows):
    return rows if isinstance(rows, str) else sorted(row for (row,) in rows)


def shown(rows):
    assert not isinstance(rows, str), rows
    return sorted("\t".join(value or "NULL" for value in row).replace("__HIVE_DEFAULT_PARTITION__", "null") for row in rows)
