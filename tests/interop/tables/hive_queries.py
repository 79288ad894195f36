"""Hive's own query files about ACID tables, run in our session: every SELECT shows what Hive's developers wrote down."""

import re
from pathlib import Path

import pytest

from tests.interop.java import BUILT, fetched
from tests.interop.tables.query_files import QueryFile, alike, shown, unpacked

POM = Path(__file__).parent / "pom.xml"
SETTINGS = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.createHiveTableByDefault": "true", "hive.exec.dynamic.partition.mode": "nonstrict"}
"""With which Spark takes plain tables and casts as Hive does, as far as it does: what it writes into ACID tables it casts by ANSI's rules."""

FILES = {
    "acid_direct_insert_insert_overwrite": 28, "acid_direct_update_delete": 3,
    "acid_direct_update_delete_partitions": 4, "acid_direct_update_delete_with_merge": 1, "acid_insert_overwrite": 14,
    "acid_multiinsert_dyn_part": 9, "acid_multiinsert_static_parts": 1, "acid_vectorization": 2,
    "acid_vectorization_partition": 1, "acid_vectorization_project": 3, "acid_view_delete": 3, "ctas": 7,
    "ctas_blob": 6, "delete_all_non_partitioned": 2, "delete_all_partitioned": 2, "delete_where_no_match": 2,
    "delete_where_non_partitioned": 2, "delete_where_partitioned": 2, "delete_whole_partition": 2,
    "insert_acid_dynamic_partition": 1, "insert_into_default_keyword_2": 1, "insert_nonacid_from_acid": 2,
    "insert_only_empty_query": 1, "insert_orig_table": 2, "insert_update_delete": 3,
    "insert_values_dynamic_partitioned": 1, "insert_values_non_partitioned": 1, "insert_values_orig_table": 2,
    "insert_values_orig_table_use_metadata": 7, "insert_values_partitioned": 1, "mm_dyn_part": 1,
    "schema_evol_orc_acid_table_update": 9, "schema_evol_orc_acidvec_table_update": 9, "sqlmerge_stats": 5,
    "update_after_multiple_inserts": 2, "update_after_multiple_inserts_special_characters": 2,
    "update_all_non_partitioned": 2, "update_two_cols": 2, "update_where_no_match": 2,
    "update_where_non_partitioned": 2,
}
"""How many answers are compared in each. Left out are files that are about Hive's own dialect: how it orders NULLs and reads timestamps,
LOAD DATA, temporary tables, EXPORT, sampling of buckets, REPLACE COLUMNS with another type of a bucketing column."""

NOT_EXTERNAL = re.compile(r"create\s+external\s+table(?!.*\blocation\b)", re.IGNORECASE | re.DOTALL)
VALUES = re.compile(r"insert\s+into\b.*\bvalues\b", re.IGNORECASE | re.DOTALL)
TIME = re.compile(r"'(\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?)'")
DROP = re.compile(r"drop\s+table\s+(?!if\b)", re.IGNORECASE)
COMPACT = re.compile(r"alter\s+table\s+(\w+)\s+compact\s+('\w+')", re.IGNORECASE)
UNNAMED = re.compile(r"\binsert\s+values\s*\(", re.IGNORECASE)
"""Of a MERGE. Spark wants the columns, which are these."""
COLUMNS = {"transactions": "ID, value, last_update_user, tran_date", "t": "a, b", "t2": "a, b, c"}

OF_HIVE = ("explain", "describe", "desc ", "show ", "analyze", "dfs ", "!")
"""Statements whose answers are about Hive itself."""


@pytest.fixture(scope="session")
def hive_tests():
    jars = Path(fetched(POM, "hive-4.0.1-tests")).parent
    [archive] = jars.glob("*.zip")
    return unpacked(archive, BUILT / "hive-4.0.1-tests" / "tree")


@pytest.fixture
def as_hive(spark, db):
    """Spark in an empty database."""
    spark.sql(f"USE {db}")
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
    spark.sql("USE default")


def in_sparks_words(text, db):
    """Spark wants to know where an external table lies and that a value is a time, and drops only tables that there are."""
    if VALUES.match(text):
        text = TIME.sub(lambda value: f"{'timestamp' if value[2] else 'date'} {value[0]}", text)
    text = COMPACT.sub(rf"call system.compact('{db}.\1', type => \2)", text)
    if (target := re.match(r"\s*merge\s+into\s+(\w+)", text, re.IGNORECASE)) and target[1].lower() in COLUMNS:
        text = UNNAMED.sub(f"insert ({COLUMNS[target[1].lower()]}) values (", text)
    return DROP.sub("drop table if exists ", NOT_EXTERNAL.sub("create table", text))


@pytest.mark.parametrize("name", FILES)
def test_hives_answers(name, hive_tests, as_hive, acid_session, tmp_path):
    spark, wrong, compared = as_hive, [], 0
    file = QueryFile(hive_tests, name)
    for _, statements in file.data_sets:
        for statement in statements:
            spark.sql(statement)
    for statement in file.statements(tmp_path):
        if statement.text.lower().startswith(OF_HIVE):
            continue
        result = acid_session.sql(in_sparks_words(statement.text, spark.catalog.currentDatabase()))
        if statement.is_query and statement.answer is not None:
            compared += 1
            ours, hives = shown(result.collect()), alike(statement.answer)
            if ours != hives:
                wrong.append((statement.text, [row for row in ours if row not in hives], [row for row in hives if row not in ours]))
        del result  # it would lock what it read
    assert wrong == []
    assert compared == FILES[name]
