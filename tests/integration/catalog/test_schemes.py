"""No location of another scheme than the listed ones is stored, whatever gives it: whoever reads the catalog opens it."""

import copy

import pytest

from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.support.acid.creating import create_database, create_table

FOREIGN = "ftp://10.255.255.1/x"


@pytest.fixture
def given(client):
    """Return the calls that give a location, by name."""
    create_database(client)
    create_table(client, "t", {"id": "int"}, keys={"p": "int"}, transactional="false")
    client.add_partition(T.Partition(dbName="d", tableName="t", values=["1"], sd=client.get_table("d", "t").sd))

    def table(name):
        found = copy.deepcopy(client.get_table("d", "t"))
        found.tableName, found.sd.location = name, FOREIGN
        return found

    def partition(value):
        return T.Partition(dbName="d", tableName="t", values=[value], parameters={}, sd=table("t").sd)

    return {
        "create_table": lambda: client.create_table(table("u")),
        "alter_table": lambda: client.alter_table("d", "t", table("t")),
        "add_partition": lambda: client.add_partition(partition("2")),
        "alter_partition": lambda: client.alter_partition("d", "t", partition("1")),
        "create_database": lambda: client.create_database(T.Database("e", "", FOREIGN, {})),
        "alter_database": lambda: client.alter_database("d", T.Database("d", "", FOREIGN, {})),
        "alter_database managed": lambda: client.alter_database("d", T.Database("d", "", None, {}, managedLocationUri=FOREIGN)),
        "create_catalog": lambda: client.create_catalog(T.CreateCatalogRequest(T.Catalog("c", "", FOREIGN))),
        "alter_catalog": lambda: client.alter_catalog(T.AlterCatalogRequest("hive", T.Catalog("hive", "", FOREIGN))),
    }


WAYS = ["create_table", "alter_table", "add_partition", "alter_partition", "create_database", "alter_database", "alter_database managed",
        "create_catalog", "alter_catalog"]


@pytest.mark.parametrize("way", WAYS)
def test_a_location_of_another_scheme_is_refused(client, database, given, way):
    with pytest.raises((T.MetaException, T.InvalidOperationException, T.InvalidObjectException)) as refused:
        given[way]()
    assert "ftp" in refused.value.message
    assert "metastore.warehouse.schemes" in refused.value.message
    stored = database.once("SELECT (SELECT count(*) FROM tables WHERE location LIKE 'ftp:%') + "
                           "(SELECT count(*) FROM partitions WHERE location LIKE 'ftp:%') + "
                           "(SELECT count(*) FROM databases WHERE location LIKE 'ftp:%' OR managed_location LIKE 'ftp:%') + "
                           "(SELECT count(*) FROM catalogs WHERE location LIKE 'ftp:%')")
    assert list(stored) == [(0,)]
