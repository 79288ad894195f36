"""Messages of the catalog's events before the deserializers of Hive's versions."""

import base64
import gzip
import json
from collections import defaultdict

from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.support.catalog_events import events

_ALWAYS = {"CREATE_CATALOG", "ALTER_CATALOG", "DROP_CATALOG", "RELOAD"}
_SINCE_4 = {"ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT", "UPDATE_TBL_COL_STAT_EVENT", "UPDATE_PART_COL_STAT_EVENT",
            "DELETE_TBL_COL_STAT_EVENT", "DELETE_PART_COL_STAT_EVENT"}
_SINCE_3 = {"ALTER_DATABASE", "ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT", "ADD_NOTNULLCONSTRAINT", "DROP_CONSTRAINT"}
UNKNOWN = {"2.3.10": _ALWAYS | _SINCE_4 | _SINCE_3, "3.1.3": _ALWAYS | _SINCE_4}
"""Types of events for which a version's deserializer has no method."""
DESERIALIZER = "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageDeserializer"
GZIP_DESERIALIZER = "org.apache.hadoop.hive.metastore.messaging.json.gzip.DeSerializer"


FEWER = {"2.3.10": {"CREATE_DATABASE", "DROP_DATABASE", "DROP_TABLE", "INSERT"}, "3.1.3": {"DROP_DATABASE"}}
"""Messages of which a version reads no object."""


def changes(client, tmp_path):
    """Make a change of every kind that has an event."""
    sd = T.StorageDescriptor(
        cols=[T.FieldSchema("id", "int", "é 𝄞 \"q\""), T.FieldSchema("n", "string", None)], inputFormat="i", outputFormat="o",
        serdeInfo=T.SerDeInfo("", "s", {"field.delim": "\x01"}), bucketCols=["id"], sortCols=[T.Order("id", 1)], parameters={},
        skewedInfo=T.SkewedInfo(["id"], [["1"]], {("1",): "file:/x"}))

    def table(name, **more):
        return T.Table(tableName=name, dbName="d", owner="o", sd=sd, tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"},
                       **{"partitionKeys": [T.FieldSchema("p", "string", None)], **more})

    def part(value, **more):
        return T.Partition([value], "d", "t", sd=sd, parameters={"ä": "]#"}, **more)

    client.create_catalog(T.CreateCatalogRequest(T.Catalog("c", None, (tmp_path / "c").as_uri())))
    client.alter_catalog(T.AlterCatalogRequest("c", T.Catalog("c", "new", None)))
    client.drop_catalog(T.DropCatalogRequest("c"))
    client.create_database(T.Database(name="d", parameters={"a": "b"}))
    client.alter_database("d", T.Database(name="d", parameters={"a": "c"}, ownerName="o", ownerType=1))
    client.create_table_with_constraints(
        table("u", partitionKeys=[]), [T.SQLPrimaryKey("d", "u", "id", 1, "pk", False, False, True)], [],
        [T.SQLUniqueConstraint("hive", "d", "u", "n", 1, "uk", True, True, True)],
        [T.SQLNotNullConstraint("hive", "d", "u", "id", "nn", True, True, True)],
        [T.SQLDefaultConstraint("hive", "d", "u", "id", "1", "df", True, True, True)],
        [T.SQLCheckConstraint("hive", "d", "u", "id", "id > 0", "ck", True, True, True)])
    client.create_table(table("t"))
    client.add_foreign_key(T.AddForeignKeyRequest(
        [T.SQLForeignKey("d", "u", "id", "d", "t", "id", 1, 0, 0, "fk", "pk", True, True, True)]))
    client.drop_constraint(T.DropConstraintRequest("d", "t", "fk"))
    client.add_partitions([part("1"), part("2 ä/")])
    client.alter_partitions("d", "t", [part("1"), part("2 ä/")])
    client.rename_partition("d", "t", ["1"], part("9"))
    client.truncate_table("d", "t", ["p=9"])
    long = T.ColumnStatisticsData(longStats=T.LongColumnStatsData(1, 2, 3, 4))
    for partition in (None, "p=9"):
        client.update_partition_column_statistics(T.ColumnStatistics(
            T.ColumnStatisticsDesc(partition is None, "d", "t", partition), [T.ColumnStatisticsObj("id", "int", long)]))
    client.delete_partition_column_statistics("d", "t", "p=9", "id", "hive")
    client.delete_table_column_statistics("d", "t", "id", "hive")
    client.fire_listener_event(T.FireEventRequest(True, T.FireEventRequestData(
        insertData=T.InsertEventRequestData(False, ["s3://b/f"], ["sum"])), "d", "t", ["9"]))
    client.fire_listener_event(T.FireEventRequest(True, T.FireEventRequestData(refreshEvent=True), "d", "t", ["9"]))
    client.drop_partition("d", "t", ["9"], False)
    client.alter_table("d", "t", client.get_table("d", "t"))
    client.truncate_table("d", "u", None)
    client.create_function(T.Function("f", "d", "org.F", "o", 1, 0, 1, [T.ResourceUri(1, "s3://x")]))
    client.drop_database("d", True, True)


def within(read, written):
    """Whether everything that was read is what was written; a version leaves out what it does not know."""
    if isinstance(read, dict):
        return isinstance(written, dict) and all(key in written and within(read[key], written[key]) for key in read)
    if isinstance(read, list):
        return isinstance(written, list) and len(read) == len(written) and all(map(within, read, written))
    return read == written


def loosely(text):
    """Thrift's JSON with what is no JSON in it, a list as a key, as text."""
    return json.loads(text.replace('{["str",1,"1"]:', '{"list":'))


def requested(client, tmp_path):
    """Return the events of all changes, and the file that the Java program is given."""
    changes(client, tmp_path)
    told = events(client)
    lines = tmp_path / "events"
    lines.write_text("".join(f"{one.eventType} {base64.b64encode(one.message.encode()).decode()}\n" for one in told))
    return told, lines


def require_read(version, told, output):
    """Check by event that the program printed the written message: its keys, and each object in it."""
    read = defaultdict(list)
    for line in output.splitlines():
        if line.startswith("fact "):
            (place, what), text = line.removeprefix("fact ").split(" = ")[0].split(), line.split(" = ")[1]
            read[int(place)].append((what, base64.b64decode(text).decode()))
    unknown = {told[place].eventType for place, found in read.items() if found[0][0] == "unknown"}
    assert unknown == UNKNOWN.get(version, _ALWAYS)
    assert len(read) == len(told)
    for place, found in read.items():
        if found[0][0] != "unknown":
            _require_read(version, told[place], found)


def _require_read(version, event, found):
    message = json.loads(gzip.decompress(base64.b64decode(event.message)) if event.messageFormat != "json-0.2" else event.message)
    written = [loosely(text) for key, value in message.items() if "Json" in key and value
               for text in (value if isinstance(value, list) else [value])]
    objects = [loosely(text) for what, text in found if what != "message"]
    [keys] = [json.loads(text) for what, text in found if what == "message"]
    assert within({key: value for key, value in keys.items() if value is not None}, message), (event.eventType, keys, message)
    for one in objects:
        assert any(within(one, other) for other in written), (event.eventType, one, written)
    assert len(objects) >= len(written) or event.eventType in FEWER.get(version, ()), (event.eventType, found)
