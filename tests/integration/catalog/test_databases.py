"""Catalogs and databases (CAT-D1 to CAT-D4)."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.thrift_gen.hive_metastore import ttypes as T


def names(hive, pattern):
    return hive.get_databases(pattern)


def catalog(hive, name="c1", **fields):
    fields.setdefault("locationUri", str(hive.warehouse.parent / name))
    return hive.create_catalog(T.CreateCatalogRequest(T.Catalog(name=name, **fields)))


def get_catalog(hive, name="c1"):
    return hive.get_catalog(T.GetCatalogRequest(name)).catalog


def test_catalog_has_a_directory_and_a_default_database(hive):  # CAT-1
    catalog(hive, description="first")
    found = get_catalog(hive, "C1")
    assert (found.name, found.description, found.locationUri) == ("c1", "first", f"{hive.warehouse.parent}/c1")
    assert found.createTime > 0
    assert (hive.warehouse.parent / "c1").is_dir()
    assert hive.get_database("@c1#default").locationUri == f"file:{found.locationUri}"


def test_catalog_cannot_be_created_below_a_file(hive, tmp_path):  # CAT-2
    (tmp_path / "file").write_text("")
    with pytest.raises(T.MetaException):
        catalog(hive, locationUri=str(tmp_path / "file" / "c"))
    with pytest.raises(T.NoSuchObjectException):
        get_catalog(hive)


def test_catalog_names_and_duplicates(hive):  # CAT-3, CAT-4, CAT-5
    for name in ("c1", "c2", "c3"):
        catalog(hive, name)
    with pytest.raises(T.AlreadyExistsException):
        catalog(hive, "C2")
    assert hive.get_catalogs().names == ["c1", "c2", "c3", "hive"]
    with pytest.raises(T.NoSuchObjectException):
        get_catalog(hive, "c9")


@pytest.mark.parametrize(("name", "location"), [("", "/x"), ("a/b", "/x"), ("c$", "/x"), ("c", None)])
def test_catalog_needs_a_name_and_a_location(hive, name, location):
    with pytest.raises(T.InvalidObjectException):
        catalog(hive, name, locationUri=location)


def test_the_location_of_a_catalog_is_answered_as_it_was_given(hive, database, tmp_path):
    given, other = f"file://{tmp_path}//c1/", f"{tmp_path}/x/../c2"
    catalog(hive, locationUri=given)
    assert get_catalog(hive).locationUri == given
    assert hive.get_database("@c1#default").locationUri == f"file:{tmp_path}/c1"
    hive.create_database(T.Database(name="d", catalogName="c1"))
    assert hive.get_database("@c1#d").locationUri == f"file:{tmp_path}/c1/d.db"
    hive.alter_catalog(T.AlterCatalogRequest("c1", T.Catalog(name="c1", description="new")))
    assert get_catalog(hive).locationUri == given
    hive.alter_catalog(T.AlterCatalogRequest("c1", T.Catalog(name="c1", locationUri=other)))
    assert get_catalog(hive).locationUri == other
    with database.begin() as pg:
        assert pg.sql("SELECT location FROM catalogs WHERE name = 'c1'") == [(f"file:{tmp_path}/c2",)]
        pg.sql("UPDATE catalogs SET location = 'file:/by/an/older/server' WHERE name = 'c1'")
    assert get_catalog(hive).locationUri == "file:/by/an/older/server"


def test_alter_catalog(hive):  # CAT-6, CAT-7, CAT-8, CAT-9
    catalog(hive, description="old")
    hive.alter_catalog(T.AlterCatalogRequest("c1", T.Catalog(name="c1", locationUri="/elsewhere")))
    assert (get_catalog(hive).locationUri, get_catalog(hive).description) == ("/elsewhere", "old")
    hive.alter_catalog(T.AlterCatalogRequest("c1", T.Catalog(name="c1", description="new")))
    assert (get_catalog(hive).locationUri, get_catalog(hive).description) == ("/elsewhere", "new")
    with pytest.raises(T.NoSuchObjectException):
        hive.alter_catalog(T.AlterCatalogRequest("c9", T.Catalog(name="c9")))
    with pytest.raises(T.InvalidOperationException):
        hive.alter_catalog(T.AlterCatalogRequest("c1", T.Catalog(name="c2")))


def test_drop_catalog(hive):  # CAT-10, CAT-11, CAT-12
    catalog(hive)
    hive.drop_catalog(T.DropCatalogRequest("c1"))
    assert hive.get_catalogs().names == ["hive"]
    assert not (hive.warehouse.parent / "c1").exists()
    with pytest.raises(T.NoSuchObjectException):
        hive.drop_catalog(T.DropCatalogRequest("c1"))
    hive.drop_catalog(T.DropCatalogRequest("c1", ifExists=True))
    with pytest.raises(T.MetaException):
        hive.drop_catalog(T.DropCatalogRequest("hive"))


def test_catalog_in_use_is_not_dropped(hive):  # CAT-13, CAT-14
    catalog(hive)
    hive.database("extra", catalogName="c1")
    with pytest.raises(T.InvalidOperationException):
        hive.drop_catalog(T.DropCatalogRequest("c1"))
    hive.drop_database("@c1#extra", True, False)
    hive.create_table(hive.table(db="default", catName="c1"))
    with pytest.raises(T.InvalidOperationException):
        hive.drop_catalog(T.DropCatalogRequest("c1"))


def test_databases_of_a_catalog(hive):  # CAT-15, CAT-16
    catalog(hive)
    hive.database("sales", catalogName="c1")
    found = hive.get_database("@c1#sales")
    assert found == hive.get_database_req(T.GetDatabaseRequest(name="sales", catalogName="c1"))
    assert (found.locationUri, found.catalogName) == (f"file:{hive.warehouse.parent}/c1/sales.db", "c1")
    assert hive.get_databases("@c1#") == ["default", "sales"]
    assert hive.get_databases("@c1#s*") == ["sales"]
    assert hive.get_databases("@c9#*") == []
    with pytest.raises(T.NoSuchObjectException):
        hive.get_database("sales")


def test_create_with_every_field(hive, tmp_path):  # CAT-17
    sent = T.Database(name="Full", description="all of it", locationUri=str(tmp_path / "full"), parameters={"K": "V"},
                      ownerName="bob", ownerType=T.PrincipalType.GROUP, managedLocationUri=str(tmp_path / "managed"))
    hive.create_database(sent)
    found = hive.get_database("full")
    assert found.createTime > 0
    assert found == T.Database(
        name="full", description="all of it", locationUri=f"file:{tmp_path}/full", parameters={"K": "V"}, ownerName="bob",
        ownerType=T.PrincipalType.GROUP, catalogName="hive", createTime=found.createTime,
        managedLocationUri=f"file:{tmp_path}/managed", type=T.DatabaseType.NATIVE)
    assert (tmp_path / "full").is_dir()
    assert (tmp_path / "managed").is_dir()
    hive.create_table(hive.table(db="full"))
    assert hive.get_table("full", "t").sd.location == f"file:{tmp_path}/managed/t"
    hive.create_table(hive.table("e", db="full", parameters={"EXTERNAL": "TRUE"}))
    assert hive.get_table("full", "e").sd.location == f"file:{tmp_path}/full/e"


def test_create_with_a_name_only(hive):  # CAT-18
    found = hive.database("Minimal")
    assert (found.name, found.description, found.parameters, found.ownerName, found.ownerType) == (
        "minimal", None, {}, "ann", T.PrincipalType.USER)
    assert found.locationUri == f"file:{hive.warehouse}/minimal.db"
    assert hive.path(found.locationUri).is_dir()


def test_create_database_req(hive):
    hive.create_database_req(T.CreateDatabaseRequest(databaseName="R", description="req", parameters={"a": "b"}))
    found = hive.get_database("r")
    assert (found.description, found.parameters, found.ownerName) == ("req", {"a": "b"}, "ann")


@pytest.mark.parametrize(("fields", "error"), [
    ({"name": None}, T.MetaException), ({"name": "test\\db"}, T.InvalidObjectException),  # CAT-19, CAT-20
    ({"name": ""}, T.InvalidObjectException), ({"name": "DEFAULT"}, T.AlreadyExistsException),  # CAT-21, CAT-22
    ({"name": "x", "catalogName": "nope"}, T.InvalidObjectException),  # CAT-23
    ({"name": "x", "locationUri": "not/absolute"}, T.MetaException)])
def test_create_refused(hive, fields, error):
    with pytest.raises(error):
        hive.create_database(T.Database(**fields))
    assert hive.get_all_databases() == ["default"]


def test_create_refused_leaves_no_directory(hive):
    (hive.warehouse / "blocked.db").write_text("a file")
    with pytest.raises(T.MetaException, match=r"blocked\.db"):
        hive.database("blocked")
    assert hive.get_all_databases() == ["default"]


def test_default_database(hive):  # CAT-24
    found = hive.get_database("default")
    assert (found.description, found.ownerName, found.ownerType) == (
        "Default Hive database", "public", T.PrincipalType.ROLE)
    assert found.locationUri == f"file:{hive.warehouse}"


def test_read(d):  # CAT-25, CAT-26, CAT-27, CAT-28
    assert d.get_database("D").name == "d"
    for wrong in ("nope", "@nope#d"):
        with pytest.raises(T.NoSuchObjectException):
            d.get_database(wrong)
    with pytest.raises(T.MetaException):
        d.get_database(None)


def test_drop_refused(d):  # CAT-29, CAT-30, CAT-31, CAT-38
    for name, error in (("nope", T.NoSuchObjectException), (None, T.MetaException), ("default", T.MetaException),
                        ("@nope#d", T.NoSuchObjectException)):
        with pytest.raises(error):
            d.drop_database(name, True, True)


def test_drop_by_upper_name_and_files(d):  # CAT-32, CAT-33
    directory = d.warehouse / "d.db"
    (directory / "note").write_text("kept")
    d.drop_database("D", False, False)
    assert (directory / "note").read_text() == "kept"
    d.database()
    d.drop_database("d", True, False)
    assert not directory.exists()
    assert d.get_all_databases() == ["default"]


def test_drop_with_a_table(d):  # CAT-34, CAT-35
    d.create()
    with pytest.raises(T.InvalidOperationException) as refused:
        d.drop_database("d", True, False)
    assert refused.value.message == "Database d is not empty. One or more tables exist."
    assert d.get_all_tables("d") == ["t"]
    d.drop_database("d", True, True)
    assert not (d.warehouse / "d.db").exists()
    d.database()
    assert d.get_all_tables("d") == []


def test_drop_with_a_function(d):  # CAT-36, CAT-37
    d.create_function(T.Function(functionName="f", dbName="d", className="a.F", ownerType=1, functionType=1))
    with pytest.raises(T.InvalidOperationException, match="is not empty"):
        d.drop_database("d", True, False)
    d.drop_database("d", True, True)
    d.database()
    assert d.get_functions("d", "*") == []


def view_over(hive, db, table, source):
    hive.create_table(hive.table(
        table, db=db, tableType="MATERIALIZED_VIEW",
        creationMetadata=T.CreationMetadata(catName="hive", dbName=db, tblName=table, tablesUsed={source})))


def test_drop_with_materialized_views(d):  # CAT-39, CAT-132
    d.create()
    view_over(d, "d", "v", "d.t")
    d.database("other")
    view_over(d, "other", "w", "d.t")
    with pytest.raises(T.MetaException, match="materialized views"):
        d.drop_table("d", "t", True)
    with pytest.raises(T.MetaException, match=r"other\.w"):
        d.drop_database("d", True, True)
    assert d.get_all_tables("d") == ["t", "v"]
    d.drop_table("other", "w", True)
    d.drop_database("d", True, True)
    assert d.get_all_databases() == ["default", "other"]


def test_drop_keeps_data_that_is_not_its_own(d, tmp_path):
    d.create("outside", parameters={"EXTERNAL": "TRUE"}, sd={"location": str(tmp_path / "outside")})
    d.create("inside", parameters={"EXTERNAL": "TRUE"})
    managed = d.path(d.create("m", sd={"location": str(tmp_path / "m")}).sd.location)
    for directory in (tmp_path / "outside", d.warehouse / "d.db" / "inside", managed):
        (directory / "data").write_text("x")
    d.drop_database("d", True, True)
    assert (tmp_path / "outside" / "data").exists()
    assert (d.warehouse / "d.db" / "inside" / "data").exists()
    assert not managed.exists()


def test_drop_keeps_a_directory_that_others_use(d, tmp_path):
    shared = str(tmp_path / "shared")
    d.database("outer", locationUri=shared)
    d.create("inner", sd={"location": f"{shared}/t"})
    (tmp_path / "shared" / "t" / "data").write_text("x")
    d.drop_database("outer", True, True)
    assert (tmp_path / "shared" / "t" / "data").exists()


def test_source_of_replication_is_not_dropped(hive):
    hive.database("src", parameters={"repl.source.for": "p1"})
    with pytest.raises(T.InvalidOperationException, match=r"repl\.source\.for"):
        hive.drop_database("src", True, True)


def test_lists(hive):  # CAT-40, CAT-41, CAT-42, CAT-43, CAT-44, CAT-45
    for name in ("db_to_find_1", "db_to_find_2", "db_hidden_1"):
        hive.database(name)
    assert hive.get_all_databases() == ["db_hidden_1", "db_to_find_1", "db_to_find_2", "default"]
    assert names(hive, "*_to_find_*") == ["db_to_find_1", "db_to_find_2"]
    assert names(hive, "*_to_find_*|*_hidden_*") == ["db_hidden_1", "db_to_find_1", "db_to_find_2"]
    assert names(hive, "*_TO_find_*") == names(hive, "*_to_find_*")
    assert names(hive, None) == hive.get_all_databases()
    assert names(hive, "nope*") == names(hive, "") == []
    assert names(hive, "db_.idden_1") == ["db_hidden_1"]
    assert names(hive, "@hive#d.*") == hive.get_all_databases()
    found = hive.get_databases_req(T.GetDatabaseObjectsRequest(catalogName="hive", pattern="*find*")).databases
    assert [database.name for database in found] == ["db_to_find_1", "db_to_find_2"]


def test_alter(d, tmp_path):  # CAT-46, CAT-49, CAT-50
    d.create("before")
    d.alter_database("D", T.Database(name="d", parameters={"k": "v"}, ownerName="bob", ownerType=T.PrincipalType.ROLE,
                                     description="new", locationUri=str(tmp_path / "new")))
    found = d.get_database("d")
    assert (found.parameters, found.ownerName, found.ownerType, found.description) == (
        {"k": "v"}, "bob", T.PrincipalType.ROLE, "new")
    assert found.locationUri == f"file:{tmp_path}/new"
    assert d.get_table("d", "before").sd.location == f"file:{d.warehouse}/d.db/before"
    assert d.create("after").sd.location == f"file:{tmp_path}/new/after"


def test_alter_with_an_empty_object(d):  # CAT-47
    before = d.get_database("d")
    d.alter_database_req(T.AlterDatabaseRequest("d", T.Database(name="new_name")))
    found = d.get_database("d")
    assert (found.parameters, found.ownerName) == ({}, None)
    assert (found.description, found.locationUri, found.ownerType, found.createTime) == (
        before.description, before.locationUri, before.ownerType, before.createTime)
    with pytest.raises(T.NoSuchObjectException):
        d.get_database("new_name")


def test_alter_unknown(hive):  # CAT-48
    with pytest.raises(T.NoSuchObjectException):
        hive.alter_database("nope", T.Database(name="nope"))


def test_drop_database_req(d):
    d.create()
    d.drop_database_req(T.DropDatabaseRequest(name="d", ignoreUnknownDb=False, deleteData=True, cascade=True))
    d.drop_database_req(T.DropDatabaseRequest(name="d", ignoreUnknownDb=True, deleteData=True, cascade=True))
    with pytest.raises(T.NoSuchObjectException):
        d.drop_database_req(T.DropDatabaseRequest(name="d", ignoreUnknownDb=False, deleteData=True, cascade=True))


def test_a_database_without_right_to_delete_is_still_dropped(d, monkeypatch):
    def refused(*_, **__):
        raise PermissionError("not yours")
    monkeypatch.setattr("metastore.files.shutil.rmtree", refused)
    d.drop_database("d", True, True)
    assert d.get_all_databases() == ["default"]
    assert [path.name for path in d.warehouse.iterdir()] == ["d.db"]


def test_character_that_postgresql_cannot_keep(d):
    with pytest.raises((T.MetaException, T.InvalidObjectException, TApplicationException)):
        d.database("n", parameters={"k": "a\0b"})
    assert d.get_all_databases() == ["d", "default"]


def test_properties_that_would_reach_a_compactions_job(hive):
    """Those of a database count for the jobs of its tables, which run as the metastore's user."""
    evil = {"compactor.spark.jars": "/tmp/evil.jar"}
    with pytest.raises(T.InvalidObjectException, match="compactor.spark.jars"):
        hive.create_database(T.Database(name="evil", parameters=evil))
    hive.create_database(T.Database(name="good", parameters={"compactor.spark.executor.memory": "2g"}))
    with pytest.raises(T.MetaException, match="compactor.spark.jars"):
        hive.alter_database("good", T.Database(name="good", parameters=evil))
    assert hive.get_database("good").parameters == {"compactor.spark.executor.memory": "2g"}
