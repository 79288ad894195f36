"""The vectors that Java answers too (``java/*Tests.java`` beside ``test_java.py``); the hashes are in ``test_hashes.py``."""

import pytest

from metastore.acid.bucket import decode, encode
from metastore.acid.events import EVENT_COLUMNS, EVENT_TYPES
from metastore.acid_tables.conjunction import conjunction
from metastore.acid_tables.exact_conditions import exactly
from metastore.acid_tables.table import HiveColumn
from metastore.spark.read.raw_files import event_type
from tests.support.acid.shared_vectors import VECTORS

CONDITIONS = [one for one in VECTORS["partition_conditions"] if one["condition"] is not None]


def test_columns_of_an_event():
    *numbers, row = [tuple(column) for column in VECTORS["event_columns"]]

    assert [*zip(EVENT_COLUMNS, EVENT_TYPES, strict=False)] == numbers
    assert EVENT_COLUMNS[-1] == row[0]


def test_spark_is_told_the_columns_of_an_event():
    from pyspark.sql.types import IntegerType, StructField, StructType

    kind = event_type(StructType([StructField("n", IntegerType())]))

    assert [[field.name, field.dataType.simpleString()] for field in kind.fields] == VECTORS["event_columns"]


@pytest.mark.parametrize(("number", "version", "writer", "statement"), VECTORS["bucket_numbers"])
def test_bucket_numbers(number, version, writer, statement):
    assert decode(number) == (writer, statement, version)
    assert version == 0 or encode(writer, statement) == number


@pytest.mark.parametrize("one", CONDITIONS, ids=lambda one: f"{one['key']}-{one['condition']}")
def test_conditions_on_partition_keys(one):
    """The planner leaves out no partition that an engine would keep; without an engine each is decided."""
    keys, condition = [HiveColumn("k", one["key"])], [["k", *one["condition"]]]
    where, meets = conjunction(condition, keys), exactly(condition, keys)

    for value in (*one["meets"], *one["undecided"]):
        assert where is None or where.may_hold([value]), value
    for value in one["fails"]:
        assert where is not None
        assert not where.may_hold([value]), value
    assert [meets([value]) for value in (*one["meets"], *one["fails"])] == [True] * len(one["meets"]) + [False] * len(one["fails"])
