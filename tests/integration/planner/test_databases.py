"""Databases and places over the planner's calls: for engines that have no other client of the metastore."""

from tests.integration.planner.conftest import WHO

COLUMN = [{"name": "id", "type": "int"}]


def test_databases_are_made_listed_described_and_dropped(call, client):
    call("create_database", db="Far", comment="away", properties={"team": "x"}, location=None, **WHO)
    made = call("database", db="far")
    assert (made["comment"], made["owner"], made["properties"]) == ("away", "ann", {"team": "x"})
    assert made["location"] == client.get_database("far").locationUri
    assert call("databases") == {"databases": ["default", "far"]}
    assert call.refused("create_database", db="far", properties={}, **WHO)[:2] == (400, "AlreadyExistsError")
    assert call.refused("create_database", db="", properties={}, **WHO)[1:] == ("InvalidInputError", "db must not be empty.")

    call("create", db="far", table="t", columns=COLUMN, format="orc", **WHO)
    types = client.types
    client.create_table(types.Table(tableName="p", dbName="far", sd=types.StorageDescriptor(cols=[types.FieldSchema("id", "int")], serdeInfo=types.SerDeInfo())))
    assert call("transactional_tables", db="far") == {"tables": ["t"]}
    assert call.refused("transactional_tables", db="none")[:2] == (404, "NoSuchObjectError")
    assert call.refused("database", db="none")[:2] == (404, "NoSuchObjectError")
    assert call.refused("drop_database", db="far")[:2] == (400, "InvalidOperationError")
    status, error, message = call.refused("drop_database", db="far", cascade=True)
    assert (status, error) == (400, "InvalidOperationError")
    assert message.startswith("Database far has tables and views that are not transactional: p. DROP DATABASE CASCADE would")
    assert call.refused("drop_database", db="none", cascade=True)[:2] == (404, "NoSuchObjectError")
    client.drop_table("far", "p", True)
    call("drop_database", db="far", cascade=True)
    assert call("databases") == {"databases": ["default"]}


def test_a_place_tells_whose_it_is(call, client):
    call("create_database", db="far", properties={}, **WHO)
    call("create", db="far", table="t", columns=COLUMN, format="orc", **WHO)
    place = client.get_table("far", "t").sd.location

    assert call("table_at", place=f"{place}/k=1") == call("table_at", place=place) == {"table": "far.t"}
    assert call("table_at", place=f"{place}2") == {"table": None}
