"""Calls as the Java classes of five Hive versions wrote them, sent to a server: every one is understood."""

import base64
import json
import socket
from pathlib import Path

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore
from tests.support.transactions import Transactions

CALLS = json.loads((Path(__file__).parents[2] / "support" / "wire" / "calls.json").read_text())
MINE = ("open_txns", "commit_txn", "abort_txn", "abort_txns", "heartbeat", "heartbeat_txn_range", "get_open_txns",
        "get_open_txns_req", "get_open_txns_info", "allocate_table_write_ids", "get_valid_write_ids",
        "add_dynamic_partitions")
BINARY = [call for call in CALLS if call["protocol"] == "binary" and call["method"] in MINE]


def asked(server, call):
    """The reply to one message, or the TApplicationException."""
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
