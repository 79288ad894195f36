"""The views with Hive's table names (docs/how-to/read-the-catalog-by-sql.md): what lineage tools read is the catalog."""

from contextlib import closing
from pathlib import Path

import psycopg2
import psycopg2.extras
import pytest

from metastore.db.statements import Statements
from metastore.thrift_gen.hive_metastore import ttypes as T

TOOLS = Statements(__file__)
SHORT = {"bigint": "i", "integer": "i", "boolean": "b", "bytea": "x", "text": "", "character varying": ""}


def asked(url, query, search_path="hive"):
    with closing(psycopg2.connect(url, cursor_factory=psycopg2.extras.DictCursor)) as session, session, session.cursor() as cursor:
        cursor.execute(f"SET search_path = {search_path}")
        cursor.execute(query)
        return [dict(row) for row in cursor.fetchall()] if cursor.description else []


def columns(*texts):
    return [T.FieldSchema(*text.split()) for text in texts]


def descriptor(location=None, cols=("id int", "name string the_name"), **fields):
    return T.StorageDescriptor(
        cols=columns(*cols), location=location, inputFormat="in.Format", outputFormat="out.Format", compressed=False, numBuckets=3,
        serdeInfo=T.SerDeInfo("serde", "a.SerDe", {"field.delim": "\t"}), parameters={"of": "sd"}, **fields)


def make_lake(client):
    """Make two tables, one of them partitioned with a partition whose columns are others, a view and a function."""
    client.create_database(T.Database(name="lake", description="all", parameters={"team": "ann"}, ownerName="ann", ownerType=T.PrincipalType.ROLE))
    client.create_table(T.Table("plain", "lake", "ann", 5, 6, 7, descriptor(), [], {"comment": "a plain one", "é": "x"}, tableType="MANAGED_TABLE"))
    client.create_table(T.Table("parts", "lake", "bob", sd=descriptor(), partitionKeys=columns("day date the_day", "hour int"), parameters={}, tableType="MANAGED_TABLE"))
    location = client.get_table("lake", "parts").sd.location
    for values, cols in ([["2026-01-01", "1"], ("id int", "name string the_name")], [["2026-01-01", "2"], ("id int",)]):
        client.add_partition(T.Partition(values, "lake", "parts", 0, 0, descriptor(f"{location}/{values[1]}", cols), {"numRows": "4"}))
    client.create_table(T.Table("seen", "lake", "ann", sd=descriptor(cols=("id int",)), partitionKeys=[], parameters={"comment": "what is seen"},
                                viewOriginalText="SELECT id", viewExpandedText="SELECT `id`", tableType="VIRTUAL_VIEW"))
    client.create_function(T.Function("f", "lake", "a.Class", "ann", T.PrincipalType.USER, 1, T.FunctionType.JAVA, []))


@pytest.fixture
def lake(client):
    make_lake(client)
    return [client.get_table("lake", name) for name in ("plain", "parts", "seen")]


def of_hive():
    lines = (Path(__file__).parent / "hive_columns.txt").read_text().splitlines()[1:]
    return {name: columns for name, *columns in map(str.split, lines)}


def test_names_types_and_order_are_those_of_hives_script(database_url):
    found = {}
    for name, column, kind in map(dict.values, asked(database_url, "SELECT table_name, column_name, data_type FROM information_schema.columns "
                                                     "WHERE table_schema = 'hive' ORDER BY table_name, ordinal_position")):
        found.setdefault(name, []).append(":".join(filter(None, [column, SHORT[kind]])))

    assert found == of_hive()


def test_nobody_can_write_not_even_the_owner(database_url, lake):
    writable = asked(database_url, "SELECT table_name, is_updatable, is_insertable_into FROM information_schema.views WHERE table_schema = 'hive'")
    assert {(view["is_updatable"], view["is_insertable_into"]) for view in writable} == {("NO", "NO")}
    for statement in ('DELETE FROM "DBS"', 'UPDATE "TXNS" SET "TXN_STATE" = \'c\'', 'INSERT INTO "CTLGS" ("NAME") VALUES (\'x\')'):
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState):
            asked(database_url, statement)


def test_amundsen_finds_the_columns_of_every_table(database_url, lake):
    rows = asked(database_url, TOOLS.text("amundsen_columns"))

    expected = [("lake", t.tableName, t.tableType, t.parameters.get("comment"), field.name, place, field.type, field.comment, is_key, int(t.tableType == "VIRTUAL_VIEW"))
                for t in lake for is_key, fields in ((1, t.partitionKeys), (0, t.sd.cols)) for place, field in enumerate(fields)]
    assert sorted(tuple(row.values())[1:] for row in rows) == sorted(expected)
    assert [row["tbl_id"] for row in rows] == sorted(row["tbl_id"] for row in rows)


def test_amundsen_finds_when_and_where_tables_were_changed(database_url, client, lake):
    partitions = client.get_partitions("lake", "parts", -1)

    assert asked(database_url, TOOLS.text("amundsen_partitioned")) == [
        {"schema": "lake", "table_name": "parts", "last_updated_time": max(p.createTime for p in partitions)}]
    assert asked(database_url, TOOLS.text("amundsen_unpartitioned")) == [
        {"schema": "lake", "table_name": t.tableName, "location": t.sd.location} for t in lake if not t.partitionKeys]


def test_datahub_finds_tables_views_and_properties(database_url, client, lake):
    tables = asked(database_url, TOOLS.text("datahub_tables"))
    views = asked(database_url, TOOLS.text("datahub_views"))
    properties = asked(database_url, TOOLS.text("datahub_properties"))

    assert {(row["table_name"], row["table_type"], row["table_location"], row["col_name"], row["is_partition_col"]) for row in tables} == {
        (t.tableName, t.tableType, t.sd.location, field.name, is_key)
        for t in lake[:2] for is_key, fields in ((1, t.partitionKeys), (0, t.sd.cols)) for field in fields}
    assert [(row["table_name"], row["view_expanded_text"], row["description"], row["col_name"]) for row in views] == [
        ("seen", "SELECT `id`", "what is seen", "id")]
    assert {(row["table_name"], row["PARAM_KEY"], row["PARAM_VALUE"]) for row in properties} == {
        (t.tableName, *pair) for t in lake for pair in t.parameters.items()}
    assert [row["schema"] for row in asked(database_url, TOOLS.text("datahub_schemas"))] == sorted(client.get_all_databases(), reverse=True)
    assert asked(database_url, TOOLS.text("datahub_presto_views")) == []


def test_partitions_have_their_values_places_and_columns(database_url, client, lake):
    rows = asked(database_url, """
        SELECT p."PART_NAME" AS name, p."CREATE_TIME" AS created, s."LOCATION" AS location, s."NUM_BUCKETS" AS buckets, d."SLIB" AS serde, d."SERDE_TYPE" AS kind,
               (SELECT array_agg("PART_KEY_VAL"::text ORDER BY "INTEGER_IDX") FROM "PARTITION_KEY_VALS" v WHERE v."PART_ID" = p."PART_ID") AS values,
               (SELECT json_object_agg("PARAM_KEY", "PARAM_VALUE") FROM "PARTITION_PARAMS" v WHERE v."PART_ID" = p."PART_ID") AS parameters,
               (SELECT json_object_agg("PARAM_KEY", "PARAM_VALUE") FROM "SD_PARAMS" v WHERE v."SD_ID" = p."SD_ID") AS sd_parameters,
               (SELECT json_object_agg("PARAM_KEY", "PARAM_VALUE") FROM "SERDE_PARAMS" v WHERE v."SERDE_ID" = s."SERDE_ID") AS serde_parameters,
               (SELECT array_agg("COLUMN_NAME" ORDER BY "INTEGER_IDX") FROM "CDS" JOIN "COLUMNS_V2" USING ("CD_ID") WHERE "CD_ID" = s."CD_ID") AS columns
        FROM "PARTITIONS" p JOIN "TBLS" t USING ("TBL_ID") JOIN "SDS" s ON s."SD_ID" = p."SD_ID" JOIN "SERDES" d USING ("SERDE_ID")
        WHERE t."TBL_NAME" = 'parts' ORDER BY 1""")

    names = client.get_partition_names("lake", "parts", -1)
    partitions = client.get_partitions("lake", "parts", -1)
    assert rows == [
        {"name": name, "created": p.createTime, "location": p.sd.location, "buckets": 3, "serde": "a.SerDe", "kind": 0, "values": p.values,
         "parameters": p.parameters, "sd_parameters": {"of": "sd"}, "serde_parameters": {"field.delim": "\t"},
         "columns": [field.name for field in p.sd.cols]} for name, p in zip(names, partitions, strict=True)]


def test_databases_owners_and_functions(database_url, client, lake):
    assert asked(database_url, """
        SELECT d."NAME", d."DESC", d."OWNER_NAME", d."OWNER_TYPE", "CTLG_NAME", "DB_LOCATION_URI", p."PARAM_KEY", p."PARAM_VALUE", "FUNC_NAME", "CLASS_NAME"
        FROM "DBS" d JOIN "DATABASE_PARAMS" p USING ("DB_ID") JOIN "FUNCS" USING ("DB_ID") JOIN "CTLGS" c ON c."NAME" = d."CTLG_NAME"
        WHERE c."CTLG_ID" = 1""") == [
            {"NAME": "lake", "DESC": "all", "OWNER_NAME": "ann", "OWNER_TYPE": "ROLE", "CTLG_NAME": "hive", "PARAM_KEY": "team",
             "DB_LOCATION_URI": client.get_database("lake").locationUri, "PARAM_VALUE": "ann", "FUNC_NAME": "f", "CLASS_NAME": "a.Class"}]


NUMBERS = """
SELECT "PART_ID" AS id FROM "PARTITIONS" UNION ALL SELECT "SD_ID" FROM "SDS" UNION ALL SELECT "FUNC_ID" FROM "FUNCS"
UNION ALL SELECT "CD_ID" FROM "CDS" UNION ALL SELECT "DB_ID" FROM "DBS" UNION ALL SELECT "TBL_ID" FROM "TBLS" ORDER BY 1"""


def test_numbers_stay_and_are_one_objects(database_url, client, lake):
    before = asked(database_url, NUMBERS)
    altered = client.get_table("lake", "plain")
    altered.parameters["more"] = "x"
    client.alter_table("lake", "plain", altered)
    client.alter_partition("lake", "parts", client.get_partitions("lake", "parts", 1)[0])

    assert asked(database_url, NUMBERS) == before
    for view, key in (("SDS", "SD_ID"), ("CDS", "CD_ID"), ("SERDES", "SERDE_ID"), ("PARTITIONS", "PART_ID")):
        [counts] = asked(database_url, f'SELECT count(*) AS rows, count(DISTINCT "{key}") AS numbers FROM "{view}"')
        assert counts["rows"] == counts["numbers"]


def test_transactions_locks_and_compactions_have_hives_letters(database_url, client, lake):
    opened = client.open_txns(T.OpenTxnRequest(2, "ann", "host", "agent")).txn_ids
    client.abort_txn(T.AbortTxnRequest(opened[1]))
    written = T.LockComponent(T.LockType.SHARED_WRITE, T.LockLevel.TABLE, "lake", "plain", operationType=T.DataOperationType.UPDATE, isTransactional=True)
    held = client.lock(T.LockRequest([written], opened[0], "ann", "host", "agent"))
    waits = client.lock(T.LockRequest([T.LockComponent(T.LockType.EXCLUSIVE, T.LockLevel.DB, "lake")], 0, "bob", "host"))
    asked(database_url, "INSERT INTO compaction_queue (id, catalog, db, \"table\", partition, state, type, enqueued_at, properties) "
          "SELECT place, 'hive', 'lake', 'parts', 'day=' || place, state, type, metastore_now(), '{\"key\": \"värde\", \"a\": \"\"}' "
          "FROM unnest(ARRAY['initiated', 'working', 'ready_for_cleaning', 'initiated'], ARRAY['major', 'minor', 'rebalance', 'abort_txn_cleanup']) "
          "WITH ORDINALITY AS s (state, type, place)", "public")
    asked(database_url, "INSERT INTO completed_compactions (id, catalog, db, \"table\", state, type, enqueued_at) "
          "SELECT place + 1000, 'hive', 'lake', 'plain', state, 'minor', now() FROM unnest(ARRAY['failed', 'succeeded', 'did_not_initiate', 'refused', 'aborted']) "
          "WITH ORDINALITY AS s (state, place)", "public")

    [shown] = [each for each in client.get_open_txns_info().open_txns if each.id == opened[0]]
    assert asked(database_url, 'SELECT "TXN_ID", "TXN_STATE", "TXN_STARTED", "TXN_USER", "TXN_AGENT_INFO", "TXN_TYPE" FROM "TXNS" ORDER BY 1') == [
        {"TXN_ID": number, "TXN_STATE": state, "TXN_STARTED": shown.startedTime, "TXN_USER": "ann", "TXN_AGENT_INFO": "agent", "TXN_TYPE": 0}
        for number, state in zip(opened, "oa", strict=True)]
    assert asked(database_url, 'SELECT * FROM "TXN_COMPONENTS"') == [
        {"TC_TXNID": opened[0], "TC_DATABASE": "lake", "TC_TABLE": "plain", "TC_PARTITION": None, "TC_OPERATION_TYPE": "u", "TC_WRITEID": None}]
    assert [tuple(row.values()) for row in asked(database_url, 'SELECT "HL_LOCK_EXT_ID", "HL_TXNID", "HL_TABLE", "HL_LOCK_STATE", "HL_LOCK_TYPE", '
                                                 '"HL_LAST_HEARTBEAT" > 0, "HL_BLOCKEDBY_EXT_ID" FROM "HIVE_LOCKS" ORDER BY 1')] == [
        (held.lockid, opened[0], "plain", "a", "w", False, None), (waits.lockid, 0, None, "w", "e", True, held.lockid)]
    assert [tuple(row.values()) for row in asked(database_url, 'SELECT "CQ_PARTITION", "CQ_STATE", "CQ_TYPE", "CQ_TBLPROPERTIES" FROM "COMPACTION_QUEUE" ORDER BY "CQ_ID"')] == [
        (f"day={place}", state, kind, "2:1:a0:3:key5:värde") for place, (state, kind) in enumerate(("ia", "wi", "rr", "ic"), 1)]
    assert [tuple(row.values()) for row in asked(database_url, 'SELECT "CC_STATE", "CC_TYPE", "CC_TBLPROPERTIES" FROM "COMPLETED_COMPACTIONS" ORDER BY "CC_ID"')] == [
        (state, "i", None) for state in "fsacx"]


def test_a_role_that_may_read_the_views_reads_nothing_else(database_url, lake):
    asked(database_url, "CREATE ROLE lineage_reader; GRANT USAGE ON SCHEMA hive TO lineage_reader; GRANT SELECT ON ALL TABLES IN SCHEMA hive TO lineage_reader")
    try:
        for name in of_hive():
            asked(database_url, f'SET ROLE lineage_reader; SELECT * FROM "{name}"')
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            asked(database_url, "SET ROLE lineage_reader; SELECT * FROM public.tables")
    finally:
        asked(database_url, "DROP OWNED BY lineage_reader; DROP ROLE lineage_reader")
