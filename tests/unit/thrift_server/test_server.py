"""The server over real sockets: what clients do wrong, and what is promised to all others meanwhile."""

import gc
import os
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from thrift.Thrift import TApplicationException

from metastore.db import fibers
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import LATER, coalesced
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import BinaryProtocol
from tests.support.thrift_server import Peer, message, serving, text_field, until

GET_STATUS = message("getStatus")
ALIVE = b"\x08\0\0\0\0\0\2\0"  # success = 2
UNLOCK = message("unlock", b"\x0c\0\1\x0a\0\1" + bytes(7) + b"\1\0\0")


class Gate:
    """Closed until it is set, for threads and fibers alike."""

    def __init__(self):
        self._fd = os.eventfd(0, os.EFD_CLOEXEC)

    def set(self):
        os.eventfd_write(self._fd, 1)

    def wait(self):
        own = os.dup(self._fd)
        fibers.until(own, select.POLLIN, 60)
        os.close(own)


class Handlers:
    """Enough to see what the server does."""

    def __init__(self):
        self.entered, self.leave = threading.Semaphore(0), Gate()
        self.batches, self.calls, self.connection = [], [], None

    def get_all_databases(self, call):
        return ["default"]

    def get_all_tables(self, call, db):
        """Answers when it is told to."""
        self.connection = call.connection
        self.entered.release()
        self.leave.wait()
        return [db]

    def get_table(self, call, db, name):
        self.calls.append(name)
        if name == "large":
            return ttypes.Table(tableName="x" * (8 << 20))
        return ttypes.Table(tableName=name)

    def create_table(self, call, table):
        self.calls.append(table)

    def add_partitions(self, call, partitions):
        return len(partitions)

    @coalesced("locks")
    def unlock(self, calls):
        self.batches.append(len(calls))
        self.entered.release()
        self.leave.wait()
        return [None] * len(calls)


class Stats:
    def counts(self):
        return {"lock": 3}


@pytest.fixture
def handlers():
    return Handlers()


@pytest.fixture
def serve(handlers):
    """Yield a function that starts a server with these handlers."""
    started = []

    def start(**settings):
        manager = serving(handlers, Fb303Handlers(Stats(), 1_700_000_000), **settings)
        started.append(manager)
        return manager.__enter__()

    yield start
    handlers.leave.set()
    for manager in started:
        manager.__exit__(None, None, None)


def alive(address):
    """Another client is served."""
    with Peer(address) as peer:
        assert peer.call(GET_STATUS) == (2, 1, ALIVE)


def read_table(name):
    return message("get_table", text_field(1, "db") + text_field(2, name) + b"\0")


# ------------------------------------------------------------------------------------------------ answers


def test_health_calls(serve):
    server = serve()
    with Peer(server.address) as peer:
        assert peer.call(message("getStatus", seqid=77)) == (2, 77, ALIVE)
        assert peer.call(message("getVersion"))[2] == b"\x0b\0\0\0\0\0\0\0"
        assert peer.call(message("aliveSince"))[2] == b"\x0a\0\0" + (1_700_000_000).to_bytes(8) + b"\0"
        assert b"new db based metaserver" in peer.call(message("getName"))[2]
        assert b"calls.lock" in peer.call(message("getCounters"))[2]


def test_a_server_that_nobody_has_any_more_holds_no_descriptor(handlers):
    """Whoever still has it may wake it: until then its bell is open, so that no number is rung that is another's by now."""
    def held():
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    before = held()
    for _ in range(3):
        with serving(handlers, Fb303Handlers(Stats(), 0)) as server, Peer(server.address) as peer:
            assert peer.call(message("getStatus"))[2] == ALIVE
        del server, peer
    assert held() == before


def test_unknown_methods_and_methods_that_nobody_serves(serve):
    server = serve()
    with Peer(server.address) as peer:
        for name in ("get_type", "no_such_method", "x" * 1000, "ünknown"):
            kind, _, error = peer.call(message(name, text_field(1, "argument") + b"\0"))
            assert (kind, error.type) == (3, TApplicationException.UNKNOWN_METHOD)
            assert error.message == f"Invalid method name: '{name}'"
        assert peer.call(GET_STATUS)[2] == ALIVE


def test_missing_required_field(serve):
    with Peer(serve().address) as peer:
        _, _, error = peer.call(message("unlock", b"\x0c\0\1\0\0"))
        assert error.type == TApplicationException.PROTOCOL_ERROR
        assert error.message.startswith("Required field 'lockid' is unset! Struct:UnlockRequest(")
        _, _, error = peer.call(message("unlock", b"\x0c\0\1\x0b\0\1\0\0\0\0\0\0"))  # of another type: skipped
        assert error.type == TApplicationException.PROTOCOL_ERROR
        assert peer.call(GET_STATUS)[2] == ALIVE


def test_shutdown_is_never_answered_and_stops_nothing(serve):
    server = serve()
    with Peer(server.address) as peer:
        for kind in (4, 1):
            peer.send(message("shutdown", kind=kind) + message("reinitialize", kind=kind))
            assert peer.call(GET_STATUS) == (2, 1, ALIVE)
    alive(server.address)


def test_an_ordinary_method_sent_oneway_is_run_without_an_answer(serve, handlers):
    with Peer(serve().address) as peer:
        peer.send(message("get_table", text_field(1, "db") + text_field(2, "quiet") + b"\0", kind=4))
        assert peer.call(GET_STATUS)[2] == ALIVE
    assert handlers.calls == ["quiet"]


def test_header_without_version(serve):
    with Peer(serve().address) as peer:
        old = len(b"getStatus").to_bytes(4) + b"getStatus" + b"\1" + (9).to_bytes(4) + b"\0"
        assert peer.call(old) == (2, 9, ALIVE)


@pytest.mark.parametrize("framed", [False, True])
def test_compact_protocol(serve, framed):
    server = serve(compact_protocol=True, framed=framed)
    with Peer(server.address, compact=True, framed=framed) as peer:
        assert peer.call(b"\x82\x21\xac\x02\x09getStatus\0") == (2, 300, b"\x05\0\x04\0")
        assert peer.call(b"\x82\x21\x01\x08get_type\0")[2].message == "Invalid method name: 'get_type'"


def test_framed_messages_in_pieces_and_together(serve):
    frame = len(GET_STATUS).to_bytes(4) + GET_STATUS
    with Peer(serve(framed=True).address, framed=True) as peer:
        for i in range(len(frame)):
            peer.send(frame[i : i + 1])
        assert peer.answer()[2] == ALIVE
        peer.send(frame * 50)
        assert [peer.answer()[2] for _ in range(50)] == [ALIVE] * 50


# ------------------------------------------------------------------------------------------------ order and lanes


def test_requests_sent_ahead_are_answered_in_order(serve):
    with Peer(serve().address) as peer:
        sent = [(GET_STATUS if i % 3 else read_table(f"t{i}")) for i in range(3000)]
        threading.Thread(target=peer.send, args=(b"".join(sent),)).start()
        for i in range(3000):
            body = peer.answer()[2]
            assert body == ALIVE if i % 3 else f"t{i}".encode() in body


def test_requests_sent_ahead_of_a_call_in_work_do_not_pile_up(serve, handlers):
    """What the server takes in is bounded, so the client's send blocks."""
    server = serve()
    with Peer(server.address, timeout=0.3) as peer:
        peer.send(message("get_all_tables", text_field(1, "db") + b"\0"))
        assert handlers.entered.acquire(timeout=60)
        with pytest.raises(TimeoutError):
            for _ in range(100_000):
                peer.send(GET_STATUS * 1000)
        (connection,) = server._connections
        assert len(connection.received) < 1 << 18
        alive(server.address)


def test_calls_of_a_lane_gather_while_a_batch_is_in_work(serve, handlers):
    server = serve()
    peers = [Peer(server.address) for _ in range(20)]
    peers[0].send(UNLOCK)
    assert handlers.entered.acquire(timeout=60)
    for peer in peers[1:]:
        peer.send(UNLOCK)
    until(lambda: server.in_flight == 20)
    alive(server.address)
    handlers.leave.set()
    assert [peer.answer()[2] for peer in peers] == [b"\0"] * 20
    assert handlers.batches[0] == 1
    assert (len(handlers.batches), sum(handlers.batches)) == (2, 20)
    for peer in peers:
        peer.sock.close()


def test_slow_handlers_do_not_hold_up_the_loop(serve, handlers):
    server = serve(worker_threads=2)
    with Peer(server.address) as one, Peer(server.address) as two, Peer(server.address) as three:
        for peer in (one, two, three):
            peer.send(message("get_all_tables", text_field(1, "db") + b"\0"))
        assert handlers.entered.acquire(timeout=60)
        alive(server.address)
        handlers.leave.set()
        assert all(b"db" in peer.answer()[2] for peer in (one, two, three))


# ------------------------------------------------------------------------------------------------ bad clients


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"\x00\x00\x00\x20" + GET_STATUS + bytes(20),  # framed, sent to an unframed port
        b"\x80\x01\x00\x02\x00\x00\x00\x09getStatus\0\0\0\1\0",  # a reply
        b"\x80\x02\x00\x01\x00\x00\x00\x09getStatus\0\0\0\1\0",  # version 2
        b"\x80\x01\x00\x01\xff\xff\xff\xffgetStatus",
        b"\x80\x01\x00\x01\x00\x00\x00\x02\xff\xfe\0\0\0\1\0",  # name is not UTF-8
        message("get_table", b"\x0b\0\1\xff\xff\xff\xff"),
        message("get_table", b"\x0b\0\1\x7f\xff\xff\xff"),
        message("get_all_databases", b"\x0f\0\1\x0c\x7f\xff\xff\xff"),
        message("get_all_databases", b"\x0c\0\1" * 10_000),
        message("get_all_databases", b"\x0f\0\1" + b"\x0f\0\0\0\1" * 200_000),
    ],
    ids=range(12),
)
def test_garbage_closes_its_own_connection_only(serve, garbage):
    server = serve()
    with Peer(server.address) as other, Peer(server.address) as peer:
        assert other.call(GET_STATUS)[2] == ALIVE
        peer.send(garbage)
        assert peer.closed()
        assert other.call(GET_STATUS)[2] == ALIVE
    alive(server.address)


def nested_tables(depth):
    """Build a create_table whose table is inside a table inside a table ..., as its own declaration allows."""
    # Table.creationMetadata (16), its sourceTables (8), a set of SourceTable, whose table (1) is the next Table
    begin, end = b"\x0c\0\x10" + b"\x0e\0\x08\x0c\0\0\0\1" + b"\x0c\0\1", b"\0" * 3
    return message("create_table", b"\x0c\0\1" + begin * depth + b"\0" + end * depth + b"\0")


def test_structs_that_contain_themselves_cannot_exhaust_the_stack(serve):
    server = serve()
    for depth in (1, 10, 1000, 100_000):
        with Peer(server.address) as peer:
            try:
                peer.call(nested_tables(depth))
                assert depth <= 10
            except (EOFError, ConnectionError):
                assert depth > 10
        alive(server.address)


@pytest.mark.parametrize("end", [1, 3, 7, 12, 20, 22])
def test_clients_that_stop_in_the_middle(serve, end):
    server = serve()
    with Peer(server.address) as stuck, Peer(server.address) as vanished:
        stuck.send(read_table("orders")[:end])
        vanished.send(read_table("orders")[:end])
        vanished.sock.close()
        alive(server.address)
        stuck.send(read_table("orders")[end:])
        assert b"orders" in stuck.answer()[2]


def test_invalid_text_in_arguments_hurts_nobody(serve):
    with Peer(serve().address) as peer:
        peer.call(message("get_table", text_field(1, b"\xff\xfe") + text_field(2, b"\xed\xa0\x80") + b"\0"))
        assert peer.call(GET_STATUS)[2] == ALIVE


def test_a_client_that_vanishes_during_its_call(serve, handlers):
    server = serve()
    with Peer(server.address) as peer:
        peer.send(message("get_all_tables", text_field(1, "db") + b"\0"))
        assert handlers.entered.acquire(timeout=60)
    until(lambda: not server.connections)
    assert handlers.connection.closed
    assert server.in_flight == 1
    handlers.leave.set()
    until(lambda: not server.in_flight)
    alive(server.address)


def test_a_client_that_does_not_read_its_answers(serve):
    server = serve()
    with Peer(server.address) as slow:
        slow.send(read_table("large") * 3)
        alive(server.address)
        (connection,) = until(lambda: [c for c in server._connections if c.sending])
        assert len(connection.sending) <= 9 << 20  # one answer, not three
        assert len(slow.answer()[2]) > 8 << 20
        assert len(slow.answer()[2]) > 8 << 20
        assert len(slow.answer()[2]) > 8 << 20
        assert slow.call(GET_STATUS)[2] == ALIVE


def silent_for(server, peer, seconds):
    """Make the server believe that it has not heard from this client for so long."""
    port = peer.sock.getsockname()[1]
    (connection,) = until(lambda: [c for c in server._connections if c.peer.endswith(f":{port}")])
    connection.active -= seconds


def test_what_is_silent_for_too_long_is_closed(serve, handlers):
    """Idle clients, and those that never complete a message; not those that wait for an answer."""
    server = serve(idle_timeout=timedelta(seconds=60))
    with (
        Peer(server.address) as idle,
        Peer(server.address) as loris,
        Peer(server.address) as busy,
        Peer(server.address) as fresh,
        structlog.testing.capture_logs() as lines,
    ):
        busy.send(message("get_all_tables", text_field(1, "db") + b"\0"))
        assert handlers.entered.acquire(timeout=60)
        for peer in (idle, loris, busy):
            silent_for(server, peer, 61)
        loris.send(read_table("orders")[:20])
        assert idle.closed()
        assert loris.closed()
        assert fresh.call(GET_STATUS)[2] == ALIVE
        handlers.leave.set()
        assert b"db" in busy.answer()[2]
        assert busy.call(GET_STATUS)[2] == ALIVE
    assert [line["event"] for line in lines if "idle" in line["event"]] == ["connection_closed_idle"] * 2


def test_connection_limit(serve):
    with structlog.testing.capture_logs() as lines:
        server = serve(max_connections=3)
        peers = [Peer(server.address) for _ in range(3)]
        assert [peer.call(GET_STATUS)[2] for peer in peers] == [ALIVE] * 3
        with Peer(server.address) as fourth:
            assert fourth.closed()
        peers.pop().sock.close()
        until(lambda: server.connections == 2)
        alive(server.address)
    (line,) = [line for line in lines if line["log_level"] == "warning"]
    assert (line["limit"], line["setting"]) == (3, "metastore.server.max.connections")
    assert server.refused_connections == 1
    for peer in peers:
        peer.sock.close()


# ------------------------------------------------------------------------------------------------ sizes


def partitions(count, columns=20):
    cols = [ttypes.FieldSchema(f"c{i}", "string", None) for i in range(columns)]
    sd = ttypes.StorageDescriptor(cols=cols, location="s3a://warehouse/db/table/dt=2024-01-01", parameters={"a": "b"})
    partition = ttypes.Partition(values=["2024-01-01"], dbName="db", tableName="t", sd=sd, parameters={"k": "v" * 200})
    codec = CODECS["add_partitions"]
    arguments = codec.arguments_class([partition] * count)
    return message("add_partitions", BinaryProtocol()._encode(arguments, codec.arguments))


def test_a_message_of_many_megabytes(serve):
    server = serve()
    data = partitions(30_000)
    assert len(data) > 20 << 20
    with Peer(server.address, timeout=120) as peer, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(peer.call, data)
        waits = []
        while not answer.done():  # everybody else is served meanwhile
            begin = time.perf_counter()
            alive(server.address)
            waits.append(time.perf_counter() - begin)
        assert answer.result()[2] == b"\x08\0\0" + (30_000).to_bytes(4) + b"\0"
    print(f"{len(data) >> 20} MB; another client waited at most {max(waits) * 1000:.0f} ms ({len(waits)} calls)")


@pytest.mark.parametrize("framed", [False, True])
def test_the_size_limit(serve, framed):
    server = serve(max_message_size=100_000, framed=framed)
    with Peer(server.address, framed=framed) as peer:
        assert b"a" * 99_000 in peer.call(read_table("a" * 99_000))[2]
    with Peer(server.address, framed=framed) as peer, pytest.raises((EOFError, ConnectionError)):
        peer.call(read_table("a" * 200_000))
    with Peer(server.address, framed=framed) as peer:
        assert peer.call(GET_STATUS)[2] == ALIVE


def test_a_claimed_size_takes_no_memory(serve):
    """A list that claims as many elements as the limit allows, and never sends them."""
    server = serve()
    with Peer(server.address) as peer:
        peer.send(message("add_partitions", b"\x0f\0\1\x0c" + (90 << 20).to_bytes(4)))
        alive(server.address)
        assert sum(len(c.received) for c in server._connections) < 100


# ------------------------------------------------------------------------------------------------ end


READ_TABLES = message("get_all_tables", text_field(1, "db") + b"\0")


@pytest.mark.parametrize(("request_", "answer"), [(READ_TABLES, b"db"), (UNLOCK, b"\0")], ids=["thread", "lane"])
def test_draining_finishes_what_was_begun(serve, handlers, request_, answer):
    server = serve()
    assert server.ready
    with Peer(server.address) as busy, Peer(server.address) as idle:
        busy.send(request_)
        assert handlers.entered.acquire(timeout=60)
        with ThreadPoolExecutor(1) as pool:
            drained = pool.submit(server.drain, 60)
            assert idle.closed()
            assert not server.ready
            with pytest.raises(OSError):
                socket.create_connection(server.address, timeout=1)
            assert not drained.done()
            handlers.leave.set()
            assert answer in busy.answer()[2]
            assert busy.closed()
            assert drained.result() is True
    assert server.drain() is True


def test_draining_gives_up_after_its_time(serve, handlers):
    server = serve()
    with Peer(server.address) as busy:
        busy.send(message("get_all_tables", text_field(1, "db") + b"\0"))
        assert handlers.entered.acquire(timeout=60)
        assert server.drain(0.5) is False
        assert server.in_flight == 1  # and we are here


def test_a_request_that_has_arrived_before_draining_is_answered(serve):
    server = serve()
    with Peer(server.address) as peer:
        assert peer.call(GET_STATUS)[2] == ALIVE
        peer.send(read_table("orders"))
        assert server.drain(60) is True
        assert b"orders" in peer.answer()[2]


def test_a_port_in_use_is_said_so(serve):
    server = serve()
    with pytest.raises(OSError, match="in use"):
        serve(port=server.address[1])


class Parking:
    """check_lock is parked, and its batch goes on until it is told to end; unlock answers what is parked."""

    def __init__(self):
        self.parked, self.leave = [], Gate()

    @coalesced("check_lock")
    def check_lock(self, calls):
        for call in calls:
            call.park(lambda: None)
            self.parked.append(call)
        self.leave.wait()
        return [LATER for _ in calls]

    @coalesced("unlock")
    def unlock(self, calls):
        for call in self.parked:
            call.answer(ttypes.LockResponse(1, ttypes.LockState.ACQUIRED))
        return [None for _ in calls]


def test_a_parked_call_is_answered_once_also_while_its_batch_is_in_work():
    handlers, check = Parking(), UNLOCK.replace(b"\x06unlock", b"\x0acheck_lock")
    with serving(handlers) as server, Peer(server.address) as waiter, Peer(server.address) as another:
        waiter.send(check)
        until(lambda: handlers.parked)

        another.call(UNLOCK)

        waiter.answer()
        handlers.leave.set()
        another.send(check)
        until(lambda: len(handlers.parked) == 2)  # the batch before has ended
        assert waiter.call(message("getStatus", seqid=7))[1] == 7, "the next answer is that of the next call"
