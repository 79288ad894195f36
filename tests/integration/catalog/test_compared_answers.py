"""Answers that Hive's metastore 4.0.1 gave when asked by the differential test, where ours was another."""

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T


def statistics(table, partition=None, kind="int"):
    data = T.ColumnStatisticsData(longStats=T.LongColumnStatsData(1, 9, 1, 5))
    return T.ColumnStatistics(T.ColumnStatisticsDesc(partition is None, "d", table, partition), [T.ColumnStatisticsObj("id", kind, data)])


def unique(**fields):
    return T.SQLUniqueConstraint(**{"catName": "hive", "table_db": "d", "table_name": "t", "column_name": "id", "key_seq": 1, "uk_name": "u", **fields})


@pytest.fixture
def t(d):
    """``d`` with a table ``t`` that has a partition, and a primary key."""
    d.create(keys="p:string")
    d.add("a")
    d.add_primary_key(T.AddPrimaryKeyRequest([T.SQLPrimaryKey("d", "t", "id", 1, "pk")]))
    return d


REFUSED = {
    "statistics of a partition of a missing table": (
        lambda h: h.update_partition_column_statistics(statistics("nope", "p=a")), T.InvalidObjectException),
    "their removal": (lambda h: h.delete_partition_column_statistics("d", "nope", "p=a", "id", "hive"), T.InvalidObjectException),
    "several of them": (lambda h: h.set_aggr_stats_for(T.SetPartitionsStatsRequest([statistics("nope", "p=a")])), T.InvalidObjectException),
    "statistics of a missing table": (lambda h: h.update_table_column_statistics(statistics("nope")), T.NoSuchObjectException),
    "removal from a name that is none": (lambda h: h.delete_partition_column_statistics("d", "t", "a", "id", "hive"), T.MetaException),
    "removal from no name": (lambda h: h.delete_partition_column_statistics("d", "t", None, "id", "hive"), T.MetaException),
    "statistics of a name that is none": (lambda h: h.get_partition_column_statistics("d", "t", "a", "id"), T.MetaException),
    "a second constraint of a name": (
        lambda h: h.add_unique_constraint(T.AddUniqueConstraintRequest([unique(), unique()])), T.MetaException),
    "a constraint without a column": (
        lambda h: h.add_unique_constraint(T.AddUniqueConstraintRequest([unique(column_name=None)])), T.MetaException),
    "a foreign key that refers to no column": (
        lambda h: h.add_foreign_key(T.AddForeignKeyRequest([T.SQLForeignKey("d", "t", None, "d", "t", "name", 1, 0, 0, "fk", "pk")])),
        T.MetaException),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(t, name):
    call, kind = REFUSED[name]
    with pytest.raises(kind):
        call(t)


def test_constraints_of_a_missing_table_are_none(d):
    constraints = d.get_all_table_constraints(T.AllTableConstraintsRequest("d", "nope", "hive")).allTableConstraints
    assert constraints.primaryKeys == constraints.checkConstraints == []


def test_statistics_have_the_type_of_the_column(t):
    """Whatever type the statistics name."""
    t.update_table_column_statistics(statistics("t", kind="STRING"))
    t.update_partition_column_statistics(statistics("t", "p=a", kind=""))
    asked = T.TableStatsRequest("d", "t", ["id"])
    assert [each.colType for each in t.get_table_statistics_req(asked).tableStats] == ["int"]
    assert [each.colType for each in t.get_partition_column_statistics("d", "t", "p=a", "id").statsObj] == ["int"]


def test_a_database_is_altered_by_a_definition_without_a_name(d):
    d.alter_database("d", T.Database(description="y"))
    assert d.get_database("d").description == "y"
