"""Reading tables (CAT-T7, CAT-T8)."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes as T


def table_names(tables):
    return sorted(table.tableName for table in tables)


@pytest.fixture
def listed(d):
    """Fixtures of CAT-82."""
    for name in ("table_to_find_1", "table_to_find_2", "table_hidden_1"):
        d.create(name)
    return d


def test_upper_names(d):  # CAT-77
    d.create()
    assert d.get_table("D", "T").tableName == "t"
    assert d.get_table_req(T.GetTableRequest("D", "T")).table == d.get_table("@hive#d", "t")


def test_missing(d):  # CAT-78
    d.create()
    d.database("other")
    for db, name in (("nope", "t"), ("d", "nope"), ("other", "t"), ("@nope#d", "t")):
        with pytest.raises(T.NoSuchObjectException) as missing:
            d.get_table(db, name)
        assert missing.value.message.endswith("table not found")
        with pytest.raises(T.NoSuchObjectException):
            d.get_table_req(T.GetTableRequest(db, name))
    with pytest.raises(T.NoSuchObjectException):
        d.get_table_req(T.GetTableRequest("d", "t", catName="nope"))


@pytest.mark.parametrize(("db", "name"), [(None, "t"), ("d", None)])
def test_null_names(d, db, name):  # CAT-79
    with pytest.raises((T.MetaException, TApplicationException)):
        d.get_table(db, name)


def test_insert_only_tables_are_shown(d):  # CAT-80, without the check of capabilities
    d.create(parameters={"transactional": "true", "transactional_properties": "insert_only"})
    capable = T.GetTableRequest("d", "t", capabilities=T.ClientCapabilities([T.ClientCapability.INSERT_ONLY_TABLES]))
    assert d.get_table_req(capable).table == d.get_table("d", "t")


def test_all_tables(listed):  # CAT-81
    listed.create("v", tableType="VIRTUAL_VIEW")
    assert listed.get_all_tables("d") == ["table_hidden_1", "table_to_find_1", "table_to_find_2", "v"]
    listed.drop_table("d", "table_to_find_1", True)
    assert listed.get_all_tables("D") == ["table_hidden_1", "table_to_find_2", "v"]
    assert listed.get_all_tables("nope") == []
    with pytest.raises(T.MetaException):
        listed.get_all_tables(None)


def test_patterns(listed):  # CAT-82, CAT-83
    assert listed.get_tables("d", "*_to_find_*") == ["table_to_find_1", "table_to_find_2"]
    assert len(listed.get_tables("d", "*_to_find_*|*_hidden_*")) == 3
    assert listed.get_tables("d", None) == listed.get_tables("d", "*") == listed.get_tables("d", ".*")
    assert listed.get_tables("d", "") == listed.get_tables("nope", "*") == listed.get_tables("@nope#d", "*") == []
    assert listed.get_tables("@hive#d", "TABLE_TO_*") == ["table_to_find_1", "table_to_find_2"]
    assert listed.get_tables("d", "table_to_find%") == listed.get_tables("d", "[t]*") == []
    with pytest.raises(T.MetaException):
        listed.get_tables(None, "*")


def test_types(d):  # CAT-84
    d.create()
    d.create("v", tableType="VIRTUAL_VIEW")
    assert d.get_tables_by_type("d", "*", "VIRTUAL_VIEW") == ["v"]
    assert d.get_tables_by_type("d", "t*", "MANAGED_TABLE") == ["t"]
    assert d.get_tables_by_type("d", "*", None) == ["t", "v"]
    with pytest.raises(T.MetaException):
        d.get_tables_by_type("d", "*", "FOO")


def test_several(d):  # CAT-85
    for name in ("a", "b", "c"):
        d.create(name)
    for names, found in ((["a", "b"], ["a", "b"]), (["a", "x"], ["a"]), (["a", "A", "a"], ["a"]), ([], []), (["B"], ["b"])):
        assert table_names(d.get_table_objects_by_name("D", names)) == found
        assert table_names(d.get_table_objects_by_name_req(T.GetTablesRequest("d", names)).tables) == found
    assert table_names(d.get_table_objects_by_name_req(T.GetTablesRequest("d", tablesPattern="a|c")).tables) == ["a", "c"]


def test_several_of_a_missing_database(hive):  # CAT-86, CAT-87
    for request in (T.GetTablesRequest("nope", ["a"]), T.GetTablesRequest("", ["a"])):
        with pytest.raises(T.UnknownDBException):
            hive.get_table_objects_by_name_req(request)
        with pytest.raises(T.UnknownDBException):
            hive.get_table_objects_by_name(request.dbName, ["a"])
    with pytest.raises(T.InvalidOperationException):
        hive.get_table_objects_by_name("default", None)


def test_projection(d):  # CAT-88
    d.create()
    [found] = d.get_table_objects_by_name_req(T.GetTablesRequest(
        "d", ["t"], projectionSpec=T.GetProjectionsSpec(fieldList=["tableName", "sd.location"]))).tables
    assert found.sd == T.StorageDescriptor(location=f"file:{d.warehouse}/d.db/t")
    assert (found.tableName, found.dbName, found.parameters, found.sd.cols) == ("t", None, None, None)
    with pytest.raises(T.MetaException):
        d.get_table_objects_by_name_req(T.GetTablesRequest(
            "d", ["t"], projectionSpec=T.GetProjectionsSpec(fieldList=["nope"])))
    with pytest.raises(T.InvalidOperationException):
        d.get_table_objects_by_name_req(T.GetTablesRequest(
            "d", ["t"], projectionSpec=T.GetProjectionsSpec(includeParamKeyPattern="a%")))


@pytest.fixture
def m5(hive):
    """Fixture M5 (CAT-Y4)."""
    hive.database("x_one")
    hive.database("x_two")
    hive.create("t_one", db="x_one", tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    hive.create("t", db="x_one", parameters={"comment": "cmT"})
    hive.create("vt", db="x_one", tableType="VIRTUAL_VIEW")
    hive.create("t_one", db="x_two")
    hive.create("vt", db="x_two", tableType="MATERIALIZED_VIEW", parameters={"comment": ""})
    return hive


def test_meta(m5):  # CAT-89 to CAT-97
    def meta(*args):
        return [f"{found.dbName}.{found.tableName}" for found in m5.get_table_meta(*args)]

    assert meta("asdf", "qwerty", ["zxcv"]) == []
    everything = ["x_one.t", "x_one.t_one", "x_one.vt", "x_two.t_one", "x_two.vt"]
    for pattern, tables in (("*", "*"), ("***", "**"), (None, None), (None, "*"), ("*", None)):
        assert meta(pattern, tables, []) == everything
    assert meta("*", "*", None) == everything
    assert meta("*one", "*", []) == everything[:3]
    assert meta("*", "*", ["EXTERNAL_TABLE"]) == ["x_one.t_one"]
    assert meta("*", "*", ["EXTERNAL_TABLE", "MATERIALIZED_VIEW"]) == ["x_one.t_one", "x_two.vt"]
    for types in (["*TABLE"], ["*"], [""], ["mAnAGeD_tABlE"]):
        assert meta("*", "*", types) == []
    assert meta("*tWo", "t_*", []) == ["x_two.t_one"]
    assert meta("", "*", []) == meta("*", "", []) == []
    assert meta("@hive#x_*", "*", []) == everything
    assert meta("@h*#*", "*", []) == meta("@nope#*", "*", []) == []
    found = {f"{one.dbName}.{one.tableName}": (one.tableType, one.comments) for one in m5.get_table_meta("*", "*", [])}
    assert (found["x_one.t"], found["x_two.vt"], found["x_one.vt"]) == (
        ("MANAGED_TABLE", "cmT"), ("MATERIALIZED_VIEW", ""), ("VIRTUAL_VIEW", None))


OWNER, ACCESS, PARAMS = "hive_filter_field_owner__", "hive_filter_field_last_access__", "hive_filter_field_params__"


@pytest.fixture
def filtered(d):
    """Tables that a filter tells apart."""
    for name, owner, access, parameters in (
            ("t0", "Owner1", 1000, {"param1": "value1"}), ("t1", "Owner1", 1000, {"param1": "value2"}),
            ("t2", "Owner2", 2000, {"param1": "value2"}), ("t3", "Owner3", 3000, {}),
            ("t4", "Tester", 2500, {"param1": "40", "presto_view": "true"})):
        d.create(name, owner=owner, lastAccessTime=access, parameters=parameters)
    return d


@pytest.mark.parametrize(("text", "most", "expected"), [
    (f'{OWNER}="Owner1"', -1, "t0 t1"), (f'{ACCESS}=1000', -1, "t0 t1"), (f'{ACCESS} <= 2000', -1, "t0 t1 t2"),  # CAT-99, CAT-100
    (f'{PARAMS}param1="value2"', -1, "t1 t2"), (f'{PARAMS}param1 <> "value2"', -1, "t0 t4"),  # CAT-101
    (f'{PARAMS}param1 = 40', -1, "t4"), (f'{PARAMS}presto_view = "true"', -1, "t4"),
    (f'{PARAMS}param1 like "val.*"', -1, "t0 t1 t2"),
    (f'{OWNER} LIKE "Owner.*"', -1, "t0 t1 t2 t3"), (f'{OWNER} LIKE "Owner.*"', 1, "t0"),  # CAT-102
    (f'{OWNER} like "Owner.*"', 0, ""),
    (f'{ACCESS}<3000 and ({OWNER}="Tester" or {PARAMS}param1="value2")', -1, "t1 t2 t4"),  # CAT-103
    ('hive_filter_field_tableName__ like "(?i)T[02]"', -1, ""), ('hive_filter_field_tableName__ like "(?i)T.*"', 2, "t0 t1")])
def test_names_by_filter(filtered, text, most, expected):
    assert filtered.get_table_names_by_filter("D", text, most) == expected.split()


@pytest.mark.parametrize(("db", "text", "error"), [
    (None, f'{OWNER}="x"', T.UnknownDBException), ("d", None, T.InvalidOperationException),  # CAT-104
    ("d", "invalid filter", T.MetaException), ("d", 'badKey="x"', T.MetaException),
    ("d", f'{ACCESS} like "1.*"', T.MetaException), ("d", f'{PARAMS}p > "1"', T.MetaException)])  # CAT-105
def test_names_by_filter_refused(filtered, db, text, error):
    with pytest.raises(error):
        filtered.get_table_names_by_filter(db, text, -1)


def test_names_by_filter_of_a_missing_database(hive):  # CAT-104
    assert hive.get_table_names_by_filter("nope", f'{OWNER}="x"', -1) == []


def test_columns(d):  # CAT-106
    d.create(keys="day:string hour:int")
    data = [T.FieldSchema("id", "int"), T.FieldSchema("name", "string")]
    keys = [T.FieldSchema("day", "string"), T.FieldSchema("hour", "int")]
    assert d.get_fields("d", "t") == d.get_fields("d", "T.name") == data
    assert d.get_fields_with_environment_context("d", "t", T.EnvironmentContext()) == data
    assert d.get_fields_req(T.GetFieldsRequest(dbName="d", tblName="t")).fields == data
    assert d.get_schema("d", "t") == d.get_schema_with_environment_context("d", "t", None) == data + keys
    assert d.get_schema_req(T.GetSchemaRequest(dbName="d", tblName="t")).fields == data + keys
    for call in (d.get_fields, d.get_schema):
        with pytest.raises(T.UnknownTableException):
            call("d", "nope")
        with pytest.raises(T.UnknownDBException):
            call("nope", "t")


def test_materialized_views(d):
    d.create("v", tableType="MATERIALIZED_VIEW", rewriteEnabled=True,
             creationMetadata=T.CreationMetadata("hive", "d", "v", {"d.t"}, "txns", 5))
    d.create("w", tableType="MATERIALIZED_VIEW")
    assert d.get_materialized_views_for_rewriting("d") == ["v"]
    assert d.get_materialized_views_for_rewriting("nope") == []
    [view] = d.get_all_materialized_view_objects_for_rewriting()
    assert view.creationMetadata == T.CreationMetadata("hive", "d", "v", {"d.t"}, "txns", 5)


def test_one_statement_for_a_table_and_for_a_database(d, database, monkeypatch):
    d.create()
    statements = []
    execute = type(database).once

    def counted(self, query, *args, **kwargs):
        statements.append(query)
        return execute(self, query, *args, **kwargs)

    monkeypatch.setattr(type(database), "once", counted)
    monkeypatch.setattr(type(database), "begin", None)
    d.get_table("d", "t")
    d.get_database("d")
    assert len(statements) == 2
    assert not any(";" in statement for statement in statements)


def test_a_place_tells_the_transactional_table_that_is_there_above_it_or_below_it(d):
    top = f"{d.warehouse}/far"
    d.create("t", parameters={"transactional": "true", "transactional_properties": "insert_only"}, sd={"location": f"file:{top}/deep/t"})
    d.create("plain", sd={"location": f"file:{top}/deep/plain"})

    for place in (f"file:{top}/deep/t", f"file://{top}/deep/t/", f"{top}/deep/t/k=1/x", f"file:{top}/deep", f"file:{top}"):
        assert d.metastore_table_at(place) == "d.t", place
    for place in (f"file:{top}/deep/t2", f"file:{top}/deep/plain", f"file:{top}/deep/plain/k=1", f"file:{top}/none", f"s3:/{top}/deep/t",
                  f"file:{top}/deep/t/.stage/tasks", f"file:{top}/deep/t/_tmp"):
        assert d.metastore_table_at(place) == "", place
    with pytest.raises(T.MetaException, match="names no place"):
        d.metastore_table_at(None)


@pytest.mark.parametrize("stored", ["s3", "s3a", "s3n"])
def test_a_place_is_the_same_by_each_scheme_of_its_store(d, database, stored):
    d.create("t", parameters={"transactional": "true", "transactional_properties": "insert_only"})
    database.once("UPDATE tables SET location = %s", [f"{stored}://b/deep/t"])

    for scheme in ("s3", "s3a", "s3n"):
        for place in ("deep", "deep/t", "deep/t/k=1"):
            assert d.metastore_table_at(f"{scheme}://b/{place}") == "d.t", (scheme, place)
    assert d.metastore_table_at("abfs://b/deep/t") == d.metastore_table_at("s3://c/deep/t") == ""


def test_what_a_client_may_do_with_tables(d):
    """As Hive 4.2.0 answers; tests/unit/catalog/test_table_access.py has all kinds."""
    d.create("ext", parameters={"EXTERNAL": "TRUE"}, tableType="EXTERNAL_TABLE")
    d.create("v", tableType="VIRTUAL_VIEW", viewOriginalText="select 1", viewExpandedText="select 1")
    d.create("plain")

    def asked(fields=3, limit=-1, said=("EXTREAD",), pattern="*", db="D", catalog="HIVE"):
        request = T.GetTablesExtRequest(catalog, db, pattern, fields, limit, list(said), "me")
        return {one.tblName: [one.accessType, one.requiredReadCapabilities, one.requiredWriteCapabilities] for one in d.get_tables_ext(request)}

    everything = {"ext": [2, None, ["EXTWRITE"]], "plain": [8, None, None], "v": [1, ["HIVESQL", "CONNECTORREAD"], None]}
    assert asked() == asked(-1) == asked(limit=100) == everything
    assert list(asked()) == ["ext", "plain", "v"]
    assert asked(1) == {"ext": [2, None, None], "plain": [8, None, None], "v": [1, None, None]}
    assert asked(2)["ext"] == [None, None, ["EXTWRITE"]]
    assert asked(0)["v"] == [None, None, None]
    assert list(asked(limit=2)) == ["ext", "plain"]
    assert list(asked(pattern="E*|v")) == ["ext", "v"]
    nothing = [asked(limit=0), asked(limit=None), asked(said=()), asked(said=("MANAGERAWMETADATA", "EXTREAD")), asked(pattern=""), asked(db="nosuch"),
               asked(db="d*"), asked(db=""), asked(catalog="other"), asked(catalog=""), asked(db="@hive#d")]
    assert nothing == [{}] * len(nothing)
