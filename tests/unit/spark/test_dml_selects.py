"""The SELECTs behind UPDATE, DELETE and MERGE, and the binding of names to views, as texts."""

import pytest

from metastore.acid_tables.table import AcidTable, HiveColumn, TableKind
from metastore.errors import InvalidOperationError
from metastore.ids import TableName
from metastore.spark.sql.binding import bound_sql
from metastore.spark.sql.dialect import Untouched
from metastore.spark.sql.dml_selects import delete_select, merge_select, update_select
from metastore.spark.sql.parsing import parse
from metastore.spark.sql.statements import TableRef

TABLE = AcidTable(TableName("hive", "db", "t"), TableKind.FULL_ACID, "/x", (HiveColumn("id", "int"), HiveColumn("v", "char(3)")),
                  (HiveColumn("p", "string"),), ("id",), 4, 2, "orc", {})
ROW_ID = "t.__acid_write_id, t.__acid_bucket, t.__acid_row_id"


def views(ref: TableRef) -> str | None:
    return f"view_{ref.table}" if ref.db == "db" else None


@pytest.mark.parametrize(("text", "expected"), [
    ("SELECT * FROM db.t", "SELECT * FROM view_t AS t"),
    ("SELECT db.t.id FROM db.t JOIN db.u AS x ON db.t.id = x.id", "SELECT t.id FROM view_t AS t JOIN view_u AS x ON t.id = x.id"),
    ("WITH t AS (SELECT 1) SELECT * FROM t", "WITH t AS (SELECT 1) SELECT * FROM t"),
    ("SELECT left(x, 1) FROM db.full", "SELECT left(x, 1) FROM view_full AS `full`"),
    ("SELECT `on`.x FROM db.t AS `on` CROSS JOIN db.anti", "SELECT `on`.x FROM view_t AS `on` CROSS JOIN view_anti AS `anti`"),
    ("SELECT * FROM other.t WHERE id IN (SELECT id FROM db.u)", "SELECT * FROM other.t WHERE id IN (SELECT id FROM view_u AS u)"),
])
def test_names_are_bound_to_views(text, expected):
    assert bound_sql(parse(text).tree, views) == expected


def test_update_keeps_what_is_not_assigned_and_casts_what_is():
    select = update_select(parse("UPDATE db.t SET v = upper(v) WHERE id IN (SELECT id FROM db.u)"), TABLE, "target")
    assert bound_sql(select, views) == (
        f"SELECT 'update' AS `__acid_action`, {ROW_ID}, `t`.`id` AS `id`, CAST(upper(v) AS STRING) AS `v`, `t`.`p` FROM target AS t "
        "WHERE id IN (SELECT id FROM view_u AS u)")


def test_delete_needs_only_ids_and_keys():
    assert bound_sql(delete_select(parse("DELETE FROM db.t WHERE v IS NULL"), TABLE, "target"), views) == (
        f"SELECT {ROW_ID}, `t`.`p` FROM target AS t WHERE v IS NULL")


@pytest.mark.parametrize("word", sorted(Untouched.Generator.RESERVED_KEYWORDS))
def test_words_that_tables_may_be_called_by_are_quoted(word):
    assert bound_sql(delete_select(parse(f"DELETE FROM db.`{word}` WHERE v IS NULL"), TABLE, "target"), views) == (
        f"SELECT {ROW_ID.replace('t.', f'`{word}`.')}, `{word}`.`p` FROM target AS `{word}` WHERE v IS NULL")


@pytest.mark.parametrize(("whens", "join"), [
    ("WHEN MATCHED THEN DELETE", "INNER JOIN"),
    ("WHEN NOT MATCHED THEN INSERT *", "RIGHT JOIN"),
    ("WHEN NOT MATCHED BY SOURCE THEN DELETE", "LEFT JOIN"),
    ("WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE", "FULL JOIN"),
])
def test_merge_joins_no_more_than_its_branches_need(whens, join):
    merge = parse(f"MERGE INTO db.t USING db.s ON t.id = s.id {whens}")
    select = merge_select(merge, TABLE, "target", "source", ["id", "v", "p"], is_small=False)
    assert join in bound_sql(select, views)
    assert "SEMI" not in bound_sql(select, views)


@pytest.mark.parametrize(("on", "when", "is_chosen_first"), [
    ("t.id = s.id", "WHEN NOT MATCHED THEN INSERT *", True),
    ("t.v > 'x' AND (db.t.id = abs(s.id + 1))", "WHEN MATCHED THEN DELETE", True),
    ("t.id = s.id", "WHEN NOT MATCHED BY SOURCE THEN DELETE", False),
    ("t.id < s.id", "WHEN MATCHED THEN DELETE", False),
    ("t.id = 3", "WHEN MATCHED THEN DELETE", False),
    ("t.id = id", "WHEN MATCHED THEN DELETE", False),
    ("t.id = s.id OR t.v = s.v", "WHEN MATCHED THEN DELETE", False),
    ("t.id = s.id AND t.v IN (SELECT v FROM db.u)", "WHEN MATCHED THEN DELETE", False),
])
def test_a_merge_with_a_small_source_chooses_the_rows_of_the_target_by_a_broadcast(on, when, is_chosen_first):
    merge = parse(f"MERGE INTO db.t USING db.s ON {on} {when}")
    text = bound_sql(merge_select(merge, TABLE, "target", "source", ["id", "v", "p"], is_small=True), views)
    assert "db." not in text
    assert ("(SELECT /*+ BROADCAST(s) */ t.* FROM target AS t LEFT SEMI JOIN source AS s ON " in text) is is_chosen_first


@pytest.mark.parametrize(("text", "reason"), [
    ("UPDATE db.t SET p = 'x'", "Partition column p"), ("UPDATE db.t SET id = 1", "Bucketing column id"),
    ("UPDATE db.t SET z = 1", "no column z"),
])
def test_what_cannot_be_assigned(text, reason):
    with pytest.raises(InvalidOperationError, match=reason):
        update_select(parse(text), TABLE, "target")


@pytest.mark.parametrize(("whens", "reason"), [
    ("WHEN MATCHED THEN UPDATE SET p = 1", "Partition column p"), ("WHEN MATCHED THEN INSERT *", "WHEN NOT MATCHED"),
    ("WHEN NOT MATCHED THEN DELETE", "WHEN MATCHED"), ("WHEN NOT MATCHED THEN INSERT (z) VALUES (1)", "no column z"),
    ("WHEN NOT MATCHED THEN INSERT *", "source has no column p"),
])
def test_merge_branches_that_make_no_sense(whens, reason):
    merge = parse(f"MERGE INTO db.t USING db.s ON t.id = s.id {whens}")
    with pytest.raises(InvalidOperationError, match=reason):
        merge_select(merge, TABLE, "target", "source", ["id", "v"], is_small=False)
