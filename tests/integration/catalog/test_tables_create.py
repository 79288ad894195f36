"""Creating tables and views (CAT-T1 to CAT-T4, CAT-V1 to CAT-V11)."""

import threading

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.integration.catalog.conftest import ORC

EXTERNAL = {"EXTERNAL": "TRUE"}


def test_every_field_comes_back(d, tmp_path):  # CAT-51
    sent = d.table(
        "Full", "Id int, Name varchar(10)", keys="Day:date", owner="bob", ownerType=T.PrincipalType.ROLE,
        createTime=77, lastAccessTime=5, retention=9, tableType="EXTERNAL_TABLE", rewriteEnabled=True,
        viewOriginalText="original", viewExpandedText="expanded",
        parameters={"EXTERNAL": "TRUE", "CamelCase": "Value", "comment": "ümlaut"},
        sd={"location": str(tmp_path / "full") + "//x/", "inputFormat": "in", "outputFormat": "out", "compressed": True,
            "numBuckets": 4, "bucketCols": ["ID"], "sortCols": [T.Order("Name", 1)], "parameters": {"p": "q"},
            "serdeInfo": T.SerDeInfo("n", "lib", {"path": "/p"}),
            "skewedInfo": T.SkewedInfo(["Id"], [["1"], ["2"]], {("1",): "/one"}), "storedAsSubDirectories": True})
    d.create_table(sent)
    found = d.get_table("d", "FULL")
    assert found.createTime > 77
    assert found.parameters.pop("transient_lastDdlTime") == str(found.createTime)
    assert found.id > 0
    assert found == T.Table(
        tableName="full", dbName="d", owner="bob", ownerType=T.PrincipalType.ROLE, createTime=found.createTime,
        lastAccessTime=5, retention=9, tableType="EXTERNAL_TABLE", rewriteEnabled=True, viewOriginalText="original",
        viewExpandedText="expanded", parameters={"EXTERNAL": "TRUE", "CamelCase": "Value", "comment": "ümlaut"},
        partitionKeys=[T.FieldSchema("day", "date")], temporary=False, catName="hive", writeId=0, id=found.id,
        sd=T.StorageDescriptor(
            cols=[T.FieldSchema("id", "int"), T.FieldSchema("name", "varchar(10)")], location=f"file:{tmp_path}/full/x",
            inputFormat="in", outputFormat="out", compressed=True, numBuckets=4, bucketCols=["id"],
            sortCols=[T.Order("name", 1)], parameters={"p": "q"}, serdeInfo=T.SerDeInfo("n", "lib", {"path": "/p"}),
            skewedInfo=T.SkewedInfo(["id"], [["1"], ["2"]], {("1",): "/one"}), storedAsSubDirectories=True))
    assert (tmp_path / "full" / "x").is_dir()


def test_minimal_table_is_complete(hive):  # CAT-52
    hive.create_table(T.Table(tableName="t", dbName="default", sd=T.StorageDescriptor(
        cols=[T.FieldSchema("a", "int")], serdeInfo=T.SerDeInfo())))
    found = hive.get_table("default", "t")
    assert found.sd == T.StorageDescriptor(
        cols=[T.FieldSchema("a", "int")], location=f"file:{hive.warehouse}/t", compressed=False, numBuckets=0,
        serdeInfo=T.SerDeInfo(parameters={}), bucketCols=[], sortCols=[], parameters={},
        skewedInfo=T.SkewedInfo([], [], {}), storedAsSubDirectories=False)
    assert (found.owner, found.retention, found.partitionKeys, found.tableType, found.ownerType) == (
        None, 0, [], "MANAGED_TABLE", T.PrincipalType.USER)
    assert list(found.parameters) == ["transient_lastDdlTime"]
    assert hive.path(found.sd.location).is_dir()


def test_location_follows_the_database(hive, tmp_path):  # CAT-53
    hive.database(locationUri=str(tmp_path / "elsewhere"))
    assert hive.create().sd.location == f"file:{tmp_path}/elsewhere/t"
    assert hive.create("a/b").sd.location == f"file:{tmp_path}/elsewhere/a-47-b"


def test_view_has_no_location(d):  # CAT-54
    found = d.create("v", tableType="VIRTUAL_VIEW", viewOriginalText="select 1", viewExpandedText="select 1")
    assert (found.sd.location, found.viewOriginalText) == (None, "select 1")
    assert not (d.warehouse / "d.db" / "v").exists()
    untyped = d.create("w", viewOriginalText="select 1")
    assert untyped.tableType == "VIRTUAL_VIEW"


@pytest.mark.parametrize(("sent", "parameters", "stored"), [
    ("EXTERNAL_TABLE", EXTERNAL, "EXTERNAL_TABLE"), ("MANAGED_TABLE", {"EXTERNAL": "true"}, "EXTERNAL_TABLE"),  # CAT-55
    ("EXTERNAL_TABLE", {}, "MANAGED_TABLE"), (None, {}, "MANAGED_TABLE"), ("INDEX_TABLE", {}, "INDEX_TABLE")])
def test_the_parameter_decides_about_the_type(d, sent, parameters, stored):
    assert d.create(tableType=sent, parameters=parameters).tableType == stored


def without(table, field):
    setattr(table, field, None)
    return table


REFUSED = [
    ("no db", lambda t: without(t, "dbName"), T.MetaException), ("no name", lambda t: without(t, "tableName"), T.MetaException),  # CAT-56, CAT-57
    ("odd name", lambda t: setattr(t, "tableName", "test§table;"), T.InvalidObjectException),  # CAT-58
    ("empty name", lambda t: setattr(t, "tableName", ""), T.InvalidObjectException),  # CAT-59
    ("no sd", lambda t: without(t, "sd"), T.MetaException), ("no cols", lambda t: without(t.sd, "cols"), T.MetaException),  # CAT-60, CAT-61
    ("no serde", lambda t: without(t.sd, "serdeInfo"), T.MetaException),  # CAT-62
    ("no column type", lambda t: without(t.sd.cols[0], "type"), T.MetaException),  # CAT-63
    ("unknown type", lambda t: setattr(t.sd.cols[0], "type", "xyz"), T.InvalidObjectException),  # CAT-64
    ("upper-case type", lambda t: setattr(t.sd.cols[0], "type", "INT"), T.InvalidObjectException),  # CAT-65
    ("unknown key type", lambda t: setattr(t, "partitionKeys", [T.FieldSchema("k", "nope")]), T.InvalidObjectException),
    ("column twice", lambda t: setattr(t.sd.cols[0], "name", "NAME"), T.InvalidObjectException),
    ("key is a column", lambda t: setattr(t, "partitionKeys", [T.FieldSchema("Id", "int")]), T.InvalidObjectException),
    ("skew of unknown column", lambda t: setattr(t.sd, "skewedInfo", T.SkewedInfo(["x"], [], {})), T.InvalidObjectException),
    ("skewed values too long", lambda t: setattr(t.sd, "skewedInfo", T.SkewedInfo(["id"], [["1", "2"]], {})), T.InvalidObjectException),
    ("skewed twice", lambda t: setattr(t.sd, "skewedInfo", T.SkewedInfo(["id", "id"], [], {})), T.InvalidObjectException),
    ("db missing", lambda t: setattr(t, "dbName", "nope"), T.InvalidObjectException),  # CAT-66
    ("catalog missing", lambda t: setattr(t, "catName", "nope"), T.InvalidObjectException),  # CAT-68
    ("relative location", lambda t: setattr(t.sd, "location", "relative/path"), T.MetaException)]


@pytest.mark.parametrize(("change", "error"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(d, change, error):
    table = d.table()
    change(table)
    with pytest.raises(error):
        d.create_table(table)
    assert d.get_all_tables("d") == []
    assert not (d.warehouse / "d.db" / "t").exists()


@pytest.mark.parametrize("column", [
    "array<foo>", "decimal(10,2)", "map<string,int>", "struct<a:int>", "uniontype<int>", "timestamp", "void",
    "timestamp with local time zone", "interval_day_time", "<derived from deserializer>"])
def test_column_types(d, column):  # CAT-65
    assert d.create(columns=f"c {column}").sd.cols == [T.FieldSchema("c", column)]


def test_taken_name(d):  # CAT-67
    d.create()
    with pytest.raises(T.AlreadyExistsException, match="already exists"):
        d.create_table(d.table("T"))
    with pytest.raises(T.AlreadyExistsException):
        d.create_table(d.table("T", tableType="VIRTUAL_VIEW"))
    assert (d.warehouse / "d.db" / "t").is_dir()


def test_no_columns_and_odd_but_legal_content(d):
    found = d.create(columns="", sd={"numBuckets": -1, "skewedInfo": T.SkewedInfo([], [], {})}, retention=2147483647,
                     privileges=T.PrincipalPrivilegeSet({"ann": [T.PrivilegeGrantInfo("INSERT", -1, "ann", 1, True)]}))
    assert (found.sd.cols, found.sd.numBuckets, found.retention) == ([], -1, 2147483647)


def test_long_values_are_kept(d):
    text = "0123456789ä" * 10_000
    assert d.create(parameters={"spark.sql.sources.schema": text}).parameters["spark.sql.sources.schema"] == text


def test_every_dialect(d):
    d.create_table_with_environment_context(d.table("a"), T.EnvironmentContext())
    d.create_table_with_environment_context(d.table("b"), None)
    d.create_table_req(T.CreateTableRequest(d.table("c"), T.EnvironmentContext({"unknown": "key"})))
    d.create_table_with_constraints(d.table("e"), None, None, None, None, None, None)
    d.create_table_with_constraints(d.table("f"), [], [], [], [], [], [])
    assert d.get_all_tables("d") == ["a", "b", "c", "e", "f"]


def test_instructions_are_not_stored(d):
    sent = {"created_with_ctas": "true", "DO_NOT_UPDATE_STATS": "true", "COLUMN_STATS_ACCURATE": "{}", "kept": "1"}
    assert set(d.create("a", parameters=sent).parameters) == {"kept", "transient_lastDdlTime"}
    d.create_table_with_environment_context(d.table("b", parameters=sent), T.EnvironmentContext({"STATS_GENERATED": "TASK"}))
    assert set(d.get_table("d", "b").parameters) == {"kept", "transient_lastDdlTime", "COLUMN_STATS_ACCURATE"}
    assert d.create("c", parameters={"transient_lastDdlTime": "55"}).parameters["transient_lastDdlTime"] == "55"


ACID = {"transactional": "true"}


@pytest.mark.parametrize(("parameters", "fields", "words"), [
    ({"transactional": "maybe"}, ORC, "may only have value"),  # CAT-72
    ({"transactional": "true", "EXTERNAL": "TRUE"}, ORC, "external"),  # CAT-73
    (ACID, {}, "an ACID compliant"), (ACID, {"inputFormat": ORC["inputFormat"]}, "ACID compliant"),  # CAT-74
    (ACID, {**ORC, "sortCols": [T.Order("id", 1)]}, "sorted"),
    ({"transactional": "true", "transactional_properties": "foo"}, ORC, "transactional properties")])  # CAT-75
def test_transactional_refused(d, parameters, fields, words):
    with pytest.raises(T.MetaException, match=words):
        d.create(parameters=parameters, sd=fields)
    assert d.get_all_tables("d") == []


@pytest.mark.parametrize(("sent", "fields", "stored"), [
    ({"Transactional": "TRUE"}, ORC, {"transactional": "true", "transactional_properties": "default"}),
    ({"transactional": "true", "transactional_properties": "INSERT_ONLY"}, {},
     {"transactional": "true", "transactional_properties": "insert_only"}),  # CAT-74
    ({"transactional": "FALSE"}, {}, {}),  # CAT-76
    ({"transactional_properties": "anything"}, {}, {"transactional_properties": "anything"})])
def test_transactional_accepted(d, sent, fields, stored):
    found = d.create(parameters=sent, sd=fields).parameters
    del found["transient_lastDdlTime"]
    assert found == stored


def test_one_of_many_creators_wins(d):
    outcomes = []

    def create():
        with d.client.clone() as mine:
            try:
                mine.create_table(d.table())
                outcomes.append("created")
            except T.AlreadyExistsException:
                outcomes.append("exists")

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["created"] + ["exists"] * 5
    assert (d.warehouse / "d.db" / "t").is_dir()


@pytest.mark.parametrize("key", ["compactor.spark.jars", "compactor.spark.extraListeners", "compactor.spark.driver.extraJavaOptions"])
def test_properties_that_would_reach_a_compactions_job(d, key):
    """They run as the metastore's user: refused in a new table and where one is altered, unless they are there already."""
    with pytest.raises(T.InvalidObjectException, match=key):
        d.create(parameters={key: "/tmp/evil.jar"})
    table = d.create(parameters={"compactor.spark.executor.memory": "2g"})
    table.parameters[key] = "/tmp/evil.jar"
    with pytest.raises(T.InvalidOperationException, match=key):
        d.alter_table("d", "t", table)
    assert key not in d.get_table("d", "t").parameters


def test_properties_of_old_that_would_reach_a_compactions_job_are_in_nobodys_way(d, database):
    d.create()
    database.once("""UPDATE tables SET parameters = parameters || '{"compactor.spark.jars": "/tmp/old.jar"}'""")
    table = d.get_table("d", "t")
    table.parameters["comment"] = "x"
    d.alter_table("d", "t", table)

    assert d.get_table("d", "t").parameters["comment"] == "x"


def test_a_past_is_kept_for_a_number_of_days(d, database):
    key = "acid.history.retention.days"
    with pytest.raises(T.MetaException, match="'acid.history.retention.days' must be a whole number of days from 0 to 36500, not 'a week'"):
        d.create(parameters={key: "a week"})
    table = d.create(parameters={key: "30"})
    table.parameters[key] = "-1"
    with pytest.raises(T.MetaException, match=key):
        d.alter_table("d", "t", table)
    assert d.get_table("d", "t").parameters[key] == "30"
    database.once("""UPDATE tables SET parameters = parameters || '{"acid.history.retention.days": "old"}'""")
    table = d.get_table("d", "t")
    table.parameters["comment"] = "what is there already is in nobody's way"
    d.alter_table("d", "t", table)
