"""Answers that the real metastore gives for what is null, empty, missing, in another catalog or in upper case.

Each expected value is what Hive's own server 4.0.1 answered to the same call on PostgreSQL; 2.3.10 where a line says so.
"""

import pytest
from thrift.protocol.fastbinary import encode_binary
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.transport.TTransport import TMemoryBuffer

from metastore.catalog.service.table_reads import TableReads
from metastore.ids import TableName
from metastore.partition_names import escape
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.convert.catalog import table_to_thrift
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.partition_exchange import PartitionExchangeHandlers
from tests.integration.catalog.conftest import ORC

META, MISSING, INVALID = T.MetaException, T.NoSuchObjectException, T.InvalidObjectException
OPERATION, NO_TABLE, NO_DATABASE = T.InvalidOperationException, T.UnknownTableException, T.UnknownDBException
NAMES = {
    "null db": (None, "t"), "empty db": ("", "t"), "no db": ("missing", "t"), "null table": ("d", None),
    "empty table": ("d", ""), "no table": ("d", "missing"), "no catalog": ("@nocat#d", "t"), "cat": ("@cat#d", "t"),
    "upper": ("D", "T")}


def part(db, table, value="1"):
    sd = T.StorageDescriptor(cols=[T.FieldSchema("id", "int")], location="file:/tmp/p", serdeInfo=T.SerDeInfo())
    return T.Partition(dbName=db, tableName=table, values=[value], sd=sd)


def row(null, empty_db, no_db, empty_table, no_table, no_catalog, upper):
    """Return the answers to each of ``NAMES``: a null table is answered as a null database, another catalog as a missing one."""
    return dict(zip(NAMES, (null, empty_db, no_db, null, empty_table, no_table, no_catalog, no_catalog, upper), strict=True))


ALTER = row(META, OPERATION, OPERATION, OPERATION, OPERATION, OPERATION, "done")
GET = row(META, MISSING, MISSING, MISSING, MISSING, MISSING, "done")
CALLS = {
    "alter_partition": (lambda c, d, t: c.alter_partition(d, t, part(d or "", t or "")), ALTER),
    "alter_partition of another": (lambda c, d, t: c.alter_partition(d, t, part("d", "t")), ALTER),
    "alter_partitions": (lambda c, d, t: c.alter_partitions(d, t, [part(d or "", t or "")]), ALTER),
    "rename_partition": (lambda c, d, t: c.rename_partition(d, t, ["1"], part(d or "", t or "", "2")), ALTER),
    "rename_partition of another": (lambda c, d, t: c.rename_partition(d, t, ["1"], part("d", "t", "2")), ALTER),
    "rename_partition to itself": (lambda c, d, t: c.rename_partition(d, t, ["1"], part(d or "", t or "")),
                                   {**ALTER, "upper": OPERATION}),
    "get_partition": (lambda c, d, t: c.get_partition(d, t, ["1"]), GET),
    "get_partition_by_name": (lambda c, d, t: c.get_partition_by_name(d, t, "p=1"), GET),
    "get_partitions": (lambda c, d, t: len(c.get_partitions(d, t, -1)), row(META, MISSING, 0, MISSING, 0, 0, 1)),
    "get_partitions_with_auth": (lambda c, d, t: c.get_partitions_with_auth(d, t, -1, "ann", []), GET),
    "get_partitions_pspec": (lambda c, d, t: c.get_partitions_pspec(d, t, -1), GET),
    "get_partition_names": (lambda c, d, t: c.get_partition_names(d, t, -1), row(META, META, [], META, [], [], ["p=1"])),
    "get_partitions_ps": (lambda c, d, t: c.get_partitions_ps(d, t, ["1"], -1), GET),
    "get_partition_names_ps": (lambda c, d, t: c.get_partition_names_ps(d, t, ["1"], -1), GET),
    "get_partitions_by_names": (lambda c, d, t: c.get_partitions_by_names(d, t, ["p=1"]),
                                row(META, MISSING, INVALID, MISSING, INVALID, INVALID, "done")),
    "get_partitions_by_filter": (lambda c, d, t: c.get_partitions_by_filter(d, t, 'p="1"', -1), GET),
    "get_num_partitions_by_filter": (lambda c, d, t: c.get_num_partitions_by_filter(d, t, 'p="1"'), GET),
    "get_partitions_req": (lambda c, d, t: len(c.get_partitions_req(T.PartitionsRequest(dbName=d, tblName=t)).partitions),
                           row(None, MISSING, 0, MISSING, 0, 0, 1)),
    "fetch_partition_names_req": (lambda c, d, t: c.fetch_partition_names_req(T.PartitionsRequest(dbName=d, tblName=t)),
                                  row(None, META, [], META, [], [], ["p=1"])),
    "get_partition_values": (lambda c, d, t: c.get_partition_values(T.PartitionValuesRequest(
        dbName=d, tblName=t, partitionKeys=[T.FieldSchema("p", "string")])), row(None, META, META, META, META, META, "done")),
    "drop_partition": (lambda c, d, t: c.drop_partition(d, t, ["9"], False), row(META, *[MISSING] * 6)),
    "append_partition": (lambda c, d, t: c.append_partition(d, t, ["8"]), row(META, *[INVALID] * 5, "done")),
    "get_fields": (lambda c, d, t: c.get_fields(d, t), row(META, *[NO_TABLE] * 5, "done")),
    "get_schema": (lambda c, d, t: c.get_schema(d, t), row(META, *[NO_TABLE] * 5, "done")),
    "get_table_names_by_filter": (lambda c, d, t: c.get_table_names_by_filter(d, "", -1),
                                  {**row(NO_DATABASE, NO_DATABASE, [], ["t"], ["t"], [], ["t"]), "null table": ["t"]}),
    "drop_table": (lambda c, d, t: c.drop_table(d, "x" if t in {"t", "T"} else t, False), row(META, *[MISSING] * 6)),  # null: 2.3.10
}


@pytest.mark.parametrize("name", CALLS)
def test_names_that_are_null_empty_missing_of_another_catalog_or_upper_case(d, name):
    """Asked: 4.0.1. A request struct without its required names breaks its connection there, and is not asked."""
    d.create("t", keys="p:string")
    d.add("1")
    d.create_catalog(T.CreateCatalogRequest(T.Catalog(name="cat", locationUri=(d.warehouse / "cat").as_uri())))
    call, expected = CALLS[name]
    answers = {}
    for which, (db, table) in NAMES.items():
        if expected[which] is not None:
            try:
                answers[which] = call(d, db, table)
            except Exception as error:  # noqa: BLE001 - the kind of error is the answer
                answers[which] = type(error)
    wanted = {which: answer for which, answer in expected.items() if answer is not None}
    assert {which: "done" if wanted[which] == "done" and not isinstance(answer, type) else answer
            for which, answer in answers.items()} == wanted


def spec_parts(table, *, at=()):
    """p=a/q=1 and p=a/q=2 like their table, p=b/q=1 of another format, p=c/q=1 outside of the table."""
    def part(values, location=None, form="in"):
        sd = T.StorageDescriptor([T.FieldSchema("id", "int")], location, form, "out", numBuckets=-1, serdeInfo=T.SerDeInfo(
            serializationLib="lib"))
        return T.Partition(values, "d", "t", sd=sd, parameters={"k": values[0], "x.a": "1"})
    return [part(["a", "1"]), part(["a", "2"]), part(["b", "1"], form="other"), part(["c", "1"], at)]


def plain(value):
    """Return a struct as a map of its set fields, without values that two servers cannot have in common."""
    if hasattr(value, "thrift_spec"):
        fields = {entry[2]: getattr(value, entry[2]) for entry in value.thrift_spec if entry}
        return {name: plain(field) for name, field in fields.items()
                if field is not None and name not in {"dbName", "tableName", "catName", "writeId", "transient_lastDdlTime"}}
    if isinstance(value, dict):
        return {name: field for name, field in value.items() if name in {"k", "x.a"}}
    if isinstance(value, list):
        return [plain(element) for element in value]
    return "<time>" if isinstance(value, int) and value > 10**9 else value


def without(*values, **fields):
    """Return a PartitionWithoutSD for each list of values."""
    return [{"values": value.split(), "createTime": 0, "lastAccessTime": 0, **fields} for value in values]


BARE = {"compressed": False, "numBuckets": 0}
FOUR = [{"createTime": 0, "lastAccessTime": 0}] * 4
PROJECTED = {
    ("values",): [(None, without("a 1", "a 2", "b 1", "c 1"), BARE)],
    ("dbName", "createTime"): [(None, [{"createTime": "<time>", "lastAccessTime": 0}] * 4, BARE)],
    ("sd.cols.name",): [(None, FOUR, {**BARE, "cols": [{"name": "id"}]})],
    ("sd.cols",): [(None, FOUR, {**BARE, "cols": [{"name": "id", "type": "int"}]})],
    ("sd.serdeInfo",): [(None, FOUR, {**BARE, "serdeInfo": {"serializationLib": "lib"}})],
    ("sd.skewedInfo", "sd.bucketCols", "sd.sortCols", "sd.parameters"): [(None, FOUR, BARE)],
    ("sd.inputFormat",): [(None, FOUR[:3], {**BARE, "inputFormat": "in"}), (None, FOUR[:1], {**BARE, "inputFormat": "other"})],
    ("parameters",): [(None, [{**FOUR[0], "parameters": {"k": value, "x.a": "1"}} for value in "aabc"], BARE)],
}


@pytest.fixture
def four(d):
    d.create("t", keys="p:string q:int")
    d.add_partitions(spec_parts("t", at=f"file:{d.warehouse}/outside"))
    return d


def specs(d, fields=(), mode=None, filters=None, **patterns):
    return d.get_partitions_with_specs(T.GetPartitionsRequest(
        dbName="d", tblName="t", projectionSpec=T.GetProjectionsSpec(list(fields), **patterns),
        filterSpec=T.GetPartitionsFilterSpec(mode, filters))).partitionSpec


@pytest.mark.parametrize("fields", PROJECTED)
def test_partitions_are_projected_and_grouped_by_their_descriptor(four, fields):
    """Asked: 4.0.1. It gives no order to the groups; what is not projected is absent, numbers are 0."""
    answers = [(spec.rootPath, plain(spec.sharedSDPartitionSpec.partitions), plain(spec.sharedSDPartitionSpec.sd))
               for spec in specs(four, fields)]
    assert answers == PROJECTED[fields]


@pytest.mark.parametrize("fields", [(), ("values", "sd.location", "sd.inputFormat")])
def test_partitions_that_share_a_descriptor_are_apart_from_those_outside_of_the_table(four, fields):
    """Asked: 4.0.1."""
    root = four.get_table("d", "t").sd.location
    first, second, outside = specs(four, fields)
    for spec, paths, form in ((first, ["/p=a/q=1", "/p=a/q=2"], "in"), (second, ["/p=b/q=1"], "other")):
        shared = spec.sharedSDPartitionSpec
        assert (spec.rootPath, shared.sd.location, shared.sd.inputFormat, spec.partitionList) == (root, root, form, None)
        assert [one.relativePath for one in shared.partitions] == paths
    assert (outside.rootPath, outside.sharedSDPartitionSpec) == (None, None)
    assert [(one.values, one.sd.location) for one in outside.partitionList.partitions] == [
        (["c", "1"], f"file:{four.warehouse}/outside")]


def test_a_table_asks_for_the_groups_in_older_calls(four):
    """Asked: 4.0.1, which takes a parameter of HCatalog for it; otherwise there is one list."""
    calls = (lambda: four.get_partitions_pspec("d", "t", -1), lambda: four.get_part_specs_by_filter("d", "t", "", -1),
             lambda: four.get_partitions_spec_by_expr(T.PartitionsByExprRequest("d", "t", b"")).partitionsSpec)
    for call in calls:
        assert [len(spec.partitionList.partitions) for spec in call()] == [4]
    table = four.get_table("d", "t")
    table.parameters["hive.hcatalog.partition.spec.grouping.enabled"] = "TRUE"
    four.alter_table("d", "t", table)
    for call in calls:
        assert call() == specs(four)


@pytest.mark.parametrize("field", ["sd", "privileges", "foo", "sd.foo"])
def test_fields_that_a_projection_cannot_name(four, field):
    """Asked: 4.0.1."""
    with pytest.raises(T.MetaException):
        specs(four, [field])


@pytest.mark.parametrize(("patterns", "keys"), [
    ({"includeParamKeyPattern": "k%"}, {"k"}), ({"excludeParamKeyPattern": "k%"}, {"x.a", "transient_lastDdlTime"}),
    ({"includeParamKeyPattern": "%", "excludeParamKeyPattern": "k%"}, {"x.a", "transient_lastDdlTime"}),
    ({"includeParamKeyPattern": "zz%"}, None)])
def test_patterns_of_parameters(four, patterns, keys):
    """Asked: 4.0.1."""
    [spec] = specs(four, ["parameters"], **patterns)
    assert [one.parameters and set(one.parameters) for one in spec.sharedSDPartitionSpec.partitions] == [keys] * 4


def test_partitions_with_the_privileges_of_a_user_to_whom_nothing_is_granted(four):
    """Asked: 4.0.1 and 2.3.10, with names of a user and groups and without."""
    for user, groups in (("ann", ["g"]), (None, None)):
        assert four.get_partition_with_auth("d", "t", ["a", "1"], user, groups).privileges is None
        assert [one.privileges for one in four.get_partitions_with_auth("d", "t", -1, user, groups)] == [None] * 4


def test_a_line_of_get_table_meta_names_the_owner(d):
    """Asked: 4.0.1."""
    d.create("t", owner="ann", ownerType=T.PrincipalType.ROLE)
    d.create("u", owner="bob")
    lines = d.get_table_meta("*", "*", [])
    assert [(line.dbName, line.tableName, line.ownerName, line.ownerType) for line in lines] == [
        ("d", "t", "ann", T.PrincipalType.ROLE), ("d", "u", "bob", T.PrincipalType.USER)]


def test_lists_of_tables_without_a_type_or_a_database(d):
    """Asked: 4.0.1 and 2.3.10, which agree on the type."""
    d.create("t")
    with pytest.raises(T.MetaException):
        d.get_tables_by_type("d", "*", None)
    with pytest.raises(T.UnknownDBException):
        d.get_table_objects_by_name_req(T.GetTablesRequest(dbName="missing", tablesPattern="*"))
    assert d.get_table_objects_by_name_req(T.GetTablesRequest(dbName="d", tablesPattern="x*")).tables == []


# Defaults


def absent(struct):
    """Names of the fields that an encoded struct does not have."""
    sent = TBinaryProtocolFactory().getProtocol(TMemoryBuffer(encode_binary(struct, [type(struct), struct.thrift_spec])))
    sent.readStructBegin()
    there = set()
    while (field := sent.readFieldBegin())[1]:
        there.add(field[2])
        sent.skip(field[1])
    return {entry[2] for entry in struct.thrift_spec if entry and entry[0] not in there}


def test_what_the_client_did_not_send_is_not_made_up(d):
    """Asked: 4.0.1, and 2.3.10 but for the write id, which it does not have."""
    d.create_table(d.table(temporary=None, keys="p:string"))
    wanted = T.GetTableRequest(dbName="d", tblName="t")
    for answer in (d.get_table("d", "t"), d.get_table_req(wanted).table, d.get_table_objects_by_name("d", ["t"])[0]):
        assert answer.writeId == 0
    raw = table_to_thrift(TableReads(d.moves.db).get_table(TableName("hive", "d", "t")))
    assert "temporary" in absent(raw)
    assert d.get_table_objects_by_name("d", ["t"]) == [d.get_table("d", "t")]


def test_an_exchange_answers_nothing_but_times(d):
    """Asked: 4.0.1 and 2.3.10."""
    answer = PartitionExchangeHandlers(Exchanging()).exchange_partition(Call("", (), None), {"p": "1"}, "d", "t", "d", "u")
    assert absent(answer) == {entry[2] for entry in T.Partition.thrift_spec if entry} - {"createTime", "lastAccessTime"}


class Exchanging:
    """A service that exchanges nothing."""

    @staticmethod
    def exchange_partitions(*_):
        return []


def test_columns_of_a_partition_that_are_null_stay_so(d):
    """Asked: 4.0.1 and 2.3.10. A table without a list of columns is refused by both."""
    d.create("t", keys="p:string")
    for value, columns in (("1", None), ("2", [])):
        new = part("d", "t", value)
        new.sd.cols, new.sd.location = columns, None
        d.add_partition(new)
    assert d.get_partition("d", "t", ["1"]).sd.cols is None
    assert [one.sd.cols for one in d.get_partitions("d", "t", -1)] == [None, []]
    table = d.table("u")
    table.sd.cols = None
    with pytest.raises(T.MetaException):
        d.create_table(table)
    table = d.get_table("d", "t")
    table.sd.cols.append(T.FieldSchema("new", "int"))
    d.alter_table_with_cascade("d", "t", table, True)
    assert {len(one.sd.cols) for one in d.get_partitions("d", "t", -1)} == {3}


def test_a_view_keeps_its_location_and_has_no_directory(d, tmp_path):
    """Asked: 4.0.1 and 2.3.10."""
    location = f"file:{tmp_path}/wh/view"
    d.create("v", tableType="VIRTUAL_VIEW", viewOriginalText="q", viewExpandedText="q", sd={"location": location})
    assert d.get_table("d", "v").sd.location == location
    assert not d.path(location).exists()
    d.create("t", sd={"location": location})
    d.drop_table("d", "v", True)
    assert d.path(location).exists()


@pytest.mark.parametrize("created", [None, 0, 55])
def test_a_renamed_partition_has_the_times_that_the_client_sends(d, created):
    """Asked: 4.0.1 and 2.3.10."""
    d.create("t", keys="p:string")
    d.add("1")
    new = d.get_partition("d", "t", ["1"])
    new.values, new.createTime, new.lastAccessTime = ["2"], created, 9
    d.rename_partition("d", "t", ["1"], new)
    renamed = d.get_partition("d", "t", ["2"])
    assert (renamed.createTime, renamed.lastAccessTime) == (created or 0, 9)


@pytest.mark.parametrize(("location", "error"), [
    ("/", T.InvalidObjectException), ("file:/", T.InvalidObjectException), ("file:///", T.InvalidObjectException),
    ("relative/place", T.MetaException), ("file:relative/place", T.MetaException), (" ", T.MetaException)])
def test_locations_that_are_relative_or_a_root(d, location, error):
    """Asked: 4.0.1; 2.3.10 takes a root."""
    with pytest.raises(error):
        d.create("t", sd={"location": location})
    d.create("t", keys="p:string")
    table, partition = d.get_table("d", "t"), part("d", "t")
    table.sd.location = partition.sd.location = location
    if error is T.MetaException:  # 4.0.1 and 2.3.10 answer an alteration by a TApplicationException, which nobody declares.
        for change in (lambda: d.add_partition(partition), lambda: d.alter_table("d", "t", table),
                       lambda: d.create_database(T.Database(name="e", locationUri=location))):
            with pytest.raises(T.MetaException):
                change()


def test_a_second_primary_key(d):
    """Asked: 4.0.1 and 2.3.10."""
    d.create("t")
    key = [T.SQLPrimaryKey("d", "t", "id", 1, "a", False, False, False, "hive")]
    d.add_primary_key(T.AddPrimaryKeyRequest(key))
    with pytest.raises(T.MetaException, match="Primary key already exists for: hive.d.t"):
        d.add_primary_key(T.AddPrimaryKeyRequest(key))


def test_a_table_comes_with_the_statistics_of_its_columns(d):
    """Asked: 4.0.1, with a snapshot and without, for its own engine and for another."""
    d.create("t")
    data = T.ColumnStatisticsData(longStats=T.LongColumnStatsData(numNulls=1, numDVs=2, lowValue=1, highValue=9))
    own = [T.ColumnStatisticsObj("id", "int", data)]
    wanted = T.GetTableRequest(dbName="d", tblName="t", getColumnStats=True)
    assert d.get_table_req(wanted).table.colStats is None
    d.update_table_column_statistics(T.ColumnStatistics(T.ColumnStatisticsDesc(True, "d", "t"), own))
    found = d.get_table_req(wanted).table.colStats
    assert (found.statsDesc.isTblLevel, found.statsDesc.dbName, found.statsDesc.tableName, found.statsDesc.catName,
            found.statsDesc.partName, found.statsObj, found.engine, found.isStatsCompliant) == (
        True, "d", "t", "hive", None, own, "hive", None)
    assert found.statsDesc.lastAnalyzed > 0
    for fields in ({"getColumnStats": False}, {"getColumnStats": True, "engine": "impala"}):
        assert d.get_table_req(T.GetTableRequest(dbName="d", tblName="t", **fields)).table.colStats is None


# Names

ODD = ["my-db", "my.db", "my db", "my$db", "my@db", "-", ".", "a/b", "a- .$@b"]


@pytest.mark.parametrize("name", [*ODD, "my:db", "@a"])
def test_a_table_with_an_odd_name_is_found_by_each_call(d, name):
    """Asked: 4.0.1. Its directory has the code of each odd sign."""
    table = d.create(name, keys="p:string")
    directory = "".join(sign if sign.isalnum() or sign == "_" else f"-{ord(sign)}-" for sign in name)
    assert d.path(table.sd.location).name == directory
    d.append_partition("d", name, ["1"])
    d.append_partition("d", name, [name])
    assert d.get_partition("d", name, [name]).values == [name]
    assert len(d.get_partitions_by_filter("d", name, f'p = "{name}"', -1)) == 1
    assert d.get_all_tables("d") == d.get_tables("d", name) == [name]
    assert [one.tableName for one in d.get_table_meta("d", "*", [])] == [name]
    assert [field.name for field in d.get_schema("d", name)] == ["id", "name", "p"]
    key = T.SQLPrimaryKey("d", name, "id", 1, None, False, False, False, "hive")
    d.add_primary_key(T.AddPrimaryKeyRequest([key]))
    assert len(d.get_primary_keys(T.PrimaryKeysRequest("d", name)).primaryKeys) == 1
    table = d.get_table("d", name)
    table.tableName = "renamed"
    d.alter_table("d", name, table)
    table.tableName = name
    d.alter_table("d", "renamed", table)
    assert d.get_partition_names("d", name, -1) == sorted(["p=1", f"p={escape(name)}"])
    d.drop_table("d", name, True)
    assert d.get_all_tables("d") == []
    assert not d.path(table.sd.location).exists()


@pytest.mark.parametrize("name", ODD)
def test_a_database_with_an_odd_name_is_found_by_each_call(hive, name):
    """Asked: 4.0.1."""
    database = hive.database(name)
    assert database.name == name
    assert hive.path(database.locationUri) == hive.warehouse / f"{name}.db"
    table = hive.create("t", db=name, keys="p:string")
    hive.append_partition(f"@hive#{name}", "t", ["1"])
    assert hive.get_partition_names(name, "t", -1) == ["p=1"]
    assert hive.get_databases(name) == [name]
    assert [one.dbName for one in hive.get_table_meta(name, "*", [])] == [name]
    assert hive.path(table.sd.location).parent == hive.warehouse / f"{name}.db"
    hive.drop_database(name, True, True)
    assert hive.get_all_databases() == ["default"]
    assert not hive.path(database.locationUri).exists()


@pytest.mark.parametrize("name", ["../up", "a/../../b", "@a", "my:db", "a\\b", ""])
def test_names_of_databases_that_lead_elsewhere(hive, name):
    """Asked: 4.0.1 for the last four; it takes the first two, and leaves its warehouse."""
    with pytest.raises((T.InvalidObjectException, T.MetaException)):
        hive.database(name)


@pytest.mark.parametrize(("db", "table"), [("d", "a.b"), ("d", "a:b"), ("my.db", "t")])
def test_no_transactional_table_has_a_name_that_parts_others(d, db, table):
    """Lists of write ids are ``db.table:...``; 4.0.1 takes such a table, and reads its list as another's."""
    if db != "d":
        d.database(db)
    parameters = {"transactional": "true", "transactional_properties": "insert_only"}
    with pytest.raises(T.MetaException, match="cannot be transactional"):
        d.create(table, db=db, parameters=parameters, sd=ORC)
    plain = d.create(table, db=db, sd=ORC)
    plain.parameters |= parameters
    with pytest.raises(T.MetaException, match="cannot be transactional"):
        d.alter_table(db, table, plain)
    d.create("a-b$ @c", parameters=parameters, sd=ORC)
