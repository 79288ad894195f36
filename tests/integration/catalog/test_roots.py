"""What a client names is read everywhere and changed only below the roots: refused before anything is done."""

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T

OUTSIDE = r"does not lie inside the warehouse.*metastore\.warehouse\.roots"
PURGED = {"EXTERNAL": "TRUE", "external.table.purge": "true"}


@pytest.fixture
def server_settings():
    return {"metastore.warehouse.roots": ""}


@pytest.fixture
def elsewhere(tmp_path):
    """Yield a stranger's directory with a file in it; check in the end that the file is unchanged and alone."""
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    (directory / "kept").write_text("x")
    yield directory
    assert (directory / "kept").read_text() == "x"
    assert [path.name for path in directory.iterdir()] == ["kept"]


@pytest.fixture
def d(client):
    client.create_database(T.Database(name="d"))
    return client


def create(client, location, name="t", keys=(), **parameters):
    kind = "EXTERNAL_TABLE" if parameters.get("EXTERNAL") else "MANAGED_TABLE"
    client.create_table(T.Table(
        dbName="d", tableName=name, tableType=kind, parameters=parameters, partitionKeys=[T.FieldSchema(*key.split(":")) for key in keys],
        sd=T.StorageDescriptor(cols=[T.FieldSchema("id", "int")], location=location, serdeInfo=T.SerDeInfo())))


@pytest.mark.parametrize("parameters", [{}, PURGED])
def test_a_table_elsewhere_is_read_and_not_dropped_with_its_data(d, elsewhere, parameters):
    create(d, elsewhere.as_uri(), **parameters)
    for drop in (lambda: d.drop_table("d", "t", True), lambda: d.truncate_table("d", "t", None),
                 lambda: d.drop_database("d", True, True)):
        with pytest.raises(T.MetaException, match=OUTSIDE):
            drop()
    assert d.get_table("d", "t").sd.location == f"file:{elsewhere}"
    d.drop_table("d", "t", False)


def test_nothing_is_made_elsewhere(d, elsewhere):
    new = (elsewhere / "new").as_uri()
    with pytest.raises(T.MetaException, match=OUTSIDE):
        create(d, new, EXTERNAL="TRUE")
    with pytest.raises(T.MetaException, match=OUTSIDE):
        d.create_database(T.Database(name="e", locationUri=new))
    with pytest.raises(T.MetaException, match=OUTSIDE):
        d.create_catalog(T.CreateCatalogRequest(T.Catalog(name="c", locationUri=new)))
    create(d, None, keys=["p:string"])
    partition = T.Partition(["1"], "d", "t", sd=d.get_table("d", "t").sd)
    partition.sd.location = new
    with pytest.raises(T.MetaException, match=OUTSIDE):
        d.add_partition(partition)
    assert d.get_all_databases() == ["d", "default"]
    assert d.get_all_tables("d") == ["t"]


def test_a_database_elsewhere_is_dropped_and_its_directory_stays(d, elsewhere):
    d.create_database(T.Database(name="e", locationUri=elsewhere.as_uri()))
    d.drop_database("e", True, True)


def test_partitions_elsewhere(d, elsewhere):
    create(d, None, keys=["p:string"])
    table = d.get_table("d", "t")
    table.sd.location = elsewhere.as_uri()
    d.add_partition(T.Partition(["1"], "d", "t", sd=table.sd))
    for drop in (lambda: d.drop_partition("d", "t", ["1"], True), lambda: d.truncate_table("d", "t", ["p=1"]),
                 lambda: d.rename_partition("d", "t", ["1"], T.Partition(["2"], "d", "t", sd=table.sd)),
                 lambda: d.drop_table("d", "t", True)):
        with pytest.raises((T.MetaException, T.InvalidOperationException), match=OUTSIDE):
            drop()
    assert d.get_partition_names("d", "t", -1) == ["p=1"]
    d.drop_partition("d", "t", ["1"], False)


def test_a_renamed_table_does_not_move_elsewhere(d, elsewhere):
    create(d, None)
    d.create_database(T.Database(name="e", locationUri=elsewhere.as_uri()))
    table = d.get_table("d", "t")
    table.dbName = "e"
    with pytest.raises(T.InvalidOperationException, match=OUTSIDE):
        d.alter_table("d", "t", table)


@pytest.mark.parametrize("form", ["{wh}/../elsewhere", "{wh}/link", "{wh}/link/."])
def test_dots_and_links_lead_nowhere(d, elsewhere, tmp_path, form):
    warehouse = tmp_path / "warehouse"
    (warehouse / "link").symlink_to(elsewhere)
    create(d, form.format(wh=warehouse.as_uri()))
    for drop in (lambda: d.truncate_table("d", "t", None), lambda: d.drop_table("d", "t", True)):
        try:
            drop()
        except T.MetaException as refused:
            assert "does not lie inside the warehouse" in refused.message


def test_a_root_stays(d, server, tmp_path):
    create(d, (tmp_path / "warehouse" / "d.db").as_uri())
    with server.database.begin() as pg:  # as it could be given before
        pg.sql("UPDATE tables SET location = %s", (f"file:{tmp_path}/warehouse",))
    with pytest.raises(T.MetaException, match=OUTSIDE):
        d.drop_table("d", "t", True)
    assert (tmp_path / "warehouse" / "d.db").is_dir()
