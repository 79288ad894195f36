"""Limits for each client address: what counts, who is told what, and that others are not held up."""

from types import SimpleNamespace

import pytest
import structlog
from prometheus_client import CollectorRegistry, generate_latest
from thrift.Thrift import TMessageType

from metastore.config import LimitSettings, UpstreamSettings, build
from metastore.config.settings import SettingsSource
from metastore.errors import InvalidInputError, LimitReachedError, UnavailableError
from metastore.telemetry.calls import CallStats
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.address_quotas import limited, txns_and_locks
from metastore.thrift_server.dispatch.call import Call, coalesced
from metastore.thrift_server.dispatch.registry import Handler
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.loop.address_limits import LAST_REFUSED, AddressLimits
from tests.support.thrift_server import Peer, message, serving, text_field, until
from tests.unit.thrift_server.test_server import ALIVE, GET_STATUS, Stats

HERE, THERE = "127.0.0.1", "127.0.0.2"


def limits(exempt="", **settings):
    """Limits that also hold for loopback."""
    networks = build([SettingsSource("test", {"metastore.limit.exempt": exempt})]).limits.exempt
    return AddressLimits(LimitSettings(exempt=networks, **settings))


# ------------------------------------------------------------------------------------------------ addresses

@pytest.mark.parametrize(("host", "address"), [
    ("10.0.0.7", "10.0.0.7"),
    ("::ffff:10.0.0.7", "10.0.0.7"),
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
    ("fe80::1%eth0", "fe80::/64"),
    ("", None),
    ("/run/socket", None),
    ("10.1.2.3", None),
    ("::ffff:10.1.2.3", None),
    ("fd00::1", None),
])
def test_whom_a_limit_is_for(host, address):
    found = limits("10.1.0.0/16, fd00::/8", connections=1).usage(host, 0.0)
    assert (found and found.address) == address


def test_this_machine_is_exempt_and_nobody_is_counted_where_nothing_is_limited():
    assert AddressLimits(LimitSettings(connections=1)).usage("127.0.0.1", 0.0) is None
    assert AddressLimits(LimitSettings(connections=1)).usage("::1", 0.0) is None
    assert AddressLimits(LimitSettings(exempt=())).usage("10.0.0.7", 0.0) is None


def test_a_network_that_is_none_stops_the_start():
    with pytest.raises(InvalidInputError, match="metastore.limit.exempt.*addresses or networks"):
        limits("10.0.0.7/8")


# ------------------------------------------------------------------------------------------------ calls a second

def test_calls_a_second():
    """A second's worth at once, then as they come in; those that end something may run that far ahead."""
    some = limits(requests=10)
    usage = some.usage("10.0.0.7", 100.0)

    def made(method, now, tries=50):
        return sum(some.refusal(usage, method, now) is None for _ in range(tries))

    assert made("get_table", 100.0) == 10
    assert made("get_table", 100.25) == 2
    assert made("commit_txn", 100.25) == 10
    assert made("get_table", 101.0) == 0
    assert made("get_table", 200.0) == 10
    assert some.reached["requests"] == 40 + 48 + 40 + 50 + 40
    refusal = some.refusal(usage, "get_table", 200.0)
    assert str(refusal) == ("get_table is refused: 10.0.0.7 makes more than 10 calls a second "
                            "(metastore.limit.requests.per.second). Make them more slowly.")
    assert "get_table" not in LAST_REFUSED


def test_without_a_limit_on_calls_none_is_refused():
    some = limits(connections=1)
    assert all(some.refusal(some.usage("10.0.0.7", 0.0), "get_table", 0.0) is None for _ in range(1000))


def test_the_log_tells_of_a_limit_once_in_a_while():
    some = limits(requests=1)
    usage = some.usage("10.0.0.7", 0.0)
    with structlog.testing.capture_logs() as logs:
        for now in (0.0, 0.1, 0.2, 5.0, 5.1, 10.2, 10.3):
            for _ in range(3):
                some.refusal(usage, "get_table", now)
    assert [(line["event"], line["address"], line["limit"], line["most"]) for line in logs] == [
        ("limit_reached", "10.0.0.7", "requests", 1)] * 2


def test_addresses_are_forgotten_when_nothing_of_them_is_left():
    some = AddressLimits(LimitSettings(connections=1, exempt=()), forget_after=build([]).txns.timeout)
    some.arrived("10.0.0.1", 0.0)
    some.left(some.arrived("10.0.0.2", 0.0), 1.0)
    some.left(owner := some.arrived("10.0.0.3", 0.0), 1.0)
    owner.held["locks"].add({1: 1})
    for now, known in ((2.0, "123"), (4.0, "13"), (300.0, "13"), (302.0, "1")):
        some.sweep(now)
        assert [usage[-1] for usage in some._usages] == list(known)


# ------------------------------------------------------------------------------------------------ over the wire

class Handlers:
    """Answers, or does not."""

    def get_all_databases(self, call):
        return ["x" * 1000] * 8000

    @coalesced("lock")
    def lock(self, calls):
        return [ttypes.LockResponse(1, ttypes.LockState.ACQUIRED)] * len(calls)


def test_connections_of_one_address():
    with serving(Fb303Handlers(Stats(), 1), limits=limits(connections=2)) as server, \
            Peer(server.address) as one, Peer(server.address) as two:
        assert one.call(GET_STATUS)[2] == two.call(GET_STATUS)[2] == ALIVE
        with structlog.testing.capture_logs() as logs, Peer(server.address) as three:
            assert three.closed()
        assert [(line["event"], line["limit"]) for line in logs] == [("limit_reached", "connections")]
        with Peer(server.address, source=THERE) as other:
            assert other.call(GET_STATUS)[2] == ALIVE
        two.sock.close()
        until(lambda: server.connections == 1)
        with Peer(server.address) as again:
            assert again.call(GET_STATUS)[2] == ALIVE
        assert server.limits_reached["connections"] == 1


def test_connections_of_an_exempt_address():
    with serving(Fb303Handlers(Stats(), 1), limits=limits("127.0.0.1", connections=1)) as server, \
            Peer(server.address) as one, Peer(server.address) as two:
        assert one.call(GET_STATUS)[2] == two.call(GET_STATUS)[2] == ALIVE


class NoTimePasses(AddressLimits):
    """Between calls."""

    def refusal(self, usage, method, now):
        del now
        return super().refusal(usage, method, usage.spared_at)


def test_a_call_too_many_gets_the_declared_exception_and_the_connection_stays():
    """``get_all_databases`` declares MetaException, ``getStatus`` nothing."""
    some = NoTimePasses(LimitSettings(requests=3, exempt=()))
    with serving(Handlers(), Fb303Handlers(Stats(), 1), limits=some) as server, Peer(server.address) as peer:
        for _ in range(3):
            assert peer.call(GET_STATUS)[2] == ALIVE
        with structlog.testing.capture_logs() as logs:
            kind, _, body = peer.call(message("get_all_databases"))
            assert kind == TMessageType.REPLY
            assert b"get_all_databases is refused: 127.0.0.1 makes more than 3 calls a second" in body
            kind, _, error = peer.call(GET_STATUS)
            assert kind == TMessageType.EXCEPTION
            assert "getStatus is refused" in error.message
            assert peer.call(message("unknown"))[2].message == "Invalid method name: 'unknown'"
        assert [line["event"] for line in logs] == ["limit_reached", "call_refused"]  # the second: of the unknown method
        with Peer(server.address, source=THERE) as other:
            assert other.call(GET_STATUS)[2] == ALIVE


def test_a_call_too_many_is_not_forwarded():
    with serving(Handlers()) as behind:
        upstream = UpstreamSettings(uris=("thrift://{}:{}".format(*behind.address),))
        some = NoTimePasses(LimitSettings(requests=1, exempt=()))
        with serving(Fb303Handlers(Stats(), 1), upstream=upstream, limits=some) as server, Peer(server.address) as peer:
            assert peer.call(message("get_all_tables", text_field(1, "db") + b"\0"))[2].message == (
                "Invalid method name: 'get_all_tables'")
            kind, _, body = peer.call(message("get_all_tables", text_field(1, "db") + b"\0"))
            assert kind == TMessageType.REPLY
            assert b"get_all_tables is refused: 127.0.0.1 makes more than 1 calls a second" in body


def test_bytes_of_one_address():
    """Half requests: of the address that holds too much those go that have not moved for longest."""
    with serving(Handlers(), Fb303Handlers(Stats(), 1), limits=limits(buffered=300_000)) as server:
        half = message("get_databases", text_field(1, "x" * 200_000))[:-50_000]
        with Peer(server.address, source=THERE) as other, Peer(server.address) as one:
            other.send(half)
            one.send(half)
            until(lambda: sum(c.held for c in server._connections) == 2 * len(half))
            [mine] = [c for c in server._connections if c.host == HERE]
            mine.moved -= 5
            with Peer(server.address) as two:
                two.send(half)
                assert one.closed()
                until(lambda: server.limits_reached["buffered"] == 1)
                assert {c.host for c in server._connections} == {HERE, THERE}


def test_the_metric():
    stats = CallStats()
    registry = CollectorRegistry()
    registry.register(stats)
    with serving(Fb303Handlers(stats, 1), limits=limits(connections=1)) as server, Peer(server.address) as peer:
        peer.call(GET_STATUS)
        stats.server = server
        with Peer(server.address) as other:
            assert other.closed()
        assert b'metastore_limit_reached_total{limit="connections"} 1.0' in generate_latest(registry)


# ------------------------------------------------------------------------------------------------ transactions and locks

class Store:
    """What PostgreSQL knows; ids count up."""

    def __init__(self):
        self.there, self.looks, self.last = {}, 0, 0

    def present(self, ids):
        self.looks += 1
        return {one: self.there[one] for one in ids if one in self.there}

    def open_txns(self, calls):
        answers = []
        for call in calls:
            if call.args[0].user == "nobody":
                answers.append(UnavailableError("no"))
                continue
            ids = range(self.last + 1, self.last + 1 + call.args[0].num_txns)
            self.last += len(ids)
            self.there |= dict.fromkeys(ids, 1)
            answers.append(ttypes.OpenTxnsResponse(list(ids)))
        return answers

    def lock(self, calls):
        answers = []
        for call in calls:
            self.last += 1
            self.there[self.last] = len(call.args[0].component)
            answers.append(ttypes.LockResponse(self.last, ttypes.LockState.ACQUIRED))
        return answers


class Asking:
    """Calls of clients at addresses, in batches."""

    def __init__(self, method, monkeypatch, **settings):
        self.limits, self.store, self.method, self.now = limits(**settings), Store(), method, 1000.0
        monkeypatch.setattr("metastore.thrift_server.dispatch.address_quotas.monotonic", lambda: self.now)
        share = txns_and_locks(self.limits.settings, 1000, self.store.present, self.store.present)[method]
        self.handler = limited(Handler(getattr(self.store, method), method), share, self.limits)

    def ask(self, *requests):
        """Run ``requests``, pairs of (address, request), as one batch; return their ids, or the texts of refusals."""
        calls = [Call(self.method, (request,), SimpleNamespace(usage=host and self.limits.usage(host, self.now)))
                 for host, request in requests]
        return [str(one) if isinstance(one, Exception) else getattr(one, "txn_ids", None) or one.lockid
                for one in self.handler.run(calls)]


def opening(number, user="ann"):
    return ttypes.OpenTxnRequest(number, user, "h1")


def test_open_transactions_of_an_address(monkeypatch):
    asking = Asking("open_txns", monkeypatch, open_txns=5)
    first, refused, *others = asking.ask(
        ("10.0.0.1", opening(3)), ("10.0.0.1", opening(3)), ("10.0.0.2", opening(5)), (None, opening(9)),
        ("10.0.0.1", opening(2)))
    assert first == [1, 2, 3]
    assert refused == (
        "open_txns is refused: 10.0.0.1 has 3 open transactions by way of this server, asks for 3 more, and may have 5 "
        "(metastore.limit.open.txns). End some of them, or wait until they expire.")
    assert others == [[4, 5, 6, 7, 8], [*range(9, 18)], [18, 19]]
    assert asking.limits.reached["open_txns"] == 1


def test_what_is_over_no_longer_counts_whoever_ended_it(monkeypatch):
    asking = Asking("open_txns", monkeypatch, open_txns=2)
    assert asking.ask(("10.0.0.1", opening(2))) == [[1, 2]]
    assert asking.store.looks == 0
    del asking.store.there[1]
    assert asking.ask(("10.0.0.1", opening(1))) == [[3]]
    assert "is refused" in asking.ask(("10.0.0.1", opening(1)))[0]
    looks = asking.store.looks
    del asking.store.there[2]
    asking.now += 0.5
    assert "is refused" in asking.ask(("10.0.0.1", opening(1)))[0]
    assert asking.store.looks == looks  # who has enough is not looked at with every call
    asking.now += 0.6
    assert asking.ask(("10.0.0.1", opening(1))) == [[4]]


def test_what_was_not_opened_does_not_count(monkeypatch):
    asking = Asking("open_txns", monkeypatch, open_txns=1)
    assert asking.ask(("10.0.0.1", opening(1, "nobody"))) == ["no"]
    assert asking.ask(("10.0.0.1", opening(1))) == [[1]]
    assert "asks for 1000 more, and may have 1" in asking.ask(("10.0.0.1", opening(10**9)))[0]


def test_locks_of_an_address_count_by_component(monkeypatch):
    asking = Asking("lock", monkeypatch, locks=3)
    request = ttypes.LockRequest([ttypes.LockComponent(1, 1, "db"), ttypes.LockComponent(1, 1, "db2")], None, "ann", "h1")
    assert asking.ask(("10.0.0.1", request)) == [1]
    assert "has 2 locks by way of this server, asks for 2 more" in asking.ask(("10.0.0.1", request))[0]
    del asking.store.there[1]
    asking.now += 2
    assert asking.ask(("10.0.0.1", request)) == [2]


def test_a_lock_that_is_to_be_withdrawn_is_never_refused(monkeypatch):
    asking = Asking("lock", monkeypatch, locks=1)
    request = ttypes.LockRequest([ttypes.LockComponent(1, 1, "db")], None, "ann", "h1")
    usage = asking.limits.usage("10.0.0.1", 0.0)
    usage.held["locks"].add({7: 1})
    asking.store.there[7] = 1
    lost = Call("lock", (request,), SimpleNamespace(usage=usage))
    lost.lost = True
    assert not isinstance(asking.handler.run([lost])[0], LimitReachedError)
    assert usage.held["locks"].counts == {7: 1}


def test_without_a_limit_handlers_are_as_they_were():
    handler = Handler(print, "open_txns")
    for share in txns_and_locks(LimitSettings(), 1000, list, dict).values():
        assert limited(handler, share, AddressLimits(LimitSettings())) is handler
