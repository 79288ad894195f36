"""Data connectors and databases of type REMOTE (CAT-L1, CAT-L2), as the metastore of Hive 4.2.0 answers without a driver."""

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T

ROLE, USER = T.PrincipalType.ROLE, T.PrincipalType.USER
REMOTE, NATIVE = T.DatabaseType.REMOTE, T.DatabaseType.NATIVE
URL = "jdbc:postgresql://host/db"


def create(hive, name="Pg", **fields):
    hive.create_dataconnector_req(T.CreateDataConnectorRequest(T.DataConnector(**{"name": name, "type": "postgres", "url": URL, **fields})))


def get(hive, name="pg"):
    return hive.get_dataconnector_req(T.GetDataConnectorRequest(name))


def alter(hive, connector="pg", **fields):
    hive.alter_dataconnector_req(T.AlterDataConnectorRequest(connector, T.DataConnector(**fields)))


def drop(hive, name="pg", *flags):
    hive.drop_dataconnector_req(T.DropDataConnectorRequest(name, *flags))


@pytest.fixture
def c(hive):
    create(hive)
    return hive


@pytest.fixture
def r(c):
    """``c`` with a database ``r`` that stands for a database of the connector."""
    c.create_database(T.Database(name="r", type=REMOTE, connector_name="PG", remote_dbname="Sales"))
    return c


def test_a_connector_is_found_by_its_name(c, database):
    found = get(c, " PG ")
    with database.begin() as pg:
        assert abs(found.createTime - pg.now.timestamp()) < 60
    assert found == T.DataConnector("pg", "postgres", URL, None, {}, "ann", USER, found.createTime)
    create(c, "a/b_1", type="Nonsense", url="", description="x", parameters={"k": "v"}, ownerName="bob", ownerType=ROLE, createTime=5)
    other = get(c, "A/B_1")
    assert other == T.DataConnector("a/b_1", "Nonsense", "", "x", {"k": "v"}, "bob", ROLE, other.createTime)
    assert other.createTime > 5
    assert c.get_dataconnectors() == ["a/b_1", "pg"]


@pytest.mark.parametrize(("fields", "error"), [
    ({"name": "pG"}, T.AlreadyExistsException), ({"name": ""}, T.InvalidObjectException), ({"name": "a'b"}, T.InvalidObjectException),
    ({"name": None}, T.MetaException), ({"name": "x", "type": None}, T.MetaException), ({"name": "x", "url": None}, T.MetaException)])
def test_a_wrong_connector_is_not_created(c, fields, error):
    with pytest.raises(error):
        create(c, **fields)
    assert c.get_dataconnectors() == ["pg"]


def test_alter_changes_what_may_change(c):
    alter(c, "PG", name="other", type="mysql", url="u", description="d", parameters={"k": "v"}, ownerName="bob", ownerType=ROLE)
    made = get(c).createTime
    assert get(c) == T.DataConnector("pg", "postgres", "u", "d", {"k": "v"}, "bob", ROLE, made)
    alter(c, url="", description=" ")
    assert get(c) == T.DataConnector("pg", "postgres", "", "d", {}, None, ROLE, made)
    with pytest.raises(T.MetaException, match="url"):
        alter(c, description="new")
    with pytest.raises(T.NoSuchObjectException):
        alter(c, "nope", url="u")
    assert get(c).description == "d"


def test_drop(c):
    drop(c, "PG")
    for call in (lambda: drop(c), lambda: get(c)):
        with pytest.raises(T.NoSuchObjectException):
            call()
    drop(c, "pg", True)
    assert c.get_dataconnectors() == []


def test_a_connector_that_is_in_use_goes_only_without_the_check(r):
    with pytest.raises(T.InvalidOperationException, match=r"hive\.r"):
        drop(r, "pg", False, True)
    r.create_database(T.Database(name="n", connector_name="pg", remote_dbname="x"))
    r.drop_database("r", True, False)
    r.create_database(T.Database(name="r", type=REMOTE, connector_name="pg"))
    drop(r, "pg", False, False)
    create(r)
    r.drop_database("r", True, False)
    drop(r, "pg", False, True)


def test_a_remote_database_names_its_connector(r):
    found = r.get_database("R")
    assert (found.type, found.connector_name, found.remote_dbname) == (REMOTE, "PG", "Sales")
    r.create_database_req(T.CreateDatabaseRequest(databaseName="q", type=REMOTE, dataConnectorName="nowhere"))
    found = r.get_database("q")
    assert (found.type, found.connector_name, found.remote_dbname) == (REMOTE, "nowhere", None)
    r.create_database(T.Database(name="n", type=NATIVE, connector_name="pg", remote_dbname="x"))
    found = r.get_database("n")
    assert (found.type, found.connector_name, found.remote_dbname) == (NATIVE, None, None)
    with pytest.raises(T.InvalidObjectException, match="connector_name"):
        r.create_database(T.Database(name="x", type=REMOTE))


def test_an_alter_of_a_remote_database_keeps_its_connector(r):
    r.alter_database("r", T.Database(name="r", type=NATIVE, connector_name="x", remote_dbname="y", parameters={"k": "v"}, ownerName="bob"))
    found = r.get_database("r")
    assert (found.type, found.connector_name, found.remote_dbname) == (REMOTE, "PG", "Sales")
    assert (found.parameters, found.ownerName) == ({"k": "v"}, "bob")


def test_tables_of_a_remote_database_are_not_read_here(r):
    for call in (lambda: r.get_table("r", "t"), lambda: r.get_table_req(T.GetTableRequest("r", "t")), lambda: r.get_tables("r", "*"),
                 lambda: r.get_table_objects_by_name_req(T.GetTablesRequest("r", ["t"])), lambda: r.get_fields("r", "t"),
                 lambda: r.get_schema("r", "t")):
        with pytest.raises(T.MetaException, match="REMOTE database r are read where its data connector PG says"):
            call()
    assert (r.get_all_tables("r"), r.get_tables_by_type("r", "*", "MANAGED_TABLE"), r.get_table_meta("r", "*", [])) == ([], [], [])
    assert r.get_partition_names("r", "t", -1) == []


def test_nothing_is_made_in_a_remote_database(r):
    for call, words in (
            (lambda: r.create_table(r.table(db="r")), "Create table"), (lambda: r.drop_table("r", "t", True), "Drop table"),
            (lambda: r.alter_table("r", "t", r.table(db="r")), "Alter table"),
            (lambda: r.create_function(T.Function("f", "r", "c", "ann", USER, 0, T.FunctionType.JAVA, [])), "Create function"),
            (lambda: r.create_stored_procedure(T.StoredProcedure("p", "R", "hive", "ann", "s")), "Create stored procedure")):
        with pytest.raises(T.MetaException, match=f"{words} in REMOTE database r is not allowed"):
            call()
    r.drop_database("r", True, False)
    with pytest.raises(T.NoSuchObjectException):
        r.get_database("r")
