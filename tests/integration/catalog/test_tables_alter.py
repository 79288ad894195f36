"""Altering tables (CAT-A1 to CAT-A6)."""

import threading

import pytest
from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.integration.catalog.conftest import ORC

ACID = {"transactional": "true"}
EXTERNAL = {"EXTERNAL": "TRUE"}


def altered(hive, change, name="t", db="d", context=None):
    """Read, change, alter; the table under its new name."""
    table = hive.get_table(db, name)
    change(table)
    hive.alter_table_with_environment_context(db, name, table, T.EnvironmentContext(context))
    return hive.get_table(table.dbName, table.tableName)


def setting(**fields):
    def change(table):
        for name, value in fields.items():
            setattr(table, name, value)
    return change


def columns(text):
    pairs = [column.split(" ", 1) for column in text.split(", ")] if text else []

    def change(table):
        table.sd.cols = [T.FieldSchema(*pair) for pair in pairs]
    return change


def column_text(sd):
    return ", ".join(f"{column.name} {column.type}" for column in sd.cols)


def parameters(**values):
    def change(table):
        table.parameters = {**table.parameters, **values}
    return change


def test_what_may_change(d):  # CAT-107
    created = d.create(parameters={"a": "1", "b": "2"})

    def change(table):
        table.owner, table.retention, table.lastAccessTime, table.createTime = "bob", 7, 8, 9
        table.viewOriginalText, table.viewExpandedText = "o", "e"
        table.parameters = {"b": "3"}
        table.sd.inputFormat, table.sd.serdeInfo.serializationLib = "in", "lib"
        table.ownerType = T.PrincipalType.ROLE
    found = altered(d, change)
    assert (found.owner, found.retention, found.lastAccessTime, found.ownerType) == ("bob", 7, 8, T.PrincipalType.ROLE)
    assert (found.viewOriginalText, found.viewExpandedText, found.sd.inputFormat) == ("o", "e", "in")
    assert (found.createTime, found.id) == (created.createTime, created.id)
    assert found.parameters.pop("transient_lastDdlTime")
    assert found.parameters == {"b": "3", "numFiles": "0", "totalSize": "0", "numFilesErasureCoded": "0"}


def test_what_the_sender_does_not_know_stays(d):
    created = d.create(ownerType=T.PrincipalType.ROLE, writeId=5)
    d.alter_table("d", "t", d.table(ownerType=None, writeId=-1, sd={"location": created.sd.location}))
    found = d.get_table("d", "t")
    assert (found.ownerType, found.writeId) == (T.PrincipalType.ROLE, 5)


def test_every_dialect(d):
    created = d.create()
    for number, call in enumerate((
            lambda table: d.alter_table("d", "t", table),
            lambda table: d.alter_table_with_environment_context("@hive#d", "T", table, T.EnvironmentContext()),
            lambda table: d.alter_table_with_cascade("d", "t", table, False),
            lambda table: d.alter_table_req(T.AlterTableRequest(dbName="d", tableName="t", table=table)))):
        created.parameters = {"n": str(number)}
        call(created)
        assert d.get_table("d", "t").parameters["n"] == str(number)


def test_rename_moves_its_directory(d):  # CAT-108
    directory = d.path(d.create().sd.location)
    (directory / "data").write_text("x")
    found = altered(d, setting(tableName="New"))
    assert found.sd.location == f"file:{d.warehouse}/d.db/new"
    assert (d.warehouse / "d.db" / "new" / "data").read_text() == "x"
    assert not directory.exists()
    with pytest.raises(T.NoSuchObjectException):
        d.get_table("d", "t")


def test_move_to_another_database(d):  # CAT-109
    d.create()
    d.database("other")
    assert altered(d, setting(dbName="other")).sd.location == f"file:{d.warehouse}/other.db/t"
    assert (d.warehouse / "other.db" / "t").is_dir()
    assert d.get_all_tables("d") == []


@pytest.mark.parametrize("fields", [
    {"parameters": EXTERNAL}, {"sd": {"location": "/CUSTOM"}}, {"parameters": {"table_type": "ICEBERG"}},
    {"tableType": "VIRTUAL_VIEW"}], ids=["external", "custom", "iceberg", "view"])
def test_rename_leaves_the_directory(d, tmp_path, fields):  # CAT-110
    if "sd" in fields:
        fields = {"sd": {"location": str(tmp_path / "custom")}}
    before = d.create(**fields).sd.location
    assert altered(d, setting(tableName="new")).sd.location == before
    if before:
        assert d.path(before).is_dir()


def test_rename_without_a_directory(d):
    d.path(d.create().sd.location).rmdir()
    assert altered(d, setting(tableName="new")).sd.location == f"file:{d.warehouse}/d.db/new"


def test_change_of_location_moves_nothing(d, tmp_path):  # CAT-111
    directory = d.path(d.create(parameters=EXTERNAL).sd.location)
    (directory / "data").write_text("x")

    def change(table):
        table.sd.location = str(tmp_path / "new")
    assert altered(d, change).sd.location == f"file:{tmp_path}/new"
    assert (directory / "data").exists()
    assert not (tmp_path / "new").exists()


def test_rename_with_partitions(d, tmp_path):  # CAT-112
    d.create(keys="p:string q:int")
    d.add("a b%", "1")
    outside = d.append_partition("d", "t", ["x", "2"])
    outside.sd.location = str(tmp_path / "outside")
    d.alter_partition("d", "t", outside)
    (d.warehouse / "d.db" / "t" / "p=a b%25" / "q=1" / "data").write_text("x")
    altered(d, setting(tableName="new"))
    found = {part.values[0]: part for part in d.get_partitions("d", "new", -1)}
    assert found["a b%"].sd.location == f"file:{d.warehouse}/d.db/new/p=a b%25/q=1"
    assert (d.path(found["a b%"].sd.location) / "data").read_text() == "x"
    assert found["x"].sd.location == f"file:{tmp_path}/outside"
    assert found["x"].values == ["x", "2"]


def test_columns_change_for_the_table_only(d):  # CAT-113
    d.create(keys="p:string")
    d.add("a")
    for text in ("id int, title string", "id int", "id int, title string, extra bigint"):
        assert column_text(altered(d, columns(text)).sd) == text
    assert d.get_table("d", "t").partitionKeys == [T.FieldSchema("p", "string")]
    assert column_text(d.get_partition("d", "t", ["a"]).sd) == "id int, name string"
    assert altered(d, columns("")).sd.cols == []


def test_cascade(d):  # CAT-114
    d.create(keys="p:string")
    for value in ("a", "b"):
        d.add(value)
    other = d.get_partition("d", "t", ["b"])
    other.sd.inputFormat = "in"
    d.alter_partition("d", "t", other)
    altered(d, columns("id int, Title string"), context={"CASCADE": "true"})
    assert [column_text(part.sd) for part in d.get_partitions("d", "t", -1)] == ["id int, title string"] * 2
    assert d.get_partition("d", "t", ["b"]).sd.inputFormat == "in"
    table = d.get_table("d", "t")
    columns("id int")(table)
    d.alter_table_with_cascade("d", "t", table, True)
    assert [column_text(part.sd) for part in d.get_partitions("d", "t", -1)] == ["id int"] * 2
    assert len(d.get_partitions("d", "t", -1)) == 2


def keys(text):
    def change(table):
        table.partitionKeys = [T.FieldSchema(*key.split(":")) for key in text.split()]
    return change


def test_partition_keys(d):  # CAT-115, CAT-116
    d.create(keys="p:string q:int")
    assert altered(d, keys("p:varchar(5):said q:int")).partitionKeys == [
        T.FieldSchema("p", "varchar(5)", "said"), T.FieldSchema("q", "int")]
    for wrong in ("p:string", "p:string q:int r:int", "p:string x:int", ""):
        with pytest.raises(T.InvalidOperationException, match="partition keys can not be changed"):
            altered(d, keys(wrong))
    assert altered(d, keys("p:string"), context={"allow_partition_key_change": "true"})


@pytest.mark.parametrize(("old", "new", "fits"), [
    ("int", "bigint", True), ("bigint", "int", False), ("string", "int", False), ("int", "string", True),
    ("decimal(10,2)", "decimal(4,0)", True), ("array<int>", "array<string>", True), ("struct<a:int>", "struct<b:int>", True),
    ("int", "boolean", False), ("int", "array<int>", False), ("double", "float", False), ("string", "double", True),
    ("void", "date", True), ("date", "string", True), ("varchar(20)", "char(5)", True), ("string", "date", False)])
def test_column_types(d, old, new, fits):  # CAT-117
    d.create(columns=f"a {old}")
    if fits:
        assert column_text(altered(d, columns(f"a {new}")).sd) == f"a {new}"
    else:
        with pytest.raises(T.InvalidOperationException, match="respective positions : a"):
            altered(d, columns(f"a {new}"))


def in_sd(**fields):
    def change(table):
        for name, value in fields.items():
            setattr(table.sd, name, value)
    return change


REFUSED = {
    "no db": (setting(dbName=None), T.MetaException), "no name": (setting(tableName=None), T.MetaException),  # CAT-118
    "no sd": (setting(sd=None), T.MetaException), "no columns": (in_sd(cols=None), T.MetaException),
    "no serde": (in_sd(serdeInfo=None), T.MetaException), "no location": (in_sd(location=None), T.MetaException),
    "no column type": (in_sd(cols=[T.FieldSchema("a", None)]), T.MetaException),
    "odd name": (setting(tableName="a\\b"), T.InvalidOperationException),  # CAT-120
    "empty name": (setting(tableName=""), T.InvalidOperationException),
    "unknown type": (columns("a xyz"), T.InvalidOperationException),  # CAT-121
    "bucket by unknown column": (in_sd(bucketCols=["nope"]), T.InvalidOperationException),
    "taken name": (setting(tableName="taken"), T.InvalidOperationException),  # CAT-123
    "unknown db": (setting(dbName="nope"), T.InvalidOperationException),
    "other catalog": (setting(catName="nope"), T.InvalidOperationException)}  # CAT-124


@pytest.mark.parametrize(("change", "error"), REFUSED.values(), ids=REFUSED)
def test_refused(d, change, error):
    created = d.create()
    d.create("taken")
    with pytest.raises(error):
        altered(d, change)
    assert d.get_table("d", "t") == created
    assert sorted(path.name for path in (d.warehouse / "d.db").iterdir()) == ["t", "taken"]


def test_taken_name_is_said_in_the_words_that_iceberg_looks_for(d):
    d.create()
    d.create("taken")
    with pytest.raises(T.InvalidOperationException) as refused:
        altered(d, setting(tableName="taken"))
    assert refused.value.message == "new table d.taken already exists"


@pytest.mark.parametrize(("db", "name", "error"), [
    (None, "t", T.MetaException), ("d", None, T.MetaException), ("nope", "t", T.InvalidOperationException),  # CAT-119, CAT-122
    ("d", "nope", T.InvalidOperationException), ("@nope#d", "t", T.InvalidOperationException)])  # CAT-124
def test_alter_unknown(d, db, name, error):
    table = d.create()
    table.catName = None
    with pytest.raises((error, TApplicationException)) as refused:
        d.alter_table(db, name, table)
    assert isinstance(refused.value, error)


def test_rename_to_an_occupied_directory(d):
    directory = d.path(d.create().sd.location)
    (directory / "data").write_text("x")
    (d.warehouse / "d.db" / "new").mkdir()
    (d.warehouse / "d.db" / "new" / "foreign").write_text("y")
    with pytest.raises(T.InvalidOperationException, match="already exists"):
        altered(d, setting(tableName="new"))
    assert (directory / "data").exists()
    assert (d.warehouse / "d.db" / "new" / "foreign").exists()
    assert d.get_all_tables("d") == ["t"]


def expecting(key, value):
    return {"expected_parameter_key": key, "expected_parameter_value": value}


def test_compare_and_set(d):  # CAT-125
    d.create(parameters={"metadata_location": "loc1"})
    found = altered(d, parameters(metadata_location="loc2"), context=expecting("metadata_location", "loc1"))
    assert found.parameters["metadata_location"] == "loc2"
    with pytest.raises(T.MetaException) as refused:
        altered(d, parameters(metadata_location="loc3"), context=expecting("metadata_location", "loc1"))
    assert refused.value.message == ("The table has been modified. The parameter value for key 'metadata_location' is 'loc2'. "
                                     "The expected was value was 'loc1'")
    with pytest.raises(T.MetaException, match="The table has been modified"):
        altered(d, parameters(other="x"), context=expecting("other", "1"))
    with pytest.raises(T.MetaException, match="New value for expected key missing is not set"):
        altered(d, parameters(), context=expecting("missing", "1"))
    assert altered(d, parameters(x="1"), context={"expected_parameter_key": "x"}).parameters["x"] == "1"
    table = d.get_table("d", "t")
    with pytest.raises(T.MetaException, match="The table has been modified"):
        d.alter_table_req(T.AlterTableRequest(
            dbName="d", tableName="t", table=table, expectedParameterKey="metadata_location", expectedParameterValue="loc9"))


def test_of_many_that_expect_the_same_one_wins(d):  # CAT-125
    table = d.create(parameters={"metadata_location": "0"})
    outcomes = []

    def commit(number):
        with d.client.clone() as mine:
            for current in range(5):
                changed = T.Table(**{name: getattr(table, name) for name in table.__slots__})
                changed.parameters = {"metadata_location": str(current + 1), "by": str(number)}
                try:
                    mine.alter_table_with_environment_context(
                        "d", "t", changed, T.EnvironmentContext(expecting("metadata_location", str(current))))
                    outcomes.append(current)
                except T.MetaException as refused:
                    assert "The table has been modified" in refused.message

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == len(set(outcomes))
    assert outcomes
    assert d.get_table("d", "t").parameters["metadata_location"] == str(max(outcomes) + 1)


def becoming(**values):
    def change(table):
        table.parameters = {key: value for key, value in {**table.parameters, **values}.items() if value is not None}
        if values.get("EXTERNAL"):
            table.tableType = "EXTERNAL_TABLE"
    return change


@pytest.mark.parametrize(("before", "change", "words"), [  # CAT-126
    (EXTERNAL, becoming(transactional="true"), "external"),
    (ACID, becoming(transactional="false"), "cannot be unset"), (ACID, becoming(transactional=None), "cannot be unset."),
    (ACID, becoming(EXTERNAL="TRUE"), "cannot become an external"),
    (ACID, becoming(transactional_properties="insert_only"), "cannot be altered"),
    ({}, becoming(transactional="perhaps"), "may only have")], ids=[
        "external", "false", "unset", "to external", "other properties", "no truth value"])
def test_transactional_refused(d, before, change, words):
    d.create(parameters=before, sd=ORC)
    with pytest.raises(T.MetaException, match=words.rstrip(".")):
        altered(d, change)


BUCKETED = {**ORC, "bucketCols": ["id"], "numBuckets": 2}


@pytest.mark.parametrize(("before", "after"), [("2", "1"), ("2", None), ("1", "2"), (None, "2")])
def test_the_buckets_of_rows_that_are_there_stay_the_same(d, before, after):  # CAT-V12
    said = {"bucketing_version": before} if before else {}
    d.create(parameters={**ACID, **said}, sd=BUCKETED)
    with pytest.raises(T.MetaException, match="other buckets than"):
        altered(d, becoming(bucketing_version=after))
    assert d.get_table("d", "t").parameters.get("bucketing_version") == before


@pytest.mark.parametrize(("parameters", "sd", "after"), [
    (ACID, ORC, "2"), ({**ACID, "bucketing_version": "1"}, BUCKETED, None), ({}, BUCKETED, "2")], ids=["no buckets", "the same", "plain"])
def test_a_bucketing_version_that_moves_no_rows_may_be_set(d, parameters, sd, after):
    d.create(parameters=parameters, sd=sd)
    assert altered(d, becoming(bucketing_version=after)).parameters.get("bucketing_version") == after


CLUSTERED = {"more buckets": {"numBuckets": 3}, "by another column": {"bucketCols": ["name"]}, "by one more": {"bucketCols": ["id", "name"]},
             "another type": {"cols": [T.FieldSchema("id", "bigint"), T.FieldSchema("name", "string")]}}


@pytest.mark.parametrize("fields", CLUSTERED.values(), ids=CLUSTERED)
@pytest.mark.parametrize("properties", ["default", "insert_only"])
def test_a_transactional_table_is_clustered_as_its_rows_are(d, fields, properties):  # CAT-V13
    before = d.create(parameters={**ACID, "transactional_properties": properties}, sd=BUCKETED)
    with pytest.raises(T.MetaException, match=r"INTO . BUCKETS says other buckets than"):
        altered(d, in_sd(**fields))
    assert d.get_table("d", "t").sd == before.sd


@pytest.mark.parametrize("unbucketed", [{}, {"numBuckets": -1}, {"bucketCols": ["id"]}], ids=["nothing", "-1", "columns alone"])
def test_rows_that_are_in_any_bucket_stay_so(d, unbucketed):  # CAT-V13
    d.create(parameters=ACID, sd={**ORC, **unbucketed})
    with pytest.raises(T.MetaException, match=r"CLUSTERED BY \(id int\) INTO 2 BUCKETS says other buckets than"):
        altered(d, in_sd(bucketCols=["id"], numBuckets=2))


UNCLUSTERED = {"no buckets any more": (ACID, {"bucketCols": [], "numBuckets": -1}), "plain": ({}, {"numBuckets": 3}),
               "the same": (ACID, {"bucketCols": ["ID"], "numBuckets": 2}),
               "another column is added": (ACID, {"cols": [T.FieldSchema(name, "int") for name in ("id", "name", "c")]})}


@pytest.mark.parametrize(("parameters", "fields"), UNCLUSTERED.values(), ids=UNCLUSTERED)
def test_what_moves_no_rows_may_be_altered_of_buckets(d, parameters, fields):  # CAT-V13
    d.create("t", "id int, name int", parameters=parameters, sd=BUCKETED)
    after = altered(d, in_sd(**fields)).sd
    assert {name: getattr(after, name) for name in fields} == {**fields, **({"bucketCols": ["id"]} if fields.get("bucketCols") else {})}


def test_full_acid_stays_unsorted(d):  # CAT-V5
    d.create(parameters=ACID, sd=ORC)
    with pytest.raises(T.MetaException, match="cannot be sorted"):
        altered(d, in_sd(sortCols=[T.Order("id", 1)]))


def test_transactional_stays_when_nothing_is_said(d):
    d.create(parameters=ACID, sd=ORC)

    def change(table):
        table.parameters = {"Transactional": "TRUE", "new": "1"}
    found = altered(d, change).parameters
    del found["transient_lastDdlTime"]
    assert found == {"transactional": "true", "transactional_properties": "default", "new": "1"}


def test_insert_only_may_be_unset(d):
    d.create(parameters={**ACID, "transactional_properties": "insert_only"})
    assert "transactional" not in altered(d, becoming(transactional=None, transactional_properties=None)).parameters


def test_conversion(d, database):
    directory = d.path(d.create(sd=ORC, keys="p:string").sd.location)
    d.add("1")
    (directory / "p=1" / "000000_0").write_text("")
    (directory / "p=1" / "000000_0_copy_1").write_text("")
    (directory / "p=1" / "_SUCCESS").write_text("")
    found = altered(d, becoming(transactional="true"))
    assert found.parameters["transactional_properties"] == "default"
    assert database.once('SELECT next_write_id FROM next_write_ids WHERE db = %s AND "table" = %s', ("d", "t")) == [(10_000_001,)]


def test_conversion_refused_by_a_foreign_file(d):  # CAT-127
    (d.path(d.create(sd=ORC).sd.location) / "data.txt").write_text("")
    with pytest.raises(T.MetaException, match=r"data\.txt"):
        altered(d, becoming(transactional="true"))
    assert "transactional" not in d.get_table("d", "t").parameters


def test_conversion_refused_for_text(d):
    d.create()
    with pytest.raises(T.MetaException, match="ACID compliant"):
        altered(d, becoming(transactional="true"))


TRANSACTION_SIDE = ("txn_components", "completed_txn_components", "next_write_ids", "txn_write_ids", "write_sets", "locks",
                    "min_history", "materialization_locks")


def remember(database, table, partition=""):
    """One row about the table everywhere on the transaction side."""
    name = f"""'hive', 'd', '{table}'"""
    database.once(f"""
        INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation) VALUES (1, {name}, '{partition}', 'i');
        INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, update_delete, at)
            VALUES (1, {name}, '{partition}', false, metastore_now());
        INSERT INTO next_write_ids (catalog, db, "table", next_write_id) VALUES ({name}, 4);
        INSERT INTO txn_write_ids (catalog, db, "table", txn_id, write_id) VALUES ({name}, 1, 3);
        INSERT INTO write_sets (catalog, db, "table", partition, txn_id, commit_id, operation)
            VALUES ({name}, '{partition}', 1, 2, 'u');
        INSERT INTO min_history (catalog, db, "table", txn_id, min_write_id) VALUES ({name}, 1, 3);
        INSERT INTO materialization_locks (catalog, db, "table", txn_id, last_heartbeat_at)
            VALUES ({name}, 1, metastore_now());
        INSERT INTO locks (ext_id, int_id, txn_id, catalog, db, "table", type, state, requested_at, "user", host)
            VALUES (1, 1, 9, {name}, 'exclusive', 'acquired', metastore_now(), 'u', 'h');
        INSERT INTO compaction_queue (catalog, db, "table", partition, state, type, enqueued_at)
            VALUES ({name}, '{partition}', 'initiated', 'major', metastore_now());
        INSERT INTO completed_compactions (id, catalog, db, "table", partition, state, type, enqueued_at)
            VALUES (1, {name}, '{partition}', 'succeeded', 'major', metastore_now())""")


def remembered(database, table):
    """Return the tables of the transaction side that know this table."""
    every = (*TRANSACTION_SIDE, "compaction_queue", "completed_compactions")
    return {name for name in every
            if database.once(f'SELECT 1 FROM {name} WHERE catalog = %s AND db = %s AND "table" = %s', ("hive", "d", table))}


def test_rename_carries_the_transaction_side_over(d, database):
    """COMP-Q27: requests and history follow the new name."""
    d.create()
    remember(database, "t")
    altered(d, setting(tableName="new"))
    assert remembered(database, "t") == {"next_write_ids"}  # the name's mark
    assert remembered(database, "new") == {*TRANSACTION_SIDE, "compaction_queue", "completed_compactions"}


def test_drop_forgets_the_transaction_side(d, database):
    """COMP-Q26: no request is left for anybody to find."""
    for name in ("t", "other"):
        d.create(name)
    remember(database, "t")
    d.drop_table("d", "t", True)
    assert remembered(database, "t") == {"locks", "write_sets", "next_write_ids", "min_history"}  # its readers have not ended


@pytest.mark.parametrize(("of_old", "of_new", "then"), [
    (0, None, 0), (-1, None, -1), (0, -1, 0), (-1, 0, 0), (-1, -1, -1)])
def test_readers_follow_a_rename_to_a_name_of_which_they_have_said_something(d, database, of_old, of_new, then):
    """One that was dropped: who reads either table is waited for with that name."""
    d.create()
    for table, said in (("t", of_old), ("new", of_new)):
        if said is not None:
            database.once("INSERT INTO min_history (txn_id, catalog, db, \"table\", min_write_id) VALUES (1, 'hive', 'd', %s, %s)", [table, said])
    altered(d, setting(tableName="new"))

    assert database.once('SELECT "table", min_write_id FROM min_history') == [("new", then)]


def test_drop_of_a_database_forgets_it_too(d, database):
    d.create()
    remember(database, "t")
    database.once("""UPDATE locks SET "table" = ''""")  # Hive locks what it drops
    d.drop_database("d", True, True)
    assert remembered(database, "t") == {"write_sets", "next_write_ids", "min_history"}
