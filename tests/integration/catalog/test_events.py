"""Each change of the catalog has the event that Hive writes, with the objects that the catalog has."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.support.catalog_events import decoded, events, last_id, told

ORC = {"inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
       "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"}


def sd(*columns, **more):
    return T.StorageDescriptor(cols=[T.FieldSchema(name, "int", 'ü "q" \\ 𝄞') for name in columns or ("id",)], **{
        "serdeInfo": T.SerDeInfo("s", "lib", {"a": 'x"y\n'}), "bucketCols": ["id"], "sortCols": [T.Order("id", 1)], **ORC, **more})


def table(name="t", *keys, **more):
    return T.Table(tableName=name, **{
        "partitionKeys": [T.FieldSchema(key, "string", None) for key in keys], "tableType": "EXTERNAL_TABLE", "dbName": "d", "sd": sd(), "parameters": {"EXTERNAL": "TRUE", "k": "ä"}, **more})


def part(*values, name="t", **more):
    return T.Partition(values=list(values), dbName="d", tableName=name, **{"sd": sd(), "parameters": {"p": "1"}, **more})


@pytest.fixture
def d(client):
    client.create_database(T.Database(name="d", description="ö", parameters={"a": "b"}))
    return client


@pytest.fixture
def parted(d):
    d.create_table(table("t", "a", "b"))
    d.add_partitions([part("1", "x"), part("1", "y/ä"), part("2", "x")])
    return d


def stored(client, name="t"):
    return client.get_table("d", name)


def kinds(found):
    return [kind for kind, *_ in found]


def test_databases(client):
    [(kind, db, name, message)] = told(client, lambda: client.create_database(T.Database(name="D1", parameters={"a": "b"})))
    assert (kind, db, name, message) == ("CREATE_DATABASE", "d1", None, {"db": message["db"]})
    before = client.get_database("d1")
    assert message["db"] == before
    client_owner = T.Database(name="d1", parameters={"a": "c"}, ownerName="o", ownerType=1)
    [(kind, _, _, message)] = told(client, lambda: client.alter_database("d1", client_owner))
    assert (kind, message["dbObjBefore"], message["dbObjAfter"]) == ("ALTER_DATABASE", before, client.get_database("d1"))
    after = client.get_database("d1")
    [(kind, db, _, message)] = told(client, lambda: client.drop_database("d1", True, False))
    assert (kind, db, message["db"]) == ("DROP_DATABASE", "d1", after)


def test_data_connectors(client):
    url, drop = "jdbc:postgresql://host/db", T.DropDataConnectorRequest
    connector = T.DataConnector("Pg", "postgres", url)
    steps = [("CREATE_DATACONNECTOR", lambda: client.create_dataconnector_req(T.CreateDataConnectorRequest(connector))),
             ("ALTER_DATACONNECTOR", lambda: client.alter_dataconnector_req(T.AlterDataConnectorRequest("PG", T.DataConnector(url="u")))),
             ("DROP_DATACONNECTOR", lambda: client.drop_dataconnector_req(drop("pg")))]
    for kind, step in steps:
        assert told(client, step) == [(kind, None, None, {"connector": "pg"})]
    assert told(client, lambda: client.drop_dataconnector_req(drop("pg", True))) == []
    assert told(client, client.get_dataconnectors) == []


def test_a_database_goes_after_what_is_in_it(d):
    for name in ("a", "b"):
        d.create_table(table(name))
    d.create_function(T.Function("f", "d", "org.F", "o", 1, 0, 1, []))
    found = told(d, lambda: d.drop_database("d", True, True))
    assert [(kind, db, name) for kind, db, name, _ in found] == [
        ("DROP_FUNCTION", "d", None), ("DROP_TABLE", "d", "a"), ("DROP_TABLE", "d", "b"), ("DROP_DATABASE", "d", None)]


def test_tables(d):
    [(kind, db, name, message)] = told(d, lambda: d.create_table(table("T")))
    first = stored(d)
    assert (kind, db, name) == ("CREATE_TABLE", "d", "t")
    assert message == {"db": "d", "table": "t", "tableType": "EXTERNAL_TABLE", "tableObj": first, "files": []}
    [(kind, _, _, message)] = told(d, lambda: d.alter_table("d", "t", table("t", sd=first.sd, parameters={"EXTERNAL": "TRUE", "k": "2"})))
    second = stored(d)
    assert (kind, message["tableObjBefore"], message["tableObjAfter"], message["isTruncateOp"]) == (
        "ALTER_TABLE", first, second, "false")
    [(kind, db, name, message)] = told(d, lambda: d.alter_table("d", "t", table("u", sd=first.sd)))
    third = stored(d, "u")
    assert (kind, name, message["tableObjBefore"], message["tableObjAfter"]) == ("ALTER_TABLE", "u", second, third)
    [(kind, _, name, message)] = told(d, lambda: d.truncate_table("d", "u", None))
    assert (kind, name, message["isTruncateOp"], message["tableObjAfter"]) == ("ALTER_TABLE", "u", "true", stored(d, "u"))
    last = stored(d, "u")
    [(kind, _, name, message)] = told(d, lambda: d.drop_table("d", "u", True))
    assert (kind, name, message["tableObj"]) == ("DROP_TABLE", "u", last)


def test_a_table_that_moves(d):
    d.create_table(table("t", tableType="MANAGED_TABLE", parameters={}))
    [(kind, _, name, message)] = told(d, lambda: d.alter_table(
        "d", "t", table("moved", tableType="MANAGED_TABLE", parameters={}, sd=stored(d).sd)))
    assert (kind, name, message["tableObjAfter"]) == ("ALTER_TABLE", "moved", stored(d, "moved"))
    assert message["tableObjAfter"].sd.location.endswith("/moved")


def test_partitions(d):
    d.create_table(table("t", "a", "b"))
    [(kind, db, name, message)] = told(d, lambda: d.add_partitions([part("1", "x"), part("1", "y/ä", sd=sd("id", "n"))]))
    assert (kind, db, name, message["tableObj"]) == ("ADD_PARTITION", "d", "t", stored(d))
    assert message["partitions"] == [{"a": "1", "b": "x"}, {"a": "1", "b": "y/ä"}]
    assert message["partitionList"] == [d.get_partition("d", "t", ["1", "x"]), d.get_partition("d", "t", ["1", "y/ä"])]
    [(kind, _, _, message)] = told(d, lambda: d.append_partition("d", "t", ["2", "x"]))
    assert (kind, message["partitions"]) == ("ADD_PARTITION", [{"a": "2", "b": "x"}])
    again = T.AddPartitionsRequest("d", "t", [part("1", "x"), part("3", "x")], True)
    [(_, _, _, message)] = told(d, lambda: d.add_partitions_req(again))
    assert message["partitions"] == [{"a": "3", "b": "x"}]
    assert told(d, lambda: d.add_partitions_req(again)) == []


def test_altered_partitions(parted):
    d = parted
    before = [d.get_partition("d", "t", ["1", value]) for value in ("x", "y/ä")]
    changed = [part("1", value, parameters={"p": "2"}) for value in ("x", "y/ä")]
    found = told(d, lambda: d.alter_partitions("d", "t", changed))
    assert kinds(found) == ["ALTER_PARTITION"] * 2
    assert [message["partitionObjBefore"] for *_, message in found] == before
    assert [message["partitionObjAfter"] for *_, message in found] == [
        d.get_partition("d", "t", ["1", value]) for value in ("x", "y/ä")]
    [(kind, _, _, message)] = told(d, lambda: d.rename_partition("d", "t", ["2", "x"], part("9", "x")))
    assert (kind, message["keyValues"], message["partitionObjAfter"]) == (
        "ALTER_PARTITION", {"a": "2", "b": "x"}, d.get_partition("d", "t", ["9", "x"]))
    found = told(d, lambda: d.truncate_table("d", "t", ["a=9/b=x"]))
    assert [(kind, message["isTruncateOp"], message["keyValues"]["a"]) for kind, _, _, message in found] == [
        ("ALTER_PARTITION", "true", "9")]
    assert len(told(d, lambda: d.truncate_table("d", "t", None))) == 3


@pytest.mark.parametrize("server_settings", [{"hive.metastore.alterPartitions.notification.v2.enabled": "true"}], indirect=True)
def test_altered_partitions_as_hive_4_1_tells_them(parted):
    changed = [part("1", value, parameters={"p": "2"}) for value in ("x", "y/ä")]
    [(kind, _, _, message)] = told(parted, lambda: parted.alter_partitions("d", "t", changed))
    assert kind == "ALTER_PARTITIONS"
    assert message["partitions"] == [{"a": "1", "b": "x"}, {"a": "1", "b": "y/ä"}]
    assert message["partitionList"] == [parted.get_partition("d", "t", ["1", value]) for value in ("x", "y/ä")]


@pytest.fixture
def server_settings(request):
    return getattr(request, "param", {})


def test_dropped_partitions(parted):
    """Case 270 as well: a table that goes has one event for itself and its partitions."""
    names = T.RequestPartsSpec(names=["a=1/b=x", "a=1/b=y%2Fä"])
    [(kind, _, _, message)] = told(parted, lambda: parted.drop_partitions_req(T.DropPartitionsRequest("d", "t", names)))
    assert (kind, message["partitions"], message["tableObj"]) == (
        "DROP_PARTITION", [{"a": "1", "b": "x"}, {"a": "1", "b": "y/ä"}], stored(parted))
    assert kinds(told(parted, lambda: parted.drop_table("d", "t", True))) == ["DROP_TABLE"]


def test_exchanged_partitions(d, tmp_path):
    """Case 274."""
    for name in ("t", "u"):
        d.create_table(table(name, "a", "b"))
    for value in "xy":
        added = d.append_partition("d", "t", ["1", value])
        (tmp_path / added.sd.location.removeprefix(tmp_path.as_uri()).strip("/")).mkdir(parents=True, exist_ok=True)
    found = told(d, lambda: d.exchange_partitions({"a": "1"}, "d", "t", "d", "u"))
    assert [(kind, name, message["partitions"]) for kind, _, name, message in found] == [
        ("ADD_PARTITION", "u", [{"a": "1", "b": "x"}, {"a": "1", "b": "y"}]),
        ("DROP_PARTITION", "t", [{"a": "1", "b": "x"}]), ("DROP_PARTITION", "t", [{"a": "1", "b": "y"}])]
    assert found[0][3]["partitionList"] == d.get_partitions("d", "u", -1)


def test_functions(d):
    [(kind, db, name, message)] = told(d, lambda: d.create_function(
        T.Function("F", "d", "org.F", "o", 1, 0, 1, [T.ResourceUri(1, "s3://x")])))
    assert (kind, db, name, message["functionObj"]) == ("CREATE_FUNCTION", "d", None, d.get_function("d", "f"))
    assert told(d, lambda: d.alter_function("d", "f", T.Function("f", "d", "org.G", "o", 1, 0, 1, []))) == []
    assert [(kind, message) for kind, _, _, message in told(d, lambda: d.drop_function("d", "f"))] == [
        ("DROP_FUNCTION", {"db": "d", "functionName": "f"})]


def test_constraints(d):
    key = T.SQLPrimaryKey("d", "t", "id", 1, "pk1", False, False, True)
    found = told(d, lambda: d.create_table_with_constraints(
        table("t"), [key], [], [], [T.SQLNotNullConstraint("hive", "d", "t", "id", "nn1", True, True, True)], [], []))
    assert kinds(found) == ["CREATE_TABLE", "ADD_PRIMARYKEY", "ADD_NOTNULLCONSTRAINT"]
    assert found[1][3] == {"primaryKeyList": d.get_primary_keys(T.PrimaryKeysRequest("d", "t")).primaryKeys}
    d.create_table(table("u"))
    foreign = T.SQLForeignKey("d", "t", "id", "d", "u", "id", 1, 0, 0, "fk1", "pk1", True, True, True)
    [(kind, _, name, message)] = told(d, lambda: d.add_foreign_key(T.AddForeignKeyRequest([foreign])))
    assert (kind, name, message["foreignKeyList"][0].fk_name, message["foreignKeyList"][0].pk_name) == (
        "ADD_FOREIGNKEY", "t", "fk1", "pk1")
    for kind, action in {
        "ADD_UNIQUECONSTRAINT": lambda: d.add_unique_constraint(T.AddUniqueConstraintRequest(
            [T.SQLUniqueConstraint("hive", "d", "u", "id", 1, "uk1", True, True, True)])),
        "ADD_DEFAULTCONSTRAINT": lambda: d.add_default_constraint(T.AddDefaultConstraintRequest(
            [T.SQLDefaultConstraint("hive", "d", "u", "id", "1", "dc1", True, True, True)])),
        "ADD_CHECKCONSTRAINT": lambda: d.add_check_constraint(T.AddCheckConstraintRequest(
            [T.SQLCheckConstraint("hive", "d", "u", "id", "id > 0", "cc1", True, True, True)])),
        "DROP_CONSTRAINT": lambda: d.drop_constraint(T.DropConstraintRequest("d", "u", "uk1")),
    }.items():
        assert kinds(told(d, action)) == [kind]


def test_catalogs(client, tmp_path):
    found = told(client, lambda: client.create_catalog(T.CreateCatalogRequest(T.Catalog("c", None, (tmp_path / "c").as_uri()))))
    assert [(kind, db) for kind, db, *_ in found] == [("CREATE_DATABASE", "default"), ("CREATE_CATALOG", None)]
    [(kind, _, _, message)] = told(client, lambda: client.alter_catalog(T.AlterCatalogRequest("c", T.Catalog("c", "new", None))))
    assert (kind, message["catObjBefore"].description, message["catObjAfter"].description) == ("ALTER_CATALOG", None, "new")
    assert kinds(told(client, lambda: client.drop_catalog(T.DropCatalogRequest("c")))) == ["DROP_DATABASE", "DROP_CATALOG"]
    assert {one.catName for one in events(client)} == {"c"}


def statistics(partition=None):
    return T.ColumnStatistics(T.ColumnStatisticsDesc(partition is None, "d", "t", partition), [T.ColumnStatisticsObj(
        "id", "int", T.ColumnStatisticsData(longStats=T.LongColumnStatsData(1, 2, 3, 4, bitVectors=b"\x00\xffa")))])


def test_statistics(parted):
    d = parted
    [(kind, _, name, message)] = told(d, lambda: d.update_table_column_statistics(statistics()))
    assert (kind, name, message["tableObj"], message["database"]) == ("UPDATE_TBL_COL_STAT_EVENT", "t", stored(d), "d")
    assert message["colStats"].statsObj == d.get_table_column_statistics("d", "t", "id").statsObj
    assert "COLUMN_STATS_ACCURATE" in message["parameters"]
    [(kind, _, _, message)] = told(d, lambda: d.update_partition_column_statistics(statistics("a=1/b=x")))
    assert (kind, message["partVals"], message["colStats"].statsDesc.partName) == (
        "UPDATE_PART_COL_STAT_EVENT", ["1", "x"], "a=1/b=x")
    assert [(kind, message) for kind, _, _, message in told(
        d, lambda: d.delete_partition_column_statistics("d", "t", "a=1/b=x", "id", "hive"))] == [
        ("DELETE_PART_COL_STAT_EVENT", {"database": "d", "colName": "id", "partName": "a=1/b=x", "partValues": ["1", "x"]})]
    assert kinds(told(d, lambda: d.delete_table_column_statistics("d", "t", None, "hive"))) == ["DELETE_TBL_COL_STAT_EVENT"]


def fired(client, data, values=None, **more):
    return client.fire_listener_event(T.FireEventRequest(True, data, "d", "t", values, **more)).eventIds


def test_inserts_that_clients_report(parted):
    """Case 273."""
    d, files = parted, ["s3://b/f1", "s3://b/f]2"]
    at = last_id(d)
    data = T.FireEventRequestData(insertData=T.InsertEventRequestData(False, files, ["c1", "c2"]))
    assert fired(d, data, ["1", "x"]) == [at + 1]
    bulk = [T.InsertEventRequestData(None, ["f"], None, None, [*values]) for values in (("1", "x"), ("2", "x"))]
    assert fired(d, T.FireEventRequestData(insertDatas=bulk)) == [at + 2, at + 3]
    assert fired(d, data) == [at + 4]
    one, two, three, four = [decoded(event) for event in events(d, at)]
    assert {event.eventType for event in events(d, at)} == {"INSERT"}
    assert (one["tableObj"], one["ptnObj"], one["replace"]) == (stored(d), d.get_partition("d", "t", ["1", "x"]), "false")
    assert one["files"] == [f"{file}###" for file in files]
    assert (two["replace"], three["ptnObj"].values, four["ptnObj"]) == ("true", ["2", "x"], None)
    for wrong in ({"values": ["7", "x"]}, {"values": ["1"]}):
        with pytest.raises(TApplicationException):
            fired(d, data, wrong["values"])
    with pytest.raises(TApplicationException, match="Partition values must be set"):
        fired(d, T.FireEventRequestData(insertDatas=[T.InsertEventRequestData(True, ["f"])]))
    with pytest.raises(TApplicationException, match="x table not found"):
        d.fire_listener_event(T.FireEventRequest(True, data, "d", "x"))
    assert last_id(d) == at + 4


def test_tables_that_clients_read_anew(parted):
    d, at = parted, last_id(parted)
    assert fired(d, T.FireEventRequestData(refreshEvent=True), ["1", "x"], tblParams={"mine": "7"}) == [at + 1]
    assert fired(d, T.FireEventRequestData(refreshEvent=False)) == [at + 2]
    assert fired(d, T.FireEventRequestData(refreshEvent=True), batchPartitionValsForRefresh=[["1", "x"], ["2", "x"]]) == [at + 3]
    one, two, three = [decoded(event) for event in events(d, at)]
    assert (one["refreshEvent"], one["ptnObj"].values, one["tableObj"].parameters["mine"]) == ("true", ["1", "x"], "7")
    assert (two["refreshEvent"], two["ptnObj"], "mine" in stored(d).parameters) == ("false", None, False)
    assert [each.values for each in three["partitionList"]] == [["1", "x"], ["2", "x"]]


def test_a_refused_change_has_no_event(parted):
    """Case 269, for each kind of change that PostgreSQL's transaction has begun before it is refused."""
    d, at = parted, last_id(parted)
    for refused in (lambda: d.create_table(table("t", "a")), lambda: d.drop_table("d", "x", True),
                    lambda: d.add_partitions([part("7", "x"), part("1", "x")]), lambda: d.drop_database("d", True, False),
                    lambda: d.alter_partitions("d", "t", [part("1", "x"), part("8", "x")]),
                    lambda: d.create_database(T.Database(name="d")), lambda: d.alter_table("d", "t", table("t", "a", sd=stored(d).sd))):
        with pytest.raises((T.MetaException, T.InvalidOperationException, T.AlreadyExistsException, T.NoSuchObjectException)):
            refused()
    assert last_id(d) == at


def test_what_is_asked_for(parted):
    """Cases 267, 268 and 272."""
    d = parted
    d.create_table(table("u"))
    assert [event.eventType for event in events(d, 0, maxEvents=2, eventTypeSkipList=["CREATE_DATABASE"])] == [
        "CREATE_TABLE", "ADD_PARTITION"]
    assert [event.tableName for event in events(d, 0, eventTypeList=["CREATE_TABLE"], dbName="D", tableNames=["U"])] == ["u"]
    count = d.get_notification_events_count(T.NotificationEventsCountRequest(1, "d", "hive", tableNames=["t"])).eventsCount
    assert count == len(events(d, 1, catName="hive", dbName="d", tableNames=["t"])) == 2


@pytest.mark.parametrize("server_settings", [{"hive.metastore.event.message.factory":
                                              "org.apache.hadoop.hive.metastore.messaging.json.gzip.GzipJSONMessageEncoder"}], indirect=True)
def test_compressed_messages(parted):
    assert {event.messageFormat for event in events(parted)} == {"gzip(json-2.0)"}
    assert [decoded(event)["tableObj"] for event in events(parted) if event.eventType == "CREATE_TABLE"] == [stored(parted)]


@pytest.mark.parametrize("server_settings", [{"hive.repl.cm.enabled": "true"}], indirect=True)
def test_files_that_replicas_need_are_told(client, tmp_path):
    """Of managed tables of a source of replication, with the checksum by which a replica finds a file later."""
    for name, parameters in {"d": {"repl.source.for": "p"}, "e": {}}.items():
        client.create_database(T.Database(name=name, parameters=parameters))
    for place in ("t", "t/x", "p"):
        (tmp_path / place).mkdir()
        for file in ("f", "_hidden"):
            (tmp_path / place / file).write_text("content")
    checksum = "9a0364b9e99bb480dd25e1f0284c8555"  # md5 of "content"

    def created(**more):
        [(_, _, _, message)] = told(client, lambda: client.create_table(table(**{
            "sd": sd(location=f"{tmp_path.as_uri()}/t"), "tableType": "MANAGED_TABLE", "parameters": {}, **more})))
        return message["files"]

    [file] = created(name="t")
    at, found, root, below = file.split("#")
    assert (at.rsplit("/", 2)[1:], below) == (["t", "f"], "")
    assert (found, root) == (checksum, f"{tmp_path.as_uri()}/warehouse/.cmroot")
    client.drop_table("d", "t", False)
    assert created(name="t", dbName="e") == []
    client.drop_table("e", "t", False)
    assert created(name="x", tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"}) == []
    created(name="u", sd=sd(), partitionKeys=[T.FieldSchema("k", "string", None)])
    [(_, _, _, message)] = told(client, lambda: client.add_partition(part("1", name="u", sd=sd(location=f"{tmp_path.as_uri()}/p"))))
    [of_partition] = message["partitionFiles"]
    assert of_partition["partitionName"] == "k=1"
    assert [one.split("#")[1] for one in of_partition["files"]] == [checksum]


@pytest.mark.parametrize("server_settings", [{"hive.metastore.transactional.event.listeners": ""}], indirect=True)
def test_off(parted):
    assert events(parted) == []
    assert fired(parted, T.FireEventRequestData(refreshEvent=True)) == []


def test_what_impala_asks_for_before_it_reads_events(client):
    """It refuses to begin without these."""
    assert [client.get_config_value(key, "unset") for key in (
        "hive.metastore.dml.events", "hive.metastore.notifications.add.thrift.objects", "metastore.catalog.default")] == [
        "true", "true", "hive"]


def test_by_default_transactions_have_no_events(client):
    """Their calls are the hottest of all: they have events where Hive's listener is named."""
    client.commit_txn(T.CommitTxnRequest(client.open_txns(T.OpenTxnRequest(1, "u", "h")).txn_ids[0]))
    assert events(client) == []


def test_ids_have_no_gaps_and_appear_in_their_order(server, d):
    def work(number):
        with MetastoreClient(server.thrift_uri) as mine:
            for step in range(10):
                mine.create_table(table(f"t{number}_{step}", "a", "b"))
                with pytest.raises(T.AlreadyExistsException):
                    mine.create_table(table(f"t{number}_{step}", "a", "b"))
                mine.drop_table("d", f"t{number}_{step}", True)

    last = start = last_id(d)
    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, number) for number in range(4)]
        while not all(one.done() for one in working):
            ids = [event.eventId for event in events(d, last)]
            assert ids == list(range(last + 1, last + 1 + len(ids)))
            last += len(ids)
    for one in working:
        one.result()
    order = {name: [kind.eventType for kind in events(d, start) if kind.tableName == name] for name in ("t0_0", "t3_9")}
    assert order == {name: ["CREATE_TABLE", "DROP_TABLE"] for name in order}
    assert last_id(d) == start + 80
