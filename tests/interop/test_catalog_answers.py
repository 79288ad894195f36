"""The same catalog calls to Hive's own metastore 2.3.10 and to ours: answers must be equal, field by field.

Every step runs on both, in order, each on its own state. A step whose answers differ must be in ``DIFFERENT`` with the
reason; a reason that no longer holds fails too.
"""


import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.support.hive_metastore import HiveMetastore

# Not in 2.3, or set by a clock or a counter, or optional quick statistics of a directory.
LATER = {"catName", "catalogName", "ownerType", "writeId", "id", "type", "accessType", "isStatsCompliant"}
TIMES = {"createTime", "transient_lastDdlTime", "lastAccessTime", "lastAnalyzed"}
QUICK_STATISTICS = {"numFiles", "totalSize", "numRows", "rawDataSize", "COLUMN_STATS_ACCURATE"}
DIFFERENT = {
    "default db": "as 4.x: the time of creation is kept",
    "get db": "as 4.x: time of creation and owner are set by the server",
    "db regex pattern": "as 4.x: .* is any run; 2.3 takes it for one character and a run",
    "create with uneven skew": "as 4.x: 2.3 stores values that fit no list of columns",
    "get foreign key by parent": "as 4.x: 2.3 fails without the name of the other table",
    "foreign key to no table": "as 4.0.1: a declared exception",
    "add partition": "2.3 echoes the request; ours is what get_partition answers",
}


class Sender:
    """One metastore and its warehouse."""

    def __init__(self, client, warehouse):
        self.client, self.warehouse = client, str(warehouse)

    def answer(self, step):
        """Return a step's result or error as plain data, without what differs between any two metastores."""
        try:
            return self._plain(step(self))
        except TApplicationException:
            return "TApplicationException"
        except Exception as error:  # noqa: BLE001 - the kind of error is the answer
            return type(error).__name__

    def _plain(self, value):
        if hasattr(value, "thrift_spec"):
            fields = {entry[2]: getattr(value, entry[2]) for entry in value.thrift_spec if entry}
            return {type(value).__name__: self._plain({name: field for name, field in fields.items()
                                                       if name not in LATER or type(value).__name__ == "FieldSchema"})}
        if isinstance(value, dict):
            return {str(key): ("<time>" if key in TIMES and item not in (None, 0) else self._plain(item))
                    for key, item in sorted(value.items(), key=str)
                    if item is not None and key not in QUICK_STATISTICS}
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        return value.replace(self.warehouse, "<warehouse>") if isinstance(value, str) else value

    def __getattr__(self, method):
        return getattr(self.client, method)


def sd(*columns, **fields):
    fields.setdefault("serdeInfo", T.SerDeInfo(name=None, serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={"a": "b"}))
    return T.StorageDescriptor(cols=[T.FieldSchema(*column.split(":")) for column in columns or ("a:int", "B:string")], **fields)


def table(name="t", db="d", keys=(), descriptor=None, **fields):
    return T.Table(tableName=name, dbName=db, sd=descriptor or sd(), partitionKeys=[T.FieldSchema(*key.split(":")) for key in keys],
                   **{"parameters": {}, "tableType": "MANAGED_TABLE", **fields})


def changed(h, change, name="t", db="d", context=None):
    """Read, change, alter, read again."""
    found = h.get_table(db, name)
    change(found)
    h.alter_table_with_environment_context(db, name, found, T.EnvironmentContext(context))
    return h.get_table(found.dbName, found.tableName)


def put(**fields):
    def change(found):
        for name, value in fields.items():
            owner = found.sd if name in found.sd.__slots__ and name != "parameters" else found
            setattr(owner, name, value)
    return change


def function(name="f", db="d", **fields):
    return T.Function(**{"functionName": name, "dbName": db, "className": "a.F", "ownerName": "o", "ownerType": 1,
                         "functionType": 1, "resourceUris": [T.ResourceUri(1, "file:/x.jar")], **fields})


def part(*values, name="p", **fields):
    return T.Partition(values=list(values), dbName="d", tableName=name, sd=sd(), parameters={}, **fields)


def key(name, column, seq, constraint):
    return T.SQLPrimaryKey("d", name, column, seq, constraint, enable_cstr=False, validate_cstr=True, rely_cstr=True)


def foreign(column, referenced, seq, parent="k1"):
    return T.SQLForeignKey("d", parent, referenced, "d", "k2", column, seq, 1, 2, "fk1", "pk1", True, False, True)


def statistics(column="a", name="t", low=1):
    return T.ColumnStatistics(T.ColumnStatisticsDesc(True, "d", name), [T.ColumnStatisticsObj(
        column, "int", T.ColumnStatisticsData(longStats=T.LongColumnStatsData(low, 9, 1, 2)))])


EXTERNAL = {"EXTERNAL": "TRUE"}
CONTEXT = {"expected_parameter_key": "metadata_location", "expected_parameter_value": "loc1"}

STEPS = {
    "default db": lambda h: h.get_database("default"),
    "create db": lambda h: h.create_database(T.Database(name="D", description="x", parameters={"K": "v"})),
    "get db": lambda h: h.get_database("D"),
    "create db again": lambda h: h.create_database(T.Database(name="d")),
    "create db with odd name": lambda h: h.create_database(T.Database(name="a\\b")),
    "create db without name": lambda h: h.create_database(T.Database(name=None)),
    "create db with empty name": lambda h: h.create_database(T.Database(name="")),
    "get missing db": lambda h: h.get_database("nope"),
    "db names": lambda h: h.get_all_databases(),
    "db pattern": lambda h: h.get_databases("D*|x"),
    "db null pattern": lambda h: h.get_databases(None),
    "db empty pattern": lambda h: h.get_databases(""),
    "db regex pattern": lambda h: h.get_databases("d.*"),
    "create minimal": lambda h: h.create_table(T.Table(tableName="Min", dbName="d", sd=T.StorageDescriptor(
        cols=[T.FieldSchema("A", "int")], serdeInfo=T.SerDeInfo()))),
    "get minimal": lambda h: h.get_table("D", "MIN"),
    "create": lambda h: h.create_table(table(keys=("K:string",), owner="bob", retention=5, parameters={"Comment": "c"})),
    "get": lambda h: h.get_table("d", "t"),
    "get req": lambda h: h.get_table_req(T.GetTableRequest("d", "T")),
    "create again": lambda h: h.create_table(table()),
    "create full": lambda h: h.create_table(table("full", keys=("p:date:said",), descriptor=sd(
        "x:decimal(10,2):c", "y:array<foo>", inputFormat="in", outputFormat="out", compressed=True, numBuckets=3,
        bucketCols=["x"], sortCols=[T.Order("y", 1)], parameters={"q": "r"},
        skewedInfo=T.SkewedInfo(["x"], [["1"]], {("1",): "/l"}), storedAsSubDirectories=True))),
    "get full": lambda h: h.get_table("d", "full"),
    "create external": lambda h: h.create_table(table("e", tableType="EXTERNAL_TABLE", parameters=EXTERNAL, descriptor=sd(
        location=f"file://{h.warehouse}/ext//dir/"))),
    "get external": lambda h: h.get_table("d", "e"),
    "create external by parameter": lambda h: (h.create_table(table("e2", parameters=EXTERNAL)), h.get_table("d", "e2"))[1],
    "create external by type": lambda h: (h.create_table(table("e3", tableType="EXTERNAL_TABLE")), h.get_table("d", "e3"))[1],
    "create view": lambda h: h.create_table(table("v", tableType="VIRTUAL_VIEW", viewOriginalText="o", viewExpandedText="e")),
    "get view": lambda h: h.get_table("d", "v"),
    "create without db": lambda h: h.create_table(table(db=None)),
    "create without name": lambda h: h.create_table(table(None)),
    "create with empty name": lambda h: h.create_table(table("")),
    "create with odd name": lambda h: h.create_table(table("a\\b")),
    "create without sd": lambda h: h.create_table(T.Table(tableName="x", dbName="d")),
    "create without columns": lambda h: h.create_table(table("x", descriptor=T.StorageDescriptor(serdeInfo=T.SerDeInfo()))),
    "create with no columns": lambda h: (h.create_table(table("x", descriptor=T.StorageDescriptor(
        cols=[], serdeInfo=T.SerDeInfo()))), h.get_table("d", "x").sd)[1],
    "create without serde": lambda h: h.create_table(table("z", descriptor=T.StorageDescriptor(cols=[]))),
    "create with unknown type": lambda h: h.create_table(table("y", descriptor=sd("a:xyz"))),
    "create with upper type": lambda h: h.create_table(table("y", descriptor=sd("a:INT"))),
    "create without type": lambda h: h.create_table(table("y", descriptor=T.StorageDescriptor(
        cols=[T.FieldSchema("a", None)], serdeInfo=T.SerDeInfo()))),
    "create with unknown key type": lambda h: h.create_table(table("y", keys=("p:xyz",))),
    "create in missing db": lambda h: h.create_table(table(db="nope")),
    "create with skew of unknown column": lambda h: h.create_table(table("y", descriptor=sd(skewedInfo=T.SkewedInfo(["z"], [], {})))),
    "create with uneven skew": lambda h: (h.create_table(table("y", descriptor=sd(
        skewedInfo=T.SkewedInfo(["a"], [["1", "2"]], {})))), h.drop_table("d", "y", True))[1],
    "get missing": lambda h: h.get_table("d", "nope"),
    "get in missing db": lambda h: h.get_table("nope", "t"),
    "all tables": lambda h: h.get_all_tables("D"),
    "all tables of missing db": lambda h: h.get_all_tables("nope"),
    "tables": lambda h: h.get_tables("d", "E*|t"),
    "tables by null": lambda h: h.get_tables("d", None),
    "tables by empty": lambda h: h.get_tables("d", ""),
    "tables by dot": lambda h: h.get_tables("d", "e."),
    "tables by percent": lambda h: h.get_tables("d", "e%"),
    "tables by regex": lambda h: h.get_tables("d", ".*"),
    "views": lambda h: h.get_tables_by_type("d", "*", "VIRTUAL_VIEW"),
    "meta": lambda h: sorted((meta.dbName, meta.tableName, meta.tableType) for meta in h.get_table_meta("d", "t|e*|v", [])),
    "meta by types": lambda h: [meta.tableName for meta in h.get_table_meta("*", "*", ["VIRTUAL_VIEW", "EXTERNAL_TABLE"])],
    "objects": lambda h: sorted(found.tableName for found in h.get_table_objects_by_name("d", ["T", "nope", "e", "e"])),
    "objects of none": lambda h: h.get_table_objects_by_name("d", []),
    "filter owner": lambda h: h.get_table_names_by_filter("d", 'hive_filter_field_owner__ = "bob"', -1),
    "filter owner like": lambda h: h.get_table_names_by_filter("d", 'hive_filter_field_owner__ like "b.*"', -1),
    "filter params": lambda h: h.get_table_names_by_filter("d", 'hive_filter_field_params__Comment = "c"', -1),
    "filter wrong": lambda h: h.get_table_names_by_filter("d", "invalid filter", -1),
    "filter key": lambda h: h.get_table_names_by_filter("d", 'nope = "x"', -1),
    "filter null": lambda h: h.get_table_names_by_filter("d", None, -1),
    "filter null db": lambda h: h.get_table_names_by_filter(None, 'hive_filter_field_owner__ = "bob"', -1),
    "fields": lambda h: h.get_fields("d", "t"),
    "schema": lambda h: h.get_schema_with_environment_context("d", "t", T.EnvironmentContext()),
    "fields of missing": lambda h: h.get_fields("d", "nope"),
    "alter parameters": lambda h: changed(h, put(parameters={"Comment": "new", "metadata_location": "loc1"}, owner="eve", retention=6)),
    "alter columns": lambda h: changed(h, put(cols=[T.FieldSchema("A", "bigint"), T.FieldSchema("c", "string", "x")])),
    "alter to narrower": lambda h: changed(h, put(cols=[T.FieldSchema("a", "int")])),
    "alter string to int": lambda h: changed(h, put(cols=[T.FieldSchema("a", "bigint"), T.FieldSchema("c", "int")])),
    "alter to no columns": lambda h: changed(h, put(cols=[])).sd,
    "alter back": lambda h: changed(h, put(cols=[T.FieldSchema("a", "bigint"), T.FieldSchema("c", "string")])),
    "alter keys": lambda h: changed(h, put(partitionKeys=[T.FieldSchema("z", "string")])),
    "alter key count": lambda h: changed(h, put(partitionKeys=[])),
    "alter key type": lambda h: changed(h, put(partitionKeys=[T.FieldSchema("k", "int")])).partitionKeys,
    "alter unknown": lambda h: h.alter_table("d", "nope", table("nope")),
    "alter to odd name": lambda h: changed(h, put(tableName="a\\b")),
    "alter to taken name": lambda h: changed(h, put(tableName="e")),
    "alter to missing db": lambda h: changed(h, put(dbName="nope")),
    "alter to unknown type": lambda h: changed(h, put(cols=[T.FieldSchema("a", "xyz")])),
    "alter without sd": lambda h: changed(h, put(sd=None)),
    "compare and set": lambda h: changed(h, put(parameters={"metadata_location": "loc2"}), context=CONTEXT).parameters,
    "compare and set again": lambda h: changed(h, put(parameters={"metadata_location": "loc3"}), context=CONTEXT),
    "compare and set without new value": lambda h: changed(h, put(parameters={}), context=CONTEXT),
    "rename": lambda h: changed(h, put(tableName="T2")),
    "rename back": lambda h: changed(h, put(tableName="t"), "t2").sd.location,
    "rename external": lambda h: changed(h, put(tableName="e9"), "e").sd.location,
    "managed to external": lambda h: changed(h, put(parameters=EXTERNAL, tableType="EXTERNAL_TABLE"), "min").tableType,
    "external to managed": lambda h: changed(h, put(parameters={"EXTERNAL": "FALSE"}), "min").tableType,
    "statistics": lambda h: h.update_table_column_statistics(statistics(name="min", column="A")),
    "get statistics": lambda h: h.get_table_statistics_req(T.TableStatsRequest("d", "min", ["a", "nope"])),
    "get one of statistics": lambda h: h.get_table_column_statistics("d", "min", "a").statsObj,
    "get no statistics": lambda h: h.get_table_column_statistics("d", "full", "x"),
    "statistics of unknown column": lambda h: h.update_table_column_statistics(statistics(name="min", column="zz")),
    "statistics of unknown table": lambda h: h.update_table_column_statistics(statistics(name="nope")),
    "statistics req of unknown table": lambda h: h.get_table_statistics_req(T.TableStatsRequest("d", "nope", ["a"])),
    "delete statistics": lambda h: h.delete_table_column_statistics("d", "min", "a", None),
    "delete no statistics": lambda h: h.delete_table_column_statistics("d", "min", "a", None),
    "create parted": lambda h: h.create_table(table("p", keys=("y:string", "m:int"))),
    "add partition": lambda h: h.add_partition(part("a b/c", "1")),
    "add partitions": lambda h: h.add_partitions([part("x", "2"), part("", "3"), part("é=:", "4")]),
    "add again": lambda h: h.add_partition(part("x", "2")),
    "add too few": lambda h: h.add_partition(part("x")),
    "partition names": lambda h: h.get_partition_names("d", "p", -1),
    "partitions": lambda h: h.get_partitions("d", "p", -1),
    "partition": lambda h: h.get_partition("d", "p", ["x", "2"]),
    "partition by name": lambda h: h.get_partition_by_name("d", "p", "y=x/m=2"),
    "missing partition": lambda h: h.get_partition("d", "p", ["x", "9"]),
    "cascade": lambda h: (changed(h, put(cols=[T.FieldSchema("a", "int"), T.FieldSchema("b", "string"), T.FieldSchema("n", "int")]),
                                  "p", context={"CASCADE": "true"}), h.get_partitions("d", "p", -1))[1],
    "rename parted": lambda h: (changed(h, put(tableName="p2"), "p"), [found.sd.location for found in h.get_partitions("d", "p2", -1)])[1],
    "create for constraints": lambda h: [h.create_table(table(name, descriptor=sd("a:int", "b:string", "c:int"))) for name in ("k1", "k2", "k3")],
    "primary key": lambda h: h.add_primary_key(T.AddPrimaryKeyRequest([key("k1", "B", 1, "pk1"), key("k1", "a", 2, "pk1")])),
    "get primary key": lambda h: h.get_primary_keys(T.PrimaryKeysRequest("d", "k1")),
    "second primary key": lambda h: h.add_primary_key(T.AddPrimaryKeyRequest([key("k1", "c", 1, "pk9")])),
    "primary key without name": lambda h: (h.add_primary_key(T.AddPrimaryKeyRequest([key("k3", "a", 1, None)])),
                                           [one.column_name for one in h.get_primary_keys(T.PrimaryKeysRequest("d", "k3")).primaryKeys])[1],
    "primary key of missing table": lambda h: h.add_primary_key(T.AddPrimaryKeyRequest([key("nope", "a", 1, "pk3")])),
    "primary key of missing column": lambda h: h.add_primary_key(T.AddPrimaryKeyRequest([key("k2", "nope", 1, "pk3")])),
    "primary keys of missing table": lambda h: h.get_primary_keys(T.PrimaryKeysRequest("d", "nope")),
    "foreign key": lambda h: h.add_foreign_key(T.AddForeignKeyRequest([foreign("b", "B", 1), foreign("c", "a", 2)])),
    "get foreign key": lambda h: h.get_foreign_keys(T.ForeignKeysRequest("d", "k1", "d", "k2")),
    "get foreign key by child": lambda h: h.get_foreign_keys(T.ForeignKeysRequest(None, None, "d", "k2")),
    "get foreign key by parent": lambda h: h.get_foreign_keys(T.ForeignKeysRequest("d", "k1", None, None)),
    "get foreign key of nothing": lambda h: h.get_foreign_keys(T.ForeignKeysRequest("d", "k2", "d", "k1")),
    "get foreign key without names": lambda h: h.get_foreign_keys(T.ForeignKeysRequest(None, None, None, None)),
    "foreign key to no table": lambda h: h.add_foreign_key(T.AddForeignKeyRequest([foreign("b", "a", 1, parent="nope")])),
    "rename keyed": lambda h: (changed(h, put(tableName="k9"), "k1"), h.get_primary_keys(T.PrimaryKeysRequest("d", "k9")))[1],
    "drop missing constraint": lambda h: h.drop_constraint(T.DropConstraintRequest("d", "k9", "nope")),
    "drop constraint of missing table": lambda h: h.drop_constraint(T.DropConstraintRequest("d", "nope", "pk1")),
    "drop keyed parent": lambda h: h.drop_table("d", "k9", True),
    "foreign keys without parent": lambda h: h.get_foreign_keys(T.ForeignKeysRequest(None, None, "d", "k2")),
    "create with keys": lambda h: h.create_table_with_constraints(
        table("k4", descriptor=sd("a:int", "b:string")), [key("k4", "a", 1, "pk4")], [], [], [], [], []),
    "get created key": lambda h: h.get_primary_keys(T.PrimaryKeysRequest("d", "k4")),
    "drop constraint": lambda h: h.drop_constraint(T.DropConstraintRequest("d", "k4", "pk4")),
    "get dropped key": lambda h: h.get_primary_keys(T.PrimaryKeysRequest("d", "k4")),
    "drop missing": lambda h: h.drop_table("d", "nope", True),
    "drop": lambda h: h.drop_table_with_environment_context("d", "P2", True, T.EnvironmentContext({"ifPurge": "TRUE"})),
    "get dropped": lambda h: h.get_table("d", "p2"),
    "create function": lambda h: h.create_function(function("fn")),
    "get function": lambda h: h.get_function("d", "Fn"),
    "functions": lambda h: h.get_functions("d", "f*"),
    "functions of missing db": lambda h: h.get_functions("nope", "*"),
    "missing function": lambda h: h.get_function("d", "nope"),
    "function without class": lambda h: h.create_function(function("g", className=None)),
    "function with odd name": lambda h: h.create_function(function("a-b")),
    "function in missing db": lambda h: h.create_function(function("g", db="nope")),
    "alter function": lambda h: (h.alter_function("d", "fn", function("g", className="c.G")), h.get_function("d", "g"))[1],
    "all functions": lambda h: [found.functionName for found in h.get_all_functions().functions or []],
    "create other db": lambda h: h.create_database(T.Database(name="q")),
    "move to other db": lambda h: changed(h, put(dbName="q", tableName="moved")),
    "drop db in use": lambda h: h.drop_database("q", True, False),
    "get of db in use": lambda h: h.get_table("q", "moved").sd.location,
    "drop function": lambda h: h.drop_function("d", "g"),
    "drop missing function": lambda h: h.drop_function("d", "g"),
    "drop default db": lambda h: h.drop_database("default", True, True),
    "drop db": lambda h: h.drop_database("q", True, True),
    "get dropped db": lambda h: h.get_database("q"),
    "dbs at the end": lambda h: h.get_all_databases(),
}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    with HiveMetastore(tmp_path_factory.mktemp("hive")) as hive, MetastoreClient(hive.uri, user="ann") as client:
        yield Sender(client, hive.warehouse)


@pytest.fixture
def ours(hive):
    return Sender(hive.client, hive.warehouse)


@pytest.mark.timeout(600)
def test_answers_are_equal(theirs, ours):
    differing = {}
    for name, step in STEPS.items():
        hive, mine = theirs.answer(step), ours.answer(step)
        if hive != mine:
            differing[name] = f"\n  hive: {hive}\n  ours: {mine}"
    unexpected = {name: text for name, text in differing.items() if name not in DIFFERENT}
    assert not unexpected, "".join(f"\n{name}:{text}" for name, text in unexpected.items())
    assert set(DIFFERENT) == set(differing), "these are equal by now"
