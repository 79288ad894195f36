"""Who can handle which transactional tables, and what the others are told (CLIENT-11)."""

from ipaddress import ip_network

import pytest

from metastore.acid.table_kinds import TableKind
from metastore.catalog.rules.abilities import Client, Said, abilities, is_named, refusal
from metastore.client.domain_client import table_request
from metastore.ids import TableName
from metastore.thrift_server.dispatch.table_access import said_in

BOTH, NEITHER = {TableKind.FULL_ACID, TableKind.INSERT_ONLY}, set()
HIVE_3 = Said(insert_only_tables=True)


@pytest.mark.parametrize(("said", "able"), [
    (Said(), NEITHER),                                                  # Spark's built-in client, Hive 2.3, PyIceberg
    (HIVE_3, BOTH),                                                     # Hive 3 and 4, Trino
    (Said(processor=("HIVEFULLACIDREAD",)), {TableKind.FULL_ACID}),
    (Said(processor=("hivefullacidwrite",)), {TableKind.FULL_ACID}),
    (Said(processor=("HIVEMANAGEDINSERTREAD", "EXTREAD")), {TableKind.INSERT_ONLY}),
    (Said(processor=("HIVEMANAGEDINSERTWRITE",)), {TableKind.INSERT_ONLY}),
    (Said(processor=("CONNECTORREAD",)), BOTH),
    (Said(processor=("CONNECTORWRITE",)), BOTH),
    (Said(processor=("MANAGERAWMETADATA",)), BOTH),
    (Said(insert_only_tables=True, processor=("EXTREAD", "EXTWRITE")), NEITHER),   # who names its abilities has no others
    (Said(insert_only_tables=True, processor=("HIVEMANAGEDINSERTREAD",)), {TableKind.INSERT_ONLY}),
])
def test_what_a_client_says(said, able):
    assert abilities(said) == able
    assert abilities(said, doubted=True) == (able if said.processor else NEITHER)
    assert abilities(said, trusted=True) == abilities(said, trusted=True, doubted=True) == BOTH


def test_our_own_clients_can_also_where_their_address_is_doubted():
    assert abilities(said_in(table_request("db", "t")), doubted=True) == BOTH


@pytest.mark.parametrize(("client", "is_one"), [
    (Client("hive", "192.0.2.9"), True),
    (Client("Hive", "192.0.2.9"), False),
    (Client(None, "192.0.2.9"), False),
    (Client("spark", "10.1.2.3"), True),
    (Client("spark", "10.2.2.3"), False),
    (Client("spark", "::ffff:10.1.2.3"), True),
    (Client("spark", "fd00::1%eth0"), True),
    (Client("spark", "a host"), False),
])
def test_lists_of_clients(client, is_one):
    assert is_named(client, ("hive", ip_network("10.1.0.0/16"), ip_network("fd00::/8"))) is is_one
    assert not is_named(client, ())


@pytest.mark.parametrize("kind", sorted(BOTH))
def test_the_sentence_names_the_table_the_reason_and_what_to_do(kind):
    said = refusal(TableName("hive", "dw", "facts"), kind)
    for word in (f"dw.facts is a transactional table ({kind})", "no rows", "acid(spark)", "spark.sql.catalog.spark_catalog",
                 "spark.sql.extensions", "Hive 3", "Trino", "metastore.client.capability.trusted"):
        assert word in said
