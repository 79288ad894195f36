"""Generator of calls: for each method a call that reaches real work, and what can be done to its fields.

Texts stand for what differs between scenes: ``{d}`` is the scene's database, ``{D}`` the same in upper case. ``{"$id": "txn"}``
is an id that the asked server has given before.
"""

import copy
import json
import random
from pathlib import Path

from tests.differential.codec import FACTS, fields_of, kind_of

SERDE = {"name": "s", "serializationLib": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", "parameters": {"a": "b"}}
COLUMNS = [{"name": "id", "type": "int", "comment": "c"}, {"name": "name", "type": "string"}]
TEXT = {"inputFormat": "org.apache.hadoop.mapred.TextInputFormat", "outputFormat": "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"}
ORC = {"inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"}
SD = {"cols": COLUMNS, **TEXT, "compressed": False, "numBuckets": -1, "serdeInfo": SERDE, "bucketCols": [], "sortCols": [], "parameters": {}}
KEYS = [{"name": "p", "type": "string"}, {"name": "q", "type": "int"}]
FLAGS = {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}
ON_U = {"catName": "hive", "table_db": "{d}", "table_name": "u", **FLAGS}
TXN, WRITE_ID, LOCK, COMPACTION = ({"$id": name} for name in ("txn", "write_id", "lock", "compaction"))
LONGS = {"longStats": {"lowValue": 1, "highValue": 9, "numNulls": 1, "numDVs": 5}}
CLIENT = ["HIVEMANAGEDINSERTWRITE", "HIVEFULLACIDWRITE", "HIVEFULLACIDREAD", "HIVEMANAGEDINSERTREAD", "EXTREAD", "EXTWRITE"]


def table(name="n", *, keys=(), parameters=None, sd=None, kind="MANAGED_TABLE", db="{d}", **more):
    return {"tableName": name, "dbName": db, "owner": "ann", "sd": {**SD, **(sd or {})}, "partitionKeys": list(keys),
            "parameters": parameters or {}, "tableType": kind, **more}


def partition(*values, **more):
    return {"values": list(values), "dbName": "{d}", "tableName": "t", "sd": SD, "parameters": {"k": "v"}, **more}


def column_statistics(table="u", part=None):
    described = {"isTblLevel": part is None, "dbName": "{d}", "tableName": table, **({"partName": part} if part else {})}
    return {"statsDesc": described, "statsObj": [{"colName": "id", "colType": "int", "statsData": LONGS}], "engine": "hive"}


VECTORS = json.loads((Path(__file__).parents[1] / "unit" / "catalog" / "kryo_vectors.json").read_text())
# Hive's own bytes of a condition on the key ``dt``, which is ``p`` here.
EXPRESSION = bytes.fromhex(next(each["hex"] for each in VECTORS if each["condition"] == "dt = '1'" and each["hive"] != "2.3.10"))
EXPRESSION = EXPRESSION.replace(b"d\xf4", b"\x82p").decode("latin-1")
EXTERNAL = {"EXTERNAL": "TRUE"}
VALUES = {
    # Structs.
    "Table": table(), "Partition": partition("c", "3"), "StorageDescriptor": SD, "SerDeInfo": SERDE, "FieldSchema": COLUMNS[0],
    "ColumnStatistics": column_statistics(), "ColumnStatisticsData": LONGS, "EnvironmentContext": {"properties": {"k": "v"}},
    "Database": {"name": "{d}n", "description": "x", "parameters": {"a": "b"}, "ownerName": "ann", "ownerType": 1},
    "Function": {"functionName": "g", "dbName": "{d}", "className": "a.G", "ownerName": "ann", "ownerType": 1, "functionType": 1,
                 "resourceUris": [{"resourceType": 1, "uri": "file:/x.jar"}]},
    "Catalog": {"name": "{d}k", "description": "x", "locationUri": "file:{warehouse}/{d}k"},
    "SQLPrimaryKey": {**ON_U, "column_name": "id", "key_seq": 1, "pk_name": "pk2"},
    "SQLUniqueConstraint": {**ON_U, "column_name": "name", "key_seq": 1, "uk_name": "uk2"},
    "SQLNotNullConstraint": {**ON_U, "column_name": "name", "nn_name": "nn2"},
    "SQLDefaultConstraint": {**ON_U, "column_name": "name", "default_value": "'x'", "dc_name": "df2"},
    "SQLCheckConstraint": {**ON_U, "column_name": "id", "check_expression": "id > 0", "dc_name": "ck2"},
    "SQLForeignKey": {"pktable_db": "{d}", "pktable_name": "u", "pkcolumn_name": "id", "fktable_db": "{d}", "fktable_name": "a",
                      "fkcolumn_name": "id", "key_seq": 1, "update_rule": 0, "delete_rule": 0, "fk_name": "fk2", "pk_name": "pk", "catName": "hive", **FLAGS},
    "Decimal": {"unscaled": "\x01", "scale": 1}, "Date": {"daysSinceEpoch": 1}, "Timestamp": {"secondsSinceEpoch": 1}, "Order": {"col": "id", "order": 1},
    "SkewedInfo": {"skewedColNames": ["id"], "skewedColValues": [["1"]], "skewedColValueLocationMaps": [[["1"], "file:/x"]]},
    "PrincipalPrivilegeSet": {"userPrivileges": {}, "groupPrivileges": {}, "rolePrivileges": {}},
    "RequestPartsSpec": {"names": ["p=a/q=1"]}, "GetPartitionsFilterSpec": {}, "GetProjectionsSpec": {}, "ClientCapabilities": {"values": [1, 2]},
    "CreationMetadata": {"catName": "hive", "dbName": "{d}", "tblName": "m", "tablesUsed": ["{d}.u"]},
    "PartitionSpec": {"dbName": "{d}", "tableName": "t", "rootPath": "file:{warehouse}/{d}.db/t", "partitionList": {"partitions": [partition("c", "3")]}},
    "LockComponent": {"type": 1, "level": 2, "dbname": "{d}", "tablename": "a", "operationType": 1, "isTransactional": True},
    "FireEventRequestData": {"insertData": {"filesAdded": ["file:/x"]}}, "InsertEventRequestData": {"filesAdded": ["file:/x"], "replace": False},
    # Fields, of one struct or of all.
    **dict.fromkeys(("db_name", "dbname", "dbName", "db", "oldDbName", "database", "source_db", "dest_db", "parent_db_name"), "{d}"),
    **dict.fromkeys(("foreign_db_name",), "{d}"), "parent_tbl_name": "u", "foreign_tbl_name": "a",
    **dict.fromkeys(("tbl_name", "tblName", "tableName", "table_name", "tablename", "tblname", "tbName"), "t"), "table": "t",
    "drop_database.name": "{d}n", "get_database.name": "{d}", "GetDatabaseRequest.name": "{d}", "DropDatabaseRequest.name": "{d}n", "databaseName": "{d}n",
    "drop_table.name": "u", "GetCatalogRequest.name": "c2", "AlterCatalogRequest.name": "c2", "DropCatalogRequest.name": "{d}k",
    "AlterCatalogRequest.newCat": {"name": "c2", "description": "y", "locationUri": "file:{warehouse}/c2"},
    "AlterDatabaseRequest.newDb": {"name": "{d}", "description": "y", "parameters": {"c": "d"}, "ownerName": "bob", "ownerType": 1},
    "alter_database.db": {"name": "{d}", "description": "y", "parameters": {"c": "d"}, "ownerName": "bob", "ownerType": 1},
    **{key: ["a", "1"] for key in ("part_vals", "partVals", "values", "partitionVals")}, "partValues": ["a", ""],
    **dict.fromkeys(("part_name", "partName", "partitionname", "AppendPartitionsRequest.name", "partname", "partitionName"), "p=a/q=1"),
    **{key: ["p=a/q=1", "p=b/q=1"] for key in ("names", "partNames", "part_names", "partitionnames")},
    "col_name": "id", "colNames": ["id"], "col_names": ["id"], "engine": "hive", "filter": 'p = "a"', "max_parts": -1, "maxParts": -1, "pattern": "*",
    "PartitionsByExprRequest.expr": EXPRESSION, "DropPartitionsExpr.expr": EXPRESSION, "db_patterns": "*", "tbl_patterns": "*", "tbl_types": [], "tbl_names": ["t", "u"], "tblNames": ["t", "u"],
    "get_table_names_by_filter.filter": 'hive_filter_field_owner__ = "ann"', "max_tables": -1, "tableType": "VIRTUAL_VIEW",
    "funcName": "f", "constraintname": "pk", "tableNamePattern": "*", "requestedFields": 1, "catalog": "hive",
    "partitionKeys": [KEYS[0]], "partitionSpecs": {"p": "a", "q": "1"}, "source_table_name": "t", "dest_table_name": "t2",
    "txnid": TXN, "txnId": TXN, "txn_ids": [TXN], "txnIds": [TXN], "lockid": LOCK, "min": TXN, "max": TXN, "txn_id": TXN, "cq_id": COMPACTION,
    "writeId": WRITE_ID, "writeid": WRITE_ID, "compactionIds": [COMPACTION], "CompactionInfoStruct.id": COMPACTION, "num_txns": 2, "user": "ann", "hostname": "h",
    "hostName": "h", "fullTableNames": ["{d}.a"], "lastEvent": 0, "fromEventId": 0, "user_name": "ann", "group_names": ["g"], "userName": "ann", "groupNames": ["g"],
    "HiveObjectRef.objectType": 3, "principal_name": "ann", "principal_type": 1, "get_config_value.name": "hive.metastore.warehouse.dir", "defaultValue": "x",
    "getMetaConf.key": "hive.metastore.try.direct.sql", "setMetaConf.key": "hive.metastore.try.direct.sql", "setMetaConf.value": "true",
    "partition_name_to_vals.part_name": "p=a/q=1", "partition_name_has_valid_characters.part_vals": ["a", "b"], "validWriteIdlist": "{d}.a:5:9223372036854775807::",
    "workerId": "w", "poolName": "default", "jobId": "j", "seedWriteId": 50, "seedTxnId": 10**6, "dataPath": "file:{warehouse}/{d}.db/t", "purge": False,
    "catName": "hive", "successful": True, "deleteData": True, "cascade": True, "ifNotExists": False, "ignoreUnknownDb": False,
}
# Fields that are not required, and with which a call does more.
WANTED = {"names", "partVals", "partValues", "partitionnames", "dbName", "tableName", "properties", "operationType", "writeid", "filters", "deleteData", "needResult",
          "pattern", "expr", "partNames", "tblNames", "txnIds", "isTransactional", "GetDatabaseRequest.name", "lockid", "txnid", "catalogName", "partName", "catName"}
WITHOUT = {"catalogName", "partName", "txnid"}  # but for what is in BASE
HOME = {"sd": {**SD, "location": "file:{warehouse}/{d}.db/t/p=a/q=1"}, "parameters": {"k": "w"}}
PARTS = [partition("a", "1"), partition("a", "2"), partition("b", "1")]
RENAMED = {"db_name": "{d}", "tbl_name": "t"}
# What a method's call has beside, by the method's name: where fields of these names mean something else there.
BASE = {
    "create_table_with_constraints": {"primaryKeys": [{"column_name": "id", "key_seq": 1, "pk_name": "pk9", "table_db": "{d}", "table_name": "n", **FLAGS}]},
    "drop_table_req": {"dropTableReq": {"dbName": "{d}", "tableName": "u", "deleteData": True}},
    "drop_table_with_environment_context": {"name": "u"},
    "append_partition_by_name": {"part_name": "p=c/q=3"}, "append_partition_by_name_with_environment_context": {"part_name": "p=c/q=3"},
    "append_partition": {"part_vals": ["c", "3"]}, "append_partition_with_environment_context": {"part_vals": ["c", "3"]},
    "append_partition_req": {"appendPartitionsReq": {"dbName": "{d}", "tableName": "t", "partVals": ["c", "3"]}},
    "rename_partition": {**RENAMED, "part_vals": ["a", "1"], "new_part": partition("z", "9", **HOME)},
    "rename_partition_req": {"req": {"dbName": "{d}", "tableName": "t", "partVals": ["a", "1"], "newPart": partition("z", "9", **HOME), "catName": "hive"}},
    "add_partitions_req": {"request": {"dbName": "{d}", "tblName": "t", "parts": [partition("c", "3")], "ifNotExists": False, "needResult": True}},
    "get_table_names_by_filter": {"dbname": "{d}"}, "get_file_metadata": {"req": {"fileIds": [1]}},
    "create_database_req": {"createDatabaseRequest": {"databaseName": "{d}n", "description": "x", "ownerName": "ann", "ownerType": 1}},
    "get_database_req": {"request": {"name": "{d}"}}, "drop_function": {"dbName": "{d}", "funcName": "f"},
    "alter_function": {"dbName": "{d}", "funcName": "f", "newFunc": {**VALUES["Function"], "functionName": "f", "className": "a.H"}},
    "drop_partitions_req": {"req": {"dbName": "{d}", "tblName": "t", "parts": {"names": ["p=a/q=1"]}, "needResult": True}},
    "drop_partition_req": {"dropPartitionReq": {"dbName": "{d}", "tblName": "t", "partVals": ["a", "1"], "deleteData": True, "catName": "hive"}},
    "get_partitions_by_names_req": {"req": {"db_name": "{d}", "tbl_name": "t", "names": ["p=a/q=1", "p=b/q=1"]}},
    "truncate_table": {"tableName": "u", "partNames": None}, "truncate_table_req": {"req": {"dbName": "{d}", "tableName": "u"}},
    "update_partition_column_statistics": {"stats_obj": column_statistics("t", "p=a/q=1")},
    "update_table_column_statistics_req": {"req": {"colStats": [column_statistics()]}},
    "update_partition_column_statistics_req": {"req": {"colStats": [column_statistics("t", "p=a/q=1")]}},
    "set_aggr_stats_for": {"request": {"colStats": [column_statistics("t", "p=a/q=1")]}},
    "get_table_statistics_req": {"request": {"dbName": "{d}", "tblName": "u", "colNames": ["id"]}},
    "get_table_column_statistics": {"tbl_name": "u"}, "delete_table_column_statistics": {"tbl_name": "u"},
    "get_partitions_with_specs": {"request": {"dbName": "{d}", "tblName": "t", "projectionSpec": {}, "filterSpec": {}}},
    "commit_txn": {"rqst": {"txnid": TXN}}, "abort_txn": {"rqst": {"txnid": TXN}}, "lock": {"rqst": {
        "component": [VALUES["LockComponent"]], "txnid": TXN, "user": "ann", "hostname": "h", "agentInfo": "x"}},
    "check_lock": {"rqst": {"lockid": LOCK}}, "heartbeat": {"ids": {"lockid": LOCK}}, "compact": {"rqst": {"dbname": "{d}", "tablename": "a", "type": 2}},
    "compact2": {"rqst": {"dbname": "{d}", "tablename": "a", "type": 2}}, "open_txns": {"rqst": {"num_txns": 2, "user": "ann", "hostname": "h"}},
    "allocate_table_write_ids": {"rqst": {"dbName": "{d}", "tableName": "a", "txnIds": [TXN]}},
    "add_dynamic_partitions": {"rqst": {"txnid": TXN, "writeid": 1, "dbname": "{d}", "tablename": "a", "partitionnames": ["p=1"], "operationType": 2}},
    "show_locks": {"rqst": {}}, "show_compact": {"rqst": {"dbName": "{d}"}}, "seed_write_id": {"rqst": {"dbName": "{d}", "tableName": "u", "seedWriteId": 50}},
    "drop_partition": {"part_vals": ["a", "1"]}, "get_next_notification": {"rqst": {"lastEvent": 0}},
    "exchange_partition": {"dest_table_name": "t2"}, "update_creation_metadata": {"catName": "hive", "tbl_name": "m"},
    "get_primary_keys": {"request": {"db_name": "{d}", "tbl_name": "u"}}, "drop_constraint": {"req": {"dbname": "{d}", "tablename": "u", "constraintname": "pk"}},
    **{f"get_{kind}_constraints": {"request": {"catName": "hive", "db_name": "{d}", "tbl_name": "u"}} for kind in ("unique", "not_null", "default", "check")},
    "get_all_table_constraints": {"request": {"catName": "hive", "dbName": "{d}", "tblName": "u"}},
    **{name: {"new_tbl": table("u", parameters={**EXTERNAL, "k": "w"}, kind="EXTERNAL_TABLE"), "tbl_name": "u"}
       for name in ("alter_table", "alter_table_with_cascade", "alter_table_with_environment_context")},
    "alter_table_req": {"req": {"dbName": "{d}", "tableName": "u", "table": table("u", parameters={**EXTERNAL, "k": "w"}, kind="EXTERNAL_TABLE")}},
    **{name: {"new_part": partition("a", "1", **HOME)} for name in ("alter_partition", "alter_partition_with_environment_context")},
    **{name: {"new_parts": [partition("a", "1", **HOME)]} for name in ("alter_partitions", "alter_partitions_with_environment_context")},
    "alter_partitions_req": {"req": {"dbName": "{d}", "tableName": "t", "partitions": [partition("a", "1", **HOME)]}},
}


def values_of(enum):
    """Return the numbers of an enum."""
    return [entry["number"] for entry in FACTS["enums"][enum]["values"].values()]


def fits(declared, value):
    """Return True if the value is of this type, so that a field's name alone does not decide."""
    kind = kind_of(declared)
    match value:
        case {"$id": _}:
            return declared == "i64"
        case dict():
            return kind[0] in ("struct", "map")
        case list():
            return kind[0] in ("list", "set")
        case str():
            return declared in ("string", "binary")
        case bool():
            return declared == "bool"
    return kind[0] == "enum" or declared in ("i16", "i32", "i64")


def value_of(owner, field, depth=0):
    """Return what a field has in a method's base call; None: it is not set."""
    name, declared = field["name"], field["type"]
    is_wanted = field["req"] != "optional" or name in WANTED - WITHOUT or f"{owner}.{name}" in WANTED
    if not is_wanted or depth > 4:
        return None
    for key in (f"{owner}.{name}", name):
        if key in VALUES and fits(declared, VALUES[key]):
            return copy.deepcopy(VALUES[key])
    return sample(declared, depth)


def sample(declared, depth=0):
    """Return a value of this type."""
    kind = kind_of(declared)
    match kind[0]:
        case "list" | "set":
            return [sample(kind[1], depth + 1)]
        case "map":
            return {"k": sample(kind[2], depth + 1)} if kind[1] == "string" else []
        case "enum":
            return min(values_of(kind[1]))
        case "struct":
            if kind[1] in VALUES:
                return copy.deepcopy(VALUES[kind[1]])
            return {field["name"]: value for field in fields_of(kind[1]) if (value := value_of(kind[1], field, depth + 1)) is not None}
    return {"bool": False, "double": 1.5, "string": "x", "binary": "x"}.get(kind[1], 1)


def base(method):
    """Return the arguments of a call that reaches real work."""
    made = {field["name"]: value for field in FACTS["methods"][method]["args"] if (value := value_of(method, field)) is not None}
    return {name: value for name, value in {**made, **copy.deepcopy(BASE.get(method, {}))}.items() if value is not None}


NEWEST = "4.0.1"  # A field that came later is none that the real metastores know.
DATABASES = {"db_name", "dbname", "dbName", "db", "oldDbName", "source_db", "dest_db", "table_db", "pktable_db", "fktable_db", "parent_db_name",
             "foreign_db_name", "databaseName"}
CATALOGS = {"catName", "catalogName", "catalog", "cat_name"}


def others(declared, name, now):  # noqa: PLR0911 - a table of types
    """Return other values of a field: null, empty, missing, upper case, of another catalog, and of its type."""
    kind = kind_of(declared)
    match kind[0]:
        case "list" | "set":
            now = now or []
            more = [["nope"], [""], [str(item).upper() for item in now], [*now, "nope"]] if kind[1] == "string" else [[sample(kind[1])]]
            return [None, [], [*now, *now], *more]
        case "map":
            return [None, {}, {"k": "v"}, {"": ""}] if kind[1:] == ("string", "string") else [None, []]
        case "struct":
            return [None, {}, sample(declared)]
        case "enum":
            return [None, *values_of(kind[1]), 99]
    match kind[1]:
        case "bool":
            return [None, False, True]
        case "double":
            return [None, 0.0, 1.5]
        case "binary":
            return [None, "", "x"]
        case "string":
            text = now if isinstance(now, str) else sample(declared)
            more = ["@c2#{d}", "@nope#{d}", "@hive#{d}", "{d}"] if name in DATABASES else ["c2", "hive"] if name in CATALOGS else [f" {text} ", "*"]
            return [None, "", "nope", text.replace("{d}", "{D}") if "{d}" in text else text.upper(), *more]
    return [None, 0, -1, 1, 7, 2 ** (7 if kind[1] == "byte" else int(kind[1][1:]) - 1) - 1]


def places(arguments, owner_fields, path=(), seen=()):
    """Yield each field below the arguments: its path, its type and what it holds. Of a list: the first element."""
    for field in owner_fields:
        if field["since"] > NEWEST:
            continue
        here, now = (*path, field["name"]), arguments.get(field["name"]) if isinstance(arguments, dict) else None
        yield here, field["type"], now
        kind, inner, step = kind_of(field["type"]), now, here
        if kind[0] == "list":
            inner, step = (now or [None])[0], (*here, 0)
            kind = kind_of(kind[1])
        if kind[0] == "struct" and isinstance(inner, dict) and seen.count(kind[1]) < 1 and len(path) < 8:
            yield from places(inner, fields_of(kind[1]), step, (*seen, kind[1]))


def changed(arguments, path, value):
    """Return the arguments with another value at the path."""
    made = copy.deepcopy(arguments)
    at = made
    for step in path[:-1]:
        at = at[step]
    if value is None:
        at.pop(path[-1], None)
    else:
        at[path[-1]] = value
    return made


def variants(method):
    """Yield (where, arguments): the call itself, then with each field at each of its other values."""
    arguments = base(method)
    yield "", arguments
    for path, declared, now in places(arguments, FACTS["methods"][method]["args"]):
        for value in others(declared, path[-1], now):
            if value != now:
                made = changed(arguments, path, value)
                yield f"{'.'.join(map(str, path))}={value!r}", made


def calls(method, most, seed):
    """Return at most so many calls of the method: one change each, then, as far as there is room, two."""
    dice = random.Random(f"{seed}:{method}")
    first, *single = variants(method)
    if len(single) >= most:
        return [first, *dice.sample(single, most - 1)]
    found = [first, *single]
    fields = FACTS["methods"][method]["args"]
    while single and len(found) < most:
        where, made = dice.choice(single)
        at = list(places(made, fields))
        path, declared, now = dice.choice(at)
        value = dice.choice(others(declared, path[-1], now))
        found.append((f"{where} {'.'.join(map(str, path))}={value!r}", changed(made, path, value)))
    return found
