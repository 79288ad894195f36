"""Scenes: the objects that calls find, made by calls, and what is read back when a call has changed something."""

import re

from tests.differential.calls import CLIENT, EXTERNAL, KEYS, ORC, PARTS, TXN, VALUES, column_statistics, table

OTHER = {"catalog": {"catalog": {"name": "c2", "description": "x", "locationUri": "file:{warehouse}/c2"}}}
FOREIGN = {**VALUES["SQLForeignKey"], "fktable_name": "t", "fkcolumn_name": "q", "fk_name": "fk"}
CONSTRAINED = {
    "tbl": table("u", kind="EXTERNAL_TABLE", parameters=EXTERNAL),
    "primaryKeys": [{**VALUES["SQLPrimaryKey"], "pk_name": "pk"}], "uniqueConstraints": [{**VALUES["SQLUniqueConstraint"], "uk_name": "uk"}],
    "notNullConstraints": [{**VALUES["SQLNotNullConstraint"], "nn_name": "nn"}],
    "defaultConstraints": [{**VALUES["SQLDefaultConstraint"], "dc_name": "df"}], "checkConstraints": [{**VALUES["SQLCheckConstraint"], "dc_name": "ck"}]}
ACID = table("a", parameters={"transactional": "true"}, sd={**ORC, "bucketCols": ["id"], "numBuckets": 2, "sortCols": []})
# Calls by part; a third element: the servers that get the call, whose answers are not compared.
MADE = {
    "db": [("create_database", {"database": {"name": "{d}", "description": "x", "parameters": {"a": "b"}, "ownerName": "ann", "ownerType": 1}})],
    "c2": [("create_catalog", OTHER, "4.0.1 ours"), ("create_database", {"database": {"name": "{d}", "parameters": {}, "catalogName": "c2"}}, "4.0.1 ours"),
           ("create_table", {"tbl": table("t", keys=KEYS, catName="c2")}, "4.0.1 ours")],
    "t": [("create_table", {"tbl": table("t", keys=KEYS)}), ("add_partitions", {"new_parts": PARTS})],
    "t2": [("create_table", {"tbl": table("t2", keys=KEYS)})],
    "u": [("create_table_with_constraints", CONSTRAINED)],
    "fk": [("add_foreign_key", {"req": {"foreignKeyCols": [FOREIGN]}})],
    "v": [("create_table", {"tbl": table("v", kind="VIRTUAL_VIEW", viewOriginalText="select 1", viewExpandedText="select 1")})],
    "a": [("create_table_req", {"request": {"table": ACID, "processorCapabilities": CLIENT}}), ("create_table", {"tbl": ACID}, "2.3.10")],
    "f": [("create_function", {"func": {**VALUES["Function"], "functionName": "f"}})],
    "stats": [("update_table_column_statistics", {"stats_obj": column_statistics()}),
              ("update_partition_column_statistics", {"stats_obj": column_statistics("t", "p=a/q=1")})],
    "txn": [("open_txns", {"rqst": {"num_txns": 1, "user": "ann", "hostname": "h"}}),
            ("allocate_table_write_ids", {"rqst": {"dbName": "{d}", "tableName": "a", "txnIds": [TXN]}})],
    "lock": [("lock", {"rqst": {"component": [VALUES["LockComponent"]], "txnid": TXN, "user": "ann", "hostname": "h"}})],
    "compaction": [("compact2", {"rqst": {"dbname": "{d}", "tablename": "a", "type": 2}})],
}
READS = {
    "tables": [("get_all_tables", {"db_name": "{d}"}), *(("get_table_req", {"req": {"dbName": "{d}", "tblName": name, "capabilities": {"values": [1, 2]}}})
               for name in ("n", "t", "u", "a"))],
    "partitions": [("get_partitions", {"db_name": "{d}", "tbl_name": name, "max_parts": -1}) for name in ("t", "t2")],
    "databases": [("get_all_databases", {}), *(("get_database_req", {"request": {"name": name, "catalogName": "hive"}}) for name in ("{d}", "{d}n"))],
    "functions": [("get_all_functions", {})],
    "constraints": [("get_all_table_constraints", {"request": {"catName": "hive", "dbName": "{d}", "tblName": name}}) for name in ("u", "t", "n")],
    "statistics": [("get_table_statistics_req", {"request": {"dbName": "{d}", "tblName": "u", "colNames": ["id", "name"], "engine": "hive"}}),
                   ("get_partitions_statistics_req", {"request": {"dbName": "{d}", "tblName": "t", "colNames": ["id"], "partNames": ["p=a/q=1", "p=a/q=2"], "engine": "hive"}})],
    "catalogs": [("get_catalogs", {}), *(("get_catalog", {"catName": {"name": name}}) for name in ("c2", "{d}k"))],
    "locks": [("show_locks", {"rqst": {"dbname": "{d}"}}), ("check_lock", {"rqst": {"lockid": {"$id": "lock"}}})],
    "compactions": [("show_compact", {"rqst": {"dbName": "{d}"}})],
    "none": [],
}
# Methods, the parts of their scene, and what is read after a change; the first that fits.
GROUPS = [
    (r".*constraints?|.*_keys?", "db c2 t u fk a", "constraints"),
    (r".*_statistics.*|.*aggr_stats.*", "db c2 t u a stats txn", "statistics"),
    (r".*function.*", "db c2 f", "functions"),
    (r".*catalogs?", "db c2", "catalogs"),
    (r".*database.*", "db c2", "databases"),
    (r".*partition.*|get_part_specs.*", "db c2 t t2 u v", "partitions"),
    (r".*(table|materiali|creation_metadata|fields|schema|index).*", "db c2 t u v a", "tables"),
    (r".*(compact|mark_|cleanup|columns_with|hadoop_jobid).*", "db a txn compaction", "compactions"),
    (r".*(txn|lock|heartbeat|write_id|writeid|dynamic|notification|event).*", "db t u a txn lock", "locks"),
    (r".*", "db t u a", "none"),
]
IS_READ = re.compile(r"(get|show|list|is|find|partition_name|alive|translate|validate)(?!_lock_mat).*")
GIVES = {"open_txns": ("txn", lambda value: value["txn_ids"][-1]), "lock": ("lock", lambda value: value["lockid"]), "compact2": ("compaction", lambda value: value["id"]),
         "allocate_table_write_ids": ("write_id", lambda value: value["txnToWriteIds"][-1]["writeId"])}


def group_of(method):
    return next((parts, reads) for pattern, parts, reads in GROUPS if re.fullmatch(pattern, method))


class Scene:
    """A database of its own, which no other scene has."""

    def __init__(self, number):
        self.name = f"scene{number}"

    def sent(self, value, asked):
        """Return a call's arguments as this server gets them."""
        match value:
            case {"$id": name}:
                return asked.known.get(name, 999_999)
            case dict():
                return {self.sent(key, asked): self.sent(item, asked) for key, item in value.items()}
            case list():
                return [self.sent(item, asked) for item in value]
            case str():
                return value.replace("{d}", self.name).replace("{D}", self.name.upper()).replace("{warehouse}", f"{asked.work}/warehouse")
        return value

    def hidden(self, text):
        return text.replace(self.name, "{d}").replace(self.name.upper(), "{D}")


def ending(asked):
    """Yield calls that take a scene away: transactions and locks first, which would keep it."""
    known = asked.known
    if "txn" in known:
        yield "abort_txns", {"rqst": {"txn_ids": [known.pop("txn")]}}
    if "lock" in known:
        yield "unlock", {"rqst": {"lockid": known.pop("lock")}}
    if "compaction" in known:
        yield from [("find_next_compact2", {"rqst": {"workerId": "w", "workerVersion": "4"}})] * 3
    known.clear()
    if asked.version != "2.3.10":
        yield "drop_database", {"name": "@c2#{d}", "deleteData": True, "cascade": True}
        yield "drop_catalog", {"catName": {"name": "{d}k"}}
    for name in ("{d}", "{d}n", "nope"):
        yield "drop_database", {"name": name, "deleteData": True, "cascade": True}
