"""Catalog calls go through, transactions are answered here, both through one address."""

import socket
import urllib.request

import pytest

from metastore.app import App
from metastore.client import MetastoreClient
from metastore.compaction.queue.rules.requests import CompactionType, Entity
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store.requests import NewRequest
from metastore.config import CompactionSettings
from metastore.errors import InvalidOperationError, NoSuchObjectError
from metastore.ids import TableName
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.integration.upstream.conftest import settings, table
from tests.support.probing import readyz
from tests.support.thrift_server import until


def rows(app, name):
    with app.database.begin() as pg:
        return pg.sql(f"SELECT count(*) FROM {name}")[0][0]


def test_tables_are_the_upstreams_and_transactions_are_ours(front, behind, catalog, client, acid, writing):
    assert catalog.get_table("d", "t").tableName == "t"
    assert client.get_table("d", "t").tableName == "t"
    writing.write()
    assert writing.valid() == (1, [])
    assert (rows(front, "tables"), rows(behind, "tables")) == (0, 1)
    assert (rows(front, "next_write_ids"), rows(behind, "next_write_ids")) == (1, 0)


def test_without_an_upstream_transactions_go_on_and_readyz_tells(database_url, database, place):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        uri = f"thrift://127.0.0.1:{closed.getsockname()[1]}"
    alone = App(settings(database_url, place, **{"metastore.upstream.uris": uri}), loops=False)
    alone.start()
    try:
        with MetastoreClient(alone.thrift_uri) as client:
            client.open_txns(T.OpenTxnRequest(1, "ann", "here"))
            for call in (lambda: client.get_table("d", "t"), lambda: client.drop_table("d", "t", True),
                         lambda: client.drop_database("d", True, True)):
                with pytest.raises(T.MetaException, match=f"upstream {uri} does not answer: connection refused"):
                    call()
        part = until(lambda: (told := readyz(alone.http_uri))["ready"] and told["parts"]["upstream"])
        assert part["ready"]
        assert f"upstream {uri} does not answer" in part["reason"]
    finally:
        alone.stop()


def test_forwarded_calls_are_counted_by_what_the_upstream_answered(front, client):
    with pytest.raises(T.NoSuchObjectException):
        client.get_table("d", "missing")
    with urllib.request.urlopen(f"{front.http_uri}/metrics") as answer:
        text = answer.read().decode()
    assert 'metastore_forwarded_calls_total{method="get_table_req",outcome="NoSuchObjectException"}' in text
    assert 'metastore_forwarded_call_seconds_count{method="get_table_req"}' in text


def test_batches_of_streams_are_refused_with_a_sentence(client):
    with pytest.raises(T.MetaException, match="in front of another one"):
        client.metastore_stream_positions("hive", "d", "t")


def test_what_is_to_be_compacted_is_looked_up_at_the_upstream(front, client, acid):
    service = CompactionService(front.database, CompactionSettings(), None, front.services.upstream.catalog)
    assert service.compact2(NewRequest(Entity(TableName("hive", "d", "t")), CompactionType.MAJOR)).accepted
    client.create_table(table("plain", numRows="0"))
    with pytest.raises(InvalidOperationError, match="non-ACID"):
        service.compact2(NewRequest(Entity(TableName("hive", "d", "plain")), CompactionType.MAJOR))
    with pytest.raises(NoSuchObjectError):
        service.compact2(NewRequest(Entity(TableName("hive", "d", "missing")), CompactionType.MAJOR))


def test_a_table_is_described_as_the_upstream_has_it(front, client):
    client.create_database(T.Database(name="d"))
    client.create_table(table("p", keys="day:string"))
    client.append_partition("d", "p", ["1"])
    known = front.services.upstream.catalog
    name = TableName("hive", "d", "p")
    at = client.get_table("d", "p").sd.location
    with front.database.begin() as pg:
        described(known, pg, name, at)


def described(known, pg, name, at):
    whole = known.described(pg, Entity(name))
    assert (whole.location, whole.is_transactional, whole.lacks_partition) == (at, True, True)
    one = known.described(pg, Entity(name, "day=1"))
    assert (one.location, one.partition_exists, one.table_id) == (f"{at}/day=1", True, whole.table_id)
    assert not known.described(pg, Entity(name, "day=2")).partition_exists
    assert known.all_partitions(pg, name) == [("day=1", f"{at}/day=1")]
    assert known.all_partitions(pg, TableName("hive", "d", "none")) == []
    assert known.columns_with_statistics(pg, Entity(name)) == []
    assert known.columns_with_statistics(pg, Entity(name, "day=1")) == []
    assert known.columns_with_statistics(pg, Entity(TableName("hive", "d", "none"))) == []
    assert "cannot be asked" in known.user_of(pg, at)


def test_settings_of_transactions_and_the_planner_are_ours_and_all_others_the_upstreams(database_url, behind, tmp_path):
    """An engine asks for them where it asks for tables."""
    asked = ("hive.metastore.planner.uri", "metastore.planner.uri", "hive.txn.timeout", "hive.lock.numretries",
             "hive.metastore.warehouse.dir", "hive.of.another.program")
    app = App(settings(database_url, tmp_path / "front", **{
        "metastore.upstream.uris": behind.thrift_uri, "hive.txn.timeout": "77s", "metastore.planner.uri": "http://planner:9085"}), loops=False)
    app.start()
    try:
        with MetastoreClient(app.thrift_uri) as client, MetastoreClient(behind.thrift_uri) as catalog:
            told, upstreams = ([one.get_config_value(name, "none") for name in asked] for one in (client, catalog))
            with pytest.raises(T.ConfigValSecurityException):
                client.get_config_value("java.home", "")
    finally:
        app.stop()

    assert told[:4] == ["http://planner:9085", "http://planner:9085", "77s", "100"]
    assert told[4:] == upstreams[4:]
    assert told[5] == "none"
