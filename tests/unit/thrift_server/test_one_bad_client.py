"""What one client sends, or does not take, costs the others neither time nor memory."""

import gc
import threading
import weakref
from datetime import timedelta

import pytest
import structlog
from thrift.Thrift import TApplicationException

from metastore.errors import MetaError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call, coalesced, immediate
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.handlers.txns import TxnHandlers
from metastore.thrift_server.handlers.write_ids import WriteIdHandlers
from metastore.thrift_server.server import MOST_IN_A_ROW
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import BinaryProtocol
from tests.support.thrift_server import Peer, message, serving, text_field, until
from tests.unit.thrift_server.test_server import ALIVE, GET_STATUS, Stats


class Witness:
    """Something that a weak reference can be taken of."""


class Handlers:
    """Keeps weak references to what it was sent."""

    def __init__(self):
        self.sent, self.order = [], []
        self.entered, self.leave = threading.Event(), threading.Event()

    def create_table(self, call, table):
        table.owner = Witness()  # lives as long as what was sent
        self.sent.append(weakref.ref(table.owner))
        if table.tableName == "declared":
            raise MetaError("no")
        try:
            int(table.tableName)
        except ValueError as error:
            raise KeyError("nobody foresaw this") from error

    def add_partitions(self, call, partitions):
        self.sent.append(threading.current_thread().name)
        return len(partitions)

    def get_all_databases(self, call):
        return ["x" * 1000] * 8000

    @coalesced("locks", apart=lambda call: call.args[0].lockid > 10)
    def unlock(self, calls):
        self.sent.append(threading.current_thread().name)
        return [None] * len(calls)

    @coalesced("locks")
    def lock(self, calls):
        self.sent.append(threading.current_thread().name)
        return [ttypes.LockResponse(1, ttypes.LockState.ACQUIRED)] * len(calls)

    @immediate
    def get_config_value(self, call, name, default):
        if name == "wait":
            self.entered.set()
            assert self.leave.wait(60)
        self.order.append(name)
        return ""


@pytest.fixture
def handlers():
    return Handlers()


@pytest.fixture
def serve(handlers):
    running = []

    def start(**settings):
        context = serving(handlers, Fb303Handlers(Stats(), 1), **settings)
        server = context.__enter__()
        running.append(context)
        return server

    yield start
    handlers.leave.set()
    for context in running:
        context.__exit__(None, None, None)


def call_of(method, *arguments):
    codec = CODECS[method]
    return message(method, BinaryProtocol()._encode(codec.arguments_class(*arguments), codec.arguments))


@pytest.mark.parametrize("name", ["declared", "unforeseen"])
def test_a_failed_call_keeps_nothing_of_what_was_sent(serve, handlers, name):
    server = serve(worker_threads=1)
    gc.collect()
    gc.disable()
    try:
        with Peer(server.address) as peer:
            peer.call(call_of("create_table", ttypes.Table(tableName=name)))
            assert handlers.sent
            until(lambda: handlers.sent[0]() is None)
    finally:
        gc.enable()


EMPTY = 30_000


def partitions_of_empty_columns(count):
    """Two partitions: a struct within a struct is not seen by who only looks for the end of the message."""
    columns = ttypes.StorageDescriptor(cols=[ttypes.FieldSchema()] * (count // 2))
    return call_of("add_partitions", [ttypes.Partition(sd=columns)] * 2)


def test_structs_of_one_byte_are_counted_while_they_are_made(serve, handlers):
    data = partitions_of_empty_columns(EMPTY)
    assert len(data) < EMPTY + 1000
    with Peer(serve(max_message_objects=EMPTY // 2 + 10).address) as peer:
        kind, _, answer = peer.call(data)
        assert (kind, answer.type) == (3, TApplicationException.PROTOCOL_ERROR)
        assert "has more than 15010 structs" in answer.message
        assert peer.call(GET_STATUS)[2] == ALIVE
    with Peer(serve(max_message_objects=EMPTY + 10).address) as peer:
        assert peer.call(data)[2] == b"\x08\0\0\0\0\0\2\0"
    assert handlers.sent != []


def test_a_list_of_more_values_than_may_be_is_refused_at_its_head(serve):
    with Peer(serve(max_message_objects=1000).address) as peer:
        peer.send(call_of("add_partitions", [ttypes.Partition()] * 20_000)[:500])
        assert peer.closed()


def test_large_messages_are_decoded_off_the_loop(serve, monkeypatch):
    server = serve()
    threads = []
    decoded = server._messages.decoded
    monkeypatch.setattr(server._messages, "decoded", lambda *arguments: threads.append(
        threading.current_thread().name) or decoded(*arguments))
    with Peer(server.address) as peer:
        peer.call(partitions_of_empty_columns(100))
        assert threads == []
        peer.call(partitions_of_empty_columns(EMPTY))
        assert threads == ["large-messages"]


def test_a_large_call_of_a_lane_does_not_run_on_the_loop(serve, handlers):
    server = serve()
    with Peer(server.address) as peer:
        peer.call(call_of("unlock", ttypes.UnlockRequest(1)))
        assert handlers.sent.pop() == "thrift-loop"
        names = ["p"] * 5000
        request = ttypes.LockRequest(user="u", hostname="h", component=[
            ttypes.LockComponent(type=1, level=1, dbname=name) for name in names])
        peer.call(call_of("lock", request))
        assert handlers.sent.pop().startswith("handler-")


def test_large_calls_take_turns_and_small_ones_pass_by(serve, monkeypatch):
    server = serve()
    for _ in range(4):
        server._large._free.acquire()  # as if four large calls were in work
    with Peer(server.address) as large, Peer(server.address) as gone, Peer(server.address) as small:
        large.send(partitions_of_empty_columns(EMPTY))
        until(lambda: server.in_flight == 1)
        gone.send(partitions_of_empty_columns(EMPTY))
        until(lambda: server.in_flight == 2)
        gone.sock.close()
        until(lambda: server.connections == 2)
        assert small.call(GET_STATUS)[2] == ALIVE
        server._large.finished()
        assert large.answer()[2] == b"\x08\0\0\0\0\0\2\0"
        until(lambda: server.in_flight == 0)
        assert server._large._free._value == 1


def test_who_sends_ahead_does_not_keep_others_waiting(serve, handlers):
    def ask(name):
        return message("get_config_value", text_field(1, name) + b"\0")

    server = serve()
    with Peer(server.address) as first, Peer(server.address) as ahead, Peer(server.address) as other:
        for peer in (ahead, other):
            assert peer.call(GET_STATUS)[2] == ALIVE
        first.send(ask("wait"))
        assert handlers.entered.wait(60)
        ahead.send(ask("ahead") * 200)
        other.send(ask("other"))
        handlers.leave.set()
        other.answer()
        for _ in range(200):
            ahead.answer()
        assert handlers.order.index("other") <= MOST_IN_A_ROW + 1


def moved_ago(server, seconds):
    for connection in server._connections:
        connection.moved -= seconds


def test_an_answer_that_is_not_taken_ends_its_connection_by_default(serve):
    server = serve()
    with Peer(server.address) as reader, Peer(server.address) as half, Peer(server.address) as idle:
        assert idle.call(GET_STATUS)[2] == ALIVE
        reader.send(message("get_all_databases"))
        half.send(GET_STATUS[:10])
        until(lambda: sorted(bool(c.sending or c.received) for c in server._connections) == [
            False, True, True])
        with structlog.testing.capture_logs() as lines:
            until(lambda: moved_ago(server, 61) or server.connections == 1)  # the kernel may take more of the answer meanwhile
        assert {line["event"] for line in lines} == {"connection_closed_stuck"}
        assert idle.call(GET_STATUS)[2] == ALIVE


def test_a_reader_that_takes_a_byte_a_minute_ends_too(serve):
    server = serve()
    with Peer(server.address) as reader:
        reader.send(message("get_all_databases"))
        (connection,) = until(lambda: [c for c in server._connections if c.sending])
        connection.since -= 60 + connection.size / (1 << 16) + 1
        until(lambda: not server.connections)


def test_answers_that_nobody_takes_are_bounded_together(serve):
    server = serve(max_buffered=5_000_000, transfer_timeout=timedelta(0))
    peers = [Peer(server.address) for _ in range(6)]
    with structlog.testing.capture_logs() as lines:
        for peer in peers:
            peer.send(message("get_all_databases"))
        until(lambda: "connection_closed_memory" in {one["event"] for one in lines})
    until(lambda: sum(c.held for c in server._connections) <= 5_000_000 and not server.in_flight)
    with Peer(server.address) as other:
        assert other.call(GET_STATUS)[2] == ALIVE
    for peer in peers:
        peer.sock.close()


def test_a_small_call_that_asks_for_a_lot_does_not_run_on_the_loop(serve, handlers):
    with Peer(serve().address) as peer:
        for lock_id, thread in ((10, "thrift-loop"), (11, "handler-")):
            peer.call(call_of("unlock", ttypes.UnlockRequest(lock_id)))
            assert handlers.sent.pop().startswith(thread)


@pytest.mark.parametrize(("handler", "few", "many"), [
    (WriteIdHandlers.get_valid_write_ids, ttypes.GetValidWriteIdsRequest(["d.t"], "9:9223372036854775807:1-9,12:"),
     ttypes.GetValidWriteIdsRequest(["d.t"], "500000:1:1-490000:")),
    (TxnHandlers.heartbeat_txn_range, ttypes.HeartbeatTxnRangeRequest(1, 1000), ttypes.HeartbeatTxnRangeRequest(1, 1001)),
    (WriteIdHandlers.get_valid_write_ids, ttypes.GetValidWriteIdsRequest(["d.t"]),
     ttypes.GetValidWriteIdsRequest(["d.t"], "50000:1:1-9000:10000-20000")),
    (WriteIdHandlers.get_valid_write_ids, ttypes.GetValidWriteIdsRequest(["d.t"], "1:1:1-" + "9" * 20), None),
])
def test_ranges_of_ids_are_what_asks_for_a_lot(handler, few, many):
    apart = handler.__apart__
    assert not apart(Call(handler.__name__, (few,), None))
    assert many is None or apart(Call(handler.__name__, (many,), None))
