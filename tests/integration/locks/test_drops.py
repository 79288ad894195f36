"""What is dropped, renamed or emptied: not under the locks of others, and not while somebody gets into the queue."""

import pytest

from metastore.db.engine import Database
from metastore.errors import UnavailableError
from metastore.locks import store
from metastore.locks.rules import LockObject, LockRequest
from metastore.locks.service import LockService
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch import middleware
from tests.integration.catalog.conftest import ORC
from tests.integration.locks.conftest import wanted
from tests.support.able import AbleClient

READ, WRITE, EXCLUSIVE = ttypes.LockType.SHARED_READ, ttypes.LockType.SHARED_WRITE, ttypes.LockType.EXCLUSIVE


def storage():
    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("a", "int")], inputFormat=ORC["inputFormat"], outputFormat=ORC["outputFormat"],
        serdeInfo=ttypes.SerDeInfo("s", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {}))


@pytest.fixture
def catalog(client):
    """Database ``d`` with a plain table ``t`` that has a partition ``p=1``."""
    client.create_database(ttypes.Database(name="d"))
    client.create_table(ttypes.Table(
        dbName="d", tableName="t", owner="u", tableType="MANAGED_TABLE", sd=storage(), parameters={},
        partitionKeys=[ttypes.FieldSchema("p", "string")]))
    client.append_partition("d", "t", ["1"])
    yield client
    client.drop_database("d", True, True)


@pytest.fixture
def other(server):
    with AbleClient(server.thrift_uri) as opened:
        yield opened


@pytest.fixture
def hold(other):
    """Yield a function that takes a lock of eve, over a connection of her own; release all in the end."""
    held = []

    def holding(kind, table="t", partition=None, txn_id=0, client=other, operation=ttypes.DataOperationType.NO_TXN):
        component = ttypes.LockComponent(kind, ttypes.LockLevel.TABLE, "d", table, partition, operationType=operation,
                                         isTransactional=operation != ttypes.DataOperationType.NO_TXN)
        answer = client.lock(ttypes.LockRequest([component], txn_id, "eve", "laptop", agentInfo="x"))
        assert answer.state == ttypes.LockState.ACQUIRED
        held.append((txn_id, answer.lockid))
        return answer.lockid
    yield holding
    for txn_id, lock_id in held:
        if txn_id:
            other.abort_txns(ttypes.AbortTxnsRequest([txn_id]))
        else:
            other.unlock(ttypes.UnlockRequest(lock_id))


@pytest.fixture
def txn(other):
    [txn_id] = other.open_txns(ttypes.OpenTxnRequest(1, "eve", "laptop")).txn_ids
    return txn_id


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(middleware, "PAUSES", 0)


def renamed(client):
    table = client.get_table("d", "t")
    table.tableName = "new"
    client.alter_table("d", "t", table)


def renamed_partition(client):
    partition = client.get_partition_by_name("d", "t", "p=1")
    partition.values = ["2"]
    client.rename_partition("d", "t", ["1"], partition)


CHANGES = {
    "DROP TABLE": lambda client: client.drop_table("d", "t", True),
    "DROP PARTITION": lambda client: client.drop_partition_by_name("d", "t", "p=1", True),
    "DROP PARTITIONS": lambda client: client.drop_partitions_req(ttypes.DropPartitionsRequest(
        "d", "t", ttypes.RequestPartsSpec(names=["p=1"]), True)),
    "DROP DATABASE": lambda client: client.drop_database("d", True, True),
    "RENAME": renamed,
    "PARTITION RENAME": renamed_partition,
    "TRUNCATE": lambda client: client.truncate_table("d", "t", ["p=1"])}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", [READ, WRITE])
def test_nothing_goes_from_under_the_lock_of_another(catalog, hold, txn, impatient, change, kind):
    lock_id = hold(kind, txn_id=txn)

    with pytest.raises(ttypes.MetaException) as refused:
        CHANGES[change](catalog)

    for word in ("eve@laptop", f"lock {lock_id}", f"transaction {txn}", f"metastore txn abort {txn}", "nothing was changed"):
        assert word in refused.value.message
    assert catalog.get_partition_by_name("d", "t", "p=1").values == ["1"]


def exchanged(client):
    client.create_table(ttypes.Table(
        dbName="d", tableName="other", owner="u", tableType="MANAGED_TABLE", sd=storage(), parameters={},
        partitionKeys=[ttypes.FieldSchema("p", "string")]))
    client.exchange_partitions({"p": "1"}, "d", "t", "d", "other")


def test_partitions_are_not_exchanged_under_a_writer(catalog, hold, txn, impatient):
    """Readers are not waited for: Hive locks both tables as for reading, and does not say in which transaction."""
    hold(READ)
    lock_id = hold(WRITE, partition="p=1", txn_id=txn)
    with pytest.raises(ttypes.MetaException, match=f"eve@laptop holds SHARED_WRITE on d.t/p=1 .lock {lock_id}"):
        exchanged(catalog)
    assert catalog.get_partition_by_name("d", "t", "p=1").values == ["1"]

    catalog.abort_txns(ttypes.AbortTxnsRequest([txn]))
    catalog.exchange_partitions({"p": "1"}, "d", "t", "d", "other")
    assert catalog.get_partition_names("d", "other", -1) == ["p=1"]


def moved_table(client):
    table = client.get_table("d", "acid")
    table.sd.location += "_elsewhere"
    client.alter_table("d", "acid", table)


def moved_partition(client):
    partition = client.get_partition_by_name("d", "acid", "p=1")
    partition.sd.location += "_elsewhere"
    client.alter_partitions("d", "acid", [partition])


@pytest.mark.parametrize("move", [moved_table, moved_partition])
def test_a_transactional_table_is_not_put_elsewhere_under_a_lock(catalog, hold, txn, impatient, move):
    """A writer would commit rows in a place where nobody looks any more."""
    catalog.create_table(ttypes.Table(
        dbName="d", tableName="acid", owner="u", tableType="MANAGED_TABLE", sd=storage(),
        parameters={"transactional": "true", "transactional_properties": "insert_only"},
        partitionKeys=[ttypes.FieldSchema("p", "string")]))
    catalog.append_partition("d", "acid", ["1"])
    hold(WRITE, table="acid", txn_id=txn)
    table = catalog.get_table("d", "acid")
    table.parameters["comment"] = "only this"
    catalog.alter_table("d", "acid", table)  # no look at locks

    with pytest.raises(ttypes.MetaException, match="SET LOCATION has to wait"):
        move(catalog)

    catalog.abort_txns(ttypes.AbortTxnsRequest([txn]))
    move(catalog)


def test_what_others_lock_elsewhere_is_not_in_the_way(catalog, hold, txn, impatient):
    hold(READ, partition="p=2", txn_id=txn)
    hold(READ, table="u", txn_id=txn)

    catalog.drop_partition_by_name("d", "t", "p=1", True)

    assert catalog.get_partition_names("d", "t", -1) == []


def test_a_drop_waits_a_little_for_a_lock_that_goes(catalog, hold, other, monkeypatch):
    """The lock goes in the pause after the first refusal."""
    lock_id, pauses = hold(EXCLUSIVE), []

    class Pause:
        def wait(self, seconds):
            pauses.append(seconds)
            other.unlock(ttypes.UnlockRequest(lock_id))

    monkeypatch.setattr(middleware, "Event", Pause)
    catalog.drop_table("d", "t", True)

    assert len(pauses) == 1
    assert catalog.get_all_tables("d") == []


def test_few_wait_at_a_time(catalog, hold, monkeypatch):
    hold(EXCLUSIVE)
    places = [middleware._PLACES.acquire(blocking=False) for _ in range(4)]
    monkeypatch.setattr(middleware, "Event", None)
    try:
        with pytest.raises(ttypes.MetaException, match="has to wait"):
            catalog.drop_table("d", "t", True)
    finally:
        for _ in places:
            middleware._PLACES.release()


def test_hive_drops_under_its_own_lock(catalog, hold, other, txn, impatient):
    """Its call does not say in which transaction; the lock may have come over another connection."""
    hold(EXCLUSIVE, txn_id=txn)

    catalog.drop_table("d", "t", True)

    assert catalog.get_all_tables("d") == []


def test_a_lock_that_follows_a_rename_is_listed_by_the_new_name(catalog, hold, txn, impatient):
    lock_id = hold(EXCLUSIVE, txn_id=txn)
    [before] = catalog.show_locks(ttypes.ShowLocksRequest()).locks

    renamed(catalog)

    [after] = catalog.show_locks(ttypes.ShowLocksRequest()).locks
    assert (before.lockid, before.tablename) == (lock_id, "t")
    before.tablename = "new"
    assert after == before


def test_an_overwrite_is_not_taken_for_a_drop(catalog, hold, txn, impatient):
    hold(EXCLUSIVE, txn_id=txn, operation=ttypes.DataOperationType.UPDATE)

    with pytest.raises(ttypes.MetaException, match="has to wait"):
        catalog.drop_table("d", "t", True)
    catalog.drop_table_with_environment_context("d", "t", True, ttypes.EnvironmentContext({"txnId": str(txn)}))


def test_a_lock_without_a_transaction_is_its_connections(catalog, hold, other, impatient):
    """Iceberg's commit holds others up; who locked over the same connection drops under its own lock."""
    hold(EXCLUSIVE)
    with pytest.raises(ttypes.MetaException, match="metastore lock release"):
        catalog.drop_table("d", "t", True)

    other.drop_table("d", "t", True)


def test_nobody_gets_into_the_queue_while_a_drop_is_under_way(database, locks):
    """The drop has looked and not yet committed: a writer that asks for a lock waits for it."""
    hasty = LockService(Database(database.url, pool_size=1, lock_timeout_ms=50))
    request = LockRequest(tuple(wanted("W d.t")))
    with database.begin() as pg:
        assert store.lock_tail(pg, [LockObject("hive", "d", "t")]) == ([], set())
        with pytest.raises(UnavailableError):
            hasty.lock([request])

    assert hasty.lock([request])[0].state == "acquired"
    hasty.db.close()
