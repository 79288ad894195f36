"""Constraints over Thrift: declared, read back, dropped, and following their table. CAT-K1, CAT-K2."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes as T

FLAGS = {"enable_cstr": False, "validate_cstr": True, "rely_cstr": True}


def pk(column, seq=1, name=None, table="t", db="d"):
    return T.SQLPrimaryKey(db, table, column, seq, name, **FLAGS)


def uk(column, seq=1, name=None, table="t"):
    return T.SQLUniqueConstraint(table_db="d", table_name=table, column_name=column, key_seq=seq, uk_name=name, **FLAGS)


def nn(column, name=None, table="t"):
    return T.SQLNotNullConstraint(table_db="d", table_name=table, column_name=column, nn_name=name, **FLAGS)


def default(column, value, name=None):
    return T.SQLDefaultConstraint(table_db="d", table_name="t", column_name=column, default_value=value, dc_name=name, **FLAGS)


def check(column, expression, name=None):
    return T.SQLCheckConstraint(table_db="d", table_name="t", column_name=column, check_expression=expression, dc_name=name, **FLAGS)


def fk(column, parent_column, seq=1, name=None, table="child", parent="t"):
    return T.SQLForeignKey("d", parent, parent_column, "d", table, column, seq, 1, 2, name, None, **FLAGS)


def primary_keys(hive, table="t", db="d"):
    return hive.get_primary_keys(T.PrimaryKeysRequest(db, table)).primaryKeys


def foreign_keys(hive, child=None, parent=None):
    return hive.get_foreign_keys(T.ForeignKeysRequest(
        "d" if parent else None, parent, "d" if child else None, child)).foreignKeys


def everything(hive, table="t"):
    found = hive.get_all_table_constraints(T.AllTableConstraintsRequest("d", table, "hive")).allTableConstraints
    return {name: getattr(found, name) for name in ("primaryKeys", "foreignKeys", "uniqueConstraints", "notNullConstraints",
                                                    "defaultConstraints", "checkConstraints")}


def drop(hive, name, table="t", db="d"):
    hive.drop_constraint(T.DropConstraintRequest(db, table, name))


@pytest.fixture
def t(d):
    d.create("t")
    return d


def test_a_primary_key_gets_a_name_and_can_be_added_again(t):
    t.add_primary_key(T.AddPrimaryKeyRequest([pk("ID")]))
    [found] = primary_keys(t)
    assert (found.column_name, found.key_seq, found.catName) == ("id", 1, "hive")
    assert found.pk_name.startswith("pk_")
    drop(t, found.pk_name.upper())
    assert primary_keys(t) == []
    t.add_primary_key(T.AddPrimaryKeyRequest([pk("id")]))
    assert len(primary_keys(t)) == 1


def test_a_key_of_two_columns_keeps_order_and_flags(t):
    t.add_primary_key(T.AddPrimaryKeyRequest([pk("name", 1, "P"), pk("id", 2, "P")]))
    found = primary_keys(t)
    assert [(one.pk_name, one.key_seq, one.column_name) for one in found] == [("p", 1, "name"), ("p", 2, "id")]
    assert [(one.enable_cstr, one.validate_cstr, one.rely_cstr) for one in found] == [(False, True, True)] * 2


def test_unnamed_columns_of_one_key_share_a_name(t):
    t.add_unique_constraint(T.AddUniqueConstraintRequest([uk("name", 1), uk("id", 2), uk("id", 1)]))
    found = t.get_unique_constraints(T.UniqueConstraintsRequest("hive", "d", "t")).uniqueConstraints
    assert [(one.key_seq, one.column_name) for one in found] == [(1, "name"), (2, "id"), (1, "id")]
    assert found[0].uk_name == found[1].uk_name != found[2].uk_name


def test_a_second_primary_key_is_refused(t):
    t.add_primary_key(T.AddPrimaryKeyRequest([pk("id")]))
    with pytest.raises(T.MetaException, match=r"Primary key already exists for: hive\.d\.t"):
        t.add_primary_key(T.AddPrimaryKeyRequest([pk("name")]))
    with pytest.raises(T.MetaException, match="Primary key already exists"):
        t.create_table_with_constraints(t.table("u"), [pk("id", 1, "a"), pk("name", 1, "b")], [], [], [], [], [])
    with pytest.raises(T.NoSuchObjectException):
        t.get_table("d", "u")


@pytest.mark.parametrize("request_", [pk("id", table="nope"), pk("id", db="nope"), pk("nope")])
def test_what_is_not_there_cannot_be_constrained(t, request_):
    with pytest.raises(TApplicationException, match="not found"):
        t.add_primary_key(T.AddPrimaryKeyRequest([request_]))


def test_constraints_of_what_is_not_there(t):
    assert primary_keys(t, "nope") == primary_keys(t, db="nope") == []
    assert t.get_primary_keys(T.PrimaryKeysRequest("d", "t", "nope")).primaryKeys == []
    assert not any(everything(t, "nope").values())
    for names in (("nope",), ("nope", "t"), ("nope", "t", "nope")):
        with pytest.raises(TApplicationException):
            drop(t, *names)
    with pytest.raises(T.MetaException):
        foreign_keys(t)


def test_each_kind_is_added_read_and_dropped(t):
    t.add_unique_constraint(T.AddUniqueConstraintRequest([uk("id", name="u1")]))
    t.add_not_null_constraint(T.AddNotNullConstraintRequest([nn("id", "n1"), nn("name")]))
    t.add_default_constraint(T.AddDefaultConstraintRequest([default("name", "'x'", "d1")]))
    t.add_check_constraint(T.AddCheckConstraintRequest([check("id", "id > 0", "c1"), check(None, "id < 9", "c2")]))
    found = everything(t)
    assert [one.uk_name for one in found["uniqueConstraints"]] == ["u1"]
    assert [one.column_name for one in found["notNullConstraints"]] == ["id", "name"]
    assert [(one.column_name, one.default_value) for one in found["defaultConstraints"]] == [("name", "'x'")]
    assert [(one.column_name, one.check_expression) for one in found["checkConstraints"]] == [("id", "id > 0"), (None, "id < 9")]
    assert found["notNullConstraints"] == t.get_not_null_constraints(
        T.NotNullConstraintsRequest("hive", "d", "t")).notNullConstraints
    assert found["defaultConstraints"] == t.get_default_constraints(
        T.DefaultConstraintsRequest("hive", "d", "t")).defaultConstraints
    assert found["checkConstraints"] == t.get_check_constraints(T.CheckConstraintsRequest("hive", "d", "t")).checkConstraints
    for name in ("u1", "n1", "d1", "c1", "c2", found["notNullConstraints"][1].nn_name):
        drop(t, name)
    assert everything(t) == {kind: [] for kind in found}


def test_a_name_is_used_once_on_a_table(t):
    t.add_not_null_constraint(T.AddNotNullConstraintRequest([nn("id", "same")]))
    for add in (lambda: t.add_check_constraint(T.AddCheckConstraintRequest([check("id", "id > 0", "SAME")])),
                lambda: t.add_not_null_constraint(T.AddNotNullConstraintRequest([nn("id", "twice"), nn("name", "twice")]))):
        with pytest.raises(T.MetaException, match="already exists"):
            add()
    t.create("other")
    t.add_not_null_constraint(T.AddNotNullConstraintRequest([nn("id", "same", "other")]))
    assert len(everything(t)["notNullConstraints"]) == 1


def test_a_foreign_key_refers_to_a_key_of_its_parent(t):
    t.create("child", "ref int, other string")
    with pytest.raises(T.MetaException, match="no primary keys or unique keys"):
        t.add_foreign_key(T.AddForeignKeyRequest([fk("ref", "id")]))
    t.add_primary_key(T.AddPrimaryKeyRequest([pk("id", name="parents")]))
    with pytest.raises(T.MetaException, match="no corresponding primary key"):
        t.add_foreign_key(T.AddForeignKeyRequest([fk("other", "name")]))
    with pytest.raises(TApplicationException, match="Parent table not found"):
        t.add_foreign_key(T.AddForeignKeyRequest([fk("ref", "id", parent="nope")]))
    with pytest.raises(T.MetaException, match="its own columns"):
        t.add_foreign_key(T.AddForeignKeyRequest([fk("id", "id", table="t")]))
    t.add_foreign_key(T.AddForeignKeyRequest([fk("ref", "id", name="f1")]))

    [found] = foreign_keys(t, child="child")
    assert (found.fk_name, found.pk_name, found.pktable_name, found.pkcolumn_name, found.fkcolumn_name) == (
        "f1", "parents", "t", "id", "ref")
    assert (found.key_seq, found.update_rule, found.delete_rule) == (1, 1, 2)
    assert foreign_keys(t, parent="T") == foreign_keys(t, "child", "t") == [found]
    assert foreign_keys(t, child="t") == foreign_keys(t, parent="child") == []


def test_constraints_come_with_a_new_table(d):
    d.create_table_with_constraints(
        d.table(columns="id int, boss int"), [pk("id", name="p")], [fk("boss", "id", table="t", name="f")],
        [uk("boss")], [nn("id")], [default("boss", "1")], [check("id", "id > 0")])
    assert {name: len(rows) for name, rows in everything(d).items()} == dict.fromkeys(everything(d), 1)
    d.create_table_req(T.CreateTableRequest(d.table("u"), notNullConstraints=[nn("id", table="u")]))
    assert len(everything(d, "u")["notNullConstraints"]) == 1
    with pytest.raises(T.InvalidObjectException, match="Parent column not found"):
        d.create_table_req(T.CreateTableRequest(d.table("v"), notNullConstraints=[nn("nope", table="v")]))
    assert d.get_all_tables("d") == ["t", "u"]
    assert not (d.warehouse / "d.db" / "v").exists()


def test_a_renamed_table_keeps_its_constraints_and_a_new_one_has_none(t):
    t.create("child", "ref int")
    t.add_primary_key(T.AddPrimaryKeyRequest([pk("id", name="p")]))
    t.add_foreign_key(T.AddForeignKeyRequest([fk("ref", "id")]))
    found = t.get_table("d", "t")
    found.tableName = "renamed"
    t.alter_table("d", "t", found)
    assert [one.table_name for one in primary_keys(t, "renamed")] == ["renamed"]
    assert [one.pktable_name for one in foreign_keys(t, child="child")] == ["renamed"]
    assert primary_keys(t) == []

    t.drop_table("d", "renamed", True)
    assert foreign_keys(t, child="child") == []
    t.create("renamed")
    assert primary_keys(t, "renamed") == []


def test_constraints_follow_a_renamed_column_and_go_with_a_removed_one(t):
    t.create("child", "ref int")
    t.add_primary_key(T.AddPrimaryKeyRequest([pk("id", name="p")]))
    t.add_foreign_key(T.AddForeignKeyRequest([fk("ref", "id")]))
    t.add_unique_constraint(T.AddUniqueConstraintRequest([uk("id", 1), uk("name", 2)]))
    t.add_not_null_constraint(T.AddNotNullConstraintRequest([nn("name")]))

    found = t.get_table("d", "t")
    found.sd.cols = [T.FieldSchema("key", "int"), T.FieldSchema("name", "string"), T.FieldSchema("more", "int")]
    t.alter_table("d", "t", found)
    assert everything(t)["primaryKeys"] == [], "another number of columns: id is gone"
    assert foreign_keys(t, child="child") == everything(t)["uniqueConstraints"] == []
    assert len(everything(t)["notNullConstraints"]) == 1
    found.sd.cols[1].name = "title"
    t.alter_table("d", "t", found)
    assert [one.column_name for one in everything(t)["notNullConstraints"]] == ["title"]


def test_a_foreign_key_follows_the_renamed_column_that_it_refers_to(t):
    t.create("child", "ref int")
    t.add_primary_key(T.AddPrimaryKeyRequest([pk("id", name="p")]))
    t.add_foreign_key(T.AddForeignKeyRequest([fk("ref", "id")]))
    found = t.get_table("d", "t")
    found.sd.cols[0].name = "key"
    t.alter_table("d", "t", found)
    assert [one.pkcolumn_name for one in foreign_keys(t, child="child")] == ["key"]
    assert [one.column_name for one in primary_keys(t)] == ["key"]


@pytest.mark.parametrize("constraint", [check("id", "reflect('java.lang.System', 'exit', 1) IS NULL"), default("name", "java_method('a.B', 'c')"),
                                        default("name", "other.my_udf(1)"), check("id", "id IN (SELECT 1)")])
def test_an_expression_that_calls_anything_else_is_not_declared(d, constraint):
    """It would run in the process of whoever writes."""
    kind = "default" if hasattr(constraint, "default_value") else "check"
    request = T.AddDefaultConstraintRequest if kind == "default" else T.AddCheckConstraintRequest
    d.create()
    with pytest.raises(T.MetaException, match="is refused: "):
        getattr(d, f"add_{kind}_constraint")(request([constraint]))
    with pytest.raises(T.MetaException, match="is refused: "):
        d.create_table_with_constraints(d.table("u"), [], [], [], [], *(([constraint], []) if kind == "default" else ([], [constraint])))
    assert d.get_all_tables("d") == ["t"]
    assert d.get_all_table_constraints(T.AllTableConstraintsRequest("d", "t", "hive")).allTableConstraints.checkConstraints == []
