"""Calls as the Java classes of five Hive versions wrote them, sent to a server: every one is understood."""

import base64
import json
import re
import socket
from pathlib import Path

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from metastore.client import MetastoreClient
from metastore.locks.rules import LockType
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from metastore.txns.core.rules import Operation
from tests.support.transactions import Transactions

CALLS = json.loads((Path(__file__).parents[2] / "support" / "wire" / "calls.json").read_text())
MINE = ("open_txns", "commit_txn", "abort_txn", "abort_txns", "heartbeat", "heartbeat_txn_range", "get_open_txns",
        "get_open_txns_req", "get_open_txns_info", "allocate_table_write_ids", "get_valid_write_ids",
        "add_dynamic_partitions")
BINARY = [call for call in CALLS if call["protocol"] == "binary" and call["method"] in MINE]


def asked(server, call):
    """Return the reply to one message, or the TApplicationException."""
    host, port = server.thrift_uri.removeprefix("thrift://").split(":")
    transport = TSocket(host, int(port))
    transport.open()
    try:
        transport.handle.sendall(base64.b64decode(call["base64"]))
        protocol = TBinaryProtocol(TBufferedTransport(transport))
        _, kind, _ = protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            failure = TApplicationException()
            failure.read(protocol)
            return failure
        result = getattr(ThriftHiveMetastore, f"{call['method']}_result")()
        result.read(protocol)
        return result
    finally:
        transport.close()


def test_every_message_gets_a_declared_answer(server):
    """Except a commit that is to note how far replication has come in a database that is not there."""
    refused = {f"{call['version']} {call['method']} {call['what']}": answer.message for call in BINARY
               if isinstance(answer := asked(server, call), TApplicationException)}

    assert len(BINARY) > 70
    assert all("commit_txn" in call for call in refused)
    assert set(refused.values()) <= {
        "Cannot note the replication id 99: database sales and table sales.orders does not exist"}


def test_x2_both_layouts_of_add_dynamic_partitions(server, database):
    """2.3 has no write id, and every later field one place earlier."""
    t = Transactions(database)
    t.txns.seed_txn_id(42)
    for call in BINARY:
        if call["method"] == "add_dynamic_partitions":
            assert t.open() == 42
            answer = asked(server, call)
            components = database.once(
                'SELECT db, "table", partition, operation, write_id FROM txn_components ORDER BY partition')
            database.once("DELETE FROM txn_components; DELETE FROM txns; UPDATE txn_counter SET next_txn_id = 42")

            assert answer.o1 is answer.o2 is None
            write_id = None if call["version"] == "2.3.10" else 7
            assert components == [("sales", "orders", f"dt=2024-01-0{day}", "i", write_id) for day in (1, 2)]


def test_a_client_that_stops_in_the_middle_of_a_message(server):
    host, port = server.thrift_uri.removeprefix("thrift://").split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(base64.b64decode(BINARY[0]["base64"])[:20])

    assert not isinstance(asked(server, next(call for call in BINARY if call["method"] == "get_open_txns")), Exception)


def message(version, method, what):
    """One message of calls.json."""
    return next(call for call in CALLS if call["protocol"] == "binary"
                and (call["version"], call["method"], call["what"]) == (version, method, what))


def open_as(t, txn_id):
    """Open a transaction with the id that the messages name."""
    t.txns.seed_txn_id(txn_id)
    assert t.open() == txn_id


VERSIONS = ["2.3.10", "3.1.3", "4.0.1", "4.1.0", "4.2.0"]


def test_x1_every_generation_finds_its_own_form_of_the_open_transactions(server, database):
    """2.3 reads a set, 3.1 and later a list; each skips the other's."""
    t = Transactions(database)
    opened = t.open(3)
    t.abort(opened[0])
    calls = [call for call in BINARY if call["method"] == "get_open_txns"]

    assert sorted({call["version"] for call in calls}) == VERSIONS
    assert [forms_of_field_2(server, call) for call in calls] == [{TType.LIST: opened, TType.SET: opened}] * len(calls)


def forms_of_field_2(server, call):
    """By type, what a reply says in field 2 of its result."""
    host, port = server.thrift_uri.removeprefix("thrift://").split(":")
    transport = TSocket(host, int(port))
    transport.open()
    transport.handle.sendall(base64.b64decode(call["base64"]))
    protocol = TBinaryProtocol(TBufferedTransport(transport))
    protocol.readMessageBegin()
    protocol.readFieldBegin()  # success
    found = {}
    while (field := protocol.readFieldBegin())[1] != TType.STOP:
        _, kind, number = field
        if number == 2:
            size = (protocol.readSetBegin if kind == TType.SET else protocol.readListBegin)()[1]
            found[kind] = [protocol.readI64() for _ in range(size)]
        else:
            protocol.skip(kind)
    transport.close()
    return found


def transactional_table(t):
    t.rows("INSERT INTO catalogs (name, location) VALUES ('hive', '/w') ON CONFLICT DO NOTHING RETURNING 1")
    t.rows("INSERT INTO databases (catalog, name, location) VALUES ('hive', 'sales', '/w/s') ON CONFLICT DO NOTHING RETURNING 1")
    t.rows("""INSERT INTO tables (catalog, db, name, type, sd, parameters)
              VALUES ('hive', 'sales', 'items', 'MANAGED_TABLE', '{}', '{"transactional": "true"}') RETURNING 1""")


@pytest.mark.parametrize(("version", "refused"), [("2.3.10", True), ("3.1.3", False), ("4.2.0", False)])
def test_x3_a_writer_without_write_ids_may_not_commit(server, database, version, refused):
    """2.3 locks and commits; later ones allocate in between."""
    t = Transactions(database)
    transactional_table(t)
    t.txns.seed_txn_id(41)
    t.commit(t.open())
    t.open()
    assert not isinstance(asked(server, message(version, "lock", "every field set")), Exception)
    if not refused:
        t.allocate("sales.items", 42)
    request = ttypes.CommitTxnRequest(txnid=42)
    with MetastoreClient(server.thrift_uri) as client:
        if refused:
            with pytest.raises(ttypes.TxnAbortedException) as answer:
                client.commit_txn(request)
            assert re.search(r"txnid:42 was aborted: it declares a write .* sales.items without having", answer.value.message)
        else:
            client.commit_txn(request)
    assert t.state(42) == ("aborted" if refused else "committed")


def test_x4_who_does_not_send_the_flag_is_checked(server, database):
    """A message of 3.1, whose transaction was overtaken by an update of the same rows."""
    t = Transactions(database)
    open_as(t, 40)
    t.open()
    t.write("sales.orders", txn_id=40)
    t.commit(40)
    t.write("sales.orders", txn_id=41)

    answer = asked(server, message("3.1.3", "commit_txn", "transaction id only"))

    assert "due to a write conflict on sales/orders committed by [txnid:40,41] u/u" in answer.o2.message
    assert t.state(41) == "aborted"


def test_x5_locks_of_other_tables_are_not_shown(server, database):
    """An EXCL_WRITE among them would make the whole answer unreadable for 2.3 and 3.1."""
    t = Transactions(database)
    open_as(t, 42)
    t.lock(42, "sales.orders/dt=2024-01-01", Operation.INSERT, LockType.SHARED_READ)
    t.lock(42, "sales.other/dt=2024-01-01", Operation.UPDATE, LockType.EXCL_WRITE)

    for version in VERSIONS:
        answer = asked(server, message(version, "show_locks", "every field set"))
        shown = [(one.tablename, one.type) for one in answer.success.locks]
        assert shown == [("orders", ttypes.LockType.SHARED_READ)], version


def test_x6_names_come_back_as_they_were_sent(server, database):
    t = Transactions(database)
    t.allocate("sales.orders", t.open())

    for version in VERSIONS[1:]:
        call = message(version, "get_valid_write_ids", "two tables")
        data = base64.b64decode(call["base64"]).replace(b"sales.orders", b"SALES.Orders")
        answer = asked(server, {**call, "base64": base64.b64encode(data)})
        assert [(one.fullTableName, one.writeIdHighWaterMark) for one in answer.success.tblValidWriteIds] == [
            ("SALES.Orders", 1), ("sales.items", 0)], version
