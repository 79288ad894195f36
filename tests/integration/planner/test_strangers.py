"""The planner's port in the hands of strangers: who sends nothing, too slowly, too much, or from a page of the web."""

import json
import socket
import ssl
import threading
import time
from contextlib import ExitStack, closing
from datetime import timedelta

import pytest

from metastore.config import LimitSettings, PlannerSettings, TlsSettings
from metastore.planner import calls
from metastore.planner.call import Method
from metastore.planner.client_pool import Metastores
from metastore.planner.server import PlannerServer
from metastore.thrift_server.loop.address_limits import AddressLimits
from metastore.web import http_server
from tests.integration.planner.conftest import Caller
from tests.support.acid.creating import create_database, create_table
from tests.support.certificates import Authority
from tests.support.silent_files import ANSWERS, silent_files
from tests.support.thrift_server import until

SILENT = "hdfs://10.255.255.1:8020"
NOTHING = json.dumps({"db": "default", "table": "nothing"})


@pytest.fixture
def started(server):
    """Yield ``started(**)``, which starts a planner with these settings and returns its address."""
    with ExitStack() as running:
        def start(tls=TlsSettings(), limits=None, **settings):  # noqa: B008 - frozen
            planner = PlannerServer(Metastores(server.thrift_uri), PlannerSettings(**settings), tls, limits=limits)
            address = planner.start("127.0.0.1", 0)
            running.callback(planner.metastores.close)
            running.callback(planner.stop)
            return address

        yield start


@pytest.fixture
def caller():
    """``caller(address)``: a caller whose connection is closed in the end."""
    with ExitStack() as running:
        def connected(address, context=None):
            found = Caller(address, context)
            running.callback(found.connection.close)
            return found

        yield connected


PAGES = [
    ({"Content-Type": "text/plain"}, "must be application/json"),
    ({"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}, "must be application/json"),
    ({"Content-Type": ""}, "must be application/json"),
    ({"Content-Type": "application/json", "Origin": "https://evil.example"}, "from a page of the web"),
    ({"Content-Type": "application/json", "Origin": "null"}, "from a page of the web"),
    ({"Content-Type": "application/json", "Host": "evil.example:9085"}, "by the name evil.example"),
    ({"Content-Type": "application/json", "Host": "127.0.0.1.evil.example"}, "by the name 127.0.0.1.evil.example"),
]


@pytest.mark.parametrize(("headers", "said"), PAGES)
def test_a_page_in_a_browser_drops_no_table(client, planner, caller, headers, said):
    create_database(client)
    create_table(client, "t", {"id": "int"})
    page = caller(planner.address)
    status, answer = page.post("/v1/drop", json.dumps({"db": "d", "table": "t", "purge": True}), headers)
    assert client.get_all_tables("d") == ["t"]
    assert (status, answer["error"]) == (403 if "Content-Type" not in said and "json" in headers["Content-Type"] else 400, answer["error"])
    assert said in answer["message"]
    assert page("table", db="d", table="t")["kind"] == "full_acid", "the connection goes on"


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:9085", "planner", socket.gethostname(), "planner.example:9085"])
def test_names_that_no_foreign_page_can_have(started, caller, host):
    assert caller(started(uri="http://planner.example:9085")).post("/v1/table", NOTHING, {"Host": host})[0] == 200


def test_strangers_that_send_slowly_hold_no_threads_and_are_cut_off(planner, caller, monkeypatch):
    monkeypatch.setattr(http_server, "HEAD_S", 0.5)
    before = threading.active_count()
    with ExitStack() as open_ones:
        slow = [open_ones.enter_context(closing(socket.create_connection(planner.address))) for _ in range(100)]
        ended, began = set(), time.monotonic()
        while len(ended) < len(slow) and time.monotonic() - began < 30:
            for one in slow:
                try:
                    one.sendall(b"P" if time.monotonic() - began < 0.1 else b"x")
                except OSError:
                    ended.add(one)
            assert threading.active_count() - before < 20
            threading.Event().wait(0.1)
        assert len(ended) == 100
        assert caller(planner.address).post("/v1/table", NOTHING)[0] == 200


def test_a_body_that_does_not_come_is_not_waited_for(planner, monkeypatch):
    monkeypatch.setattr(http_server, "HEAD_S", 0.3)
    with closing(socket.create_connection(planner.address, timeout=30)) as half:
        half.sendall(b"POST /v1/table HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
        assert half.recv(1000) == b""


def test_silent_strangers_of_tls_leave_room_for_who_proves_to_be_somebody(started, caller, tmp_path):
    authority = Authority(tmp_path)
    tls = TlsSettings(use_ssl=True, keystore=(str(authority.server()),), truststore=(str(authority.path),),
                      client_certificates="required", handshake_timeout=timedelta(seconds=2))
    address = started(tls, connections=10)
    context = ssl.create_default_context(cafile=str(authority.path))
    context.load_cert_chain(str(authority.issue("bob")))
    with ExitStack() as open_ones:
        silent = [open_ones.enter_context(closing(socket.create_connection(address, timeout=30))) for _ in range(10)]
        assert caller(address, context).post("/v1/table", NOTHING)[0] == 200
        began = time.monotonic()
        for one in silent:
            assert one.recv(1) == b""
        assert time.monotonic() - began < 10


def test_calls_in_work_are_not_given_up_for_others(started, caller, monkeypatch):
    began, may_end = threading.Event(), threading.Event()
    monkeypatch.setitem(calls.CALLS, "table", Method(lambda _: began.set() or (may_end.wait(60) and {})))
    address = started(connections=1)
    first = caller(address)
    first.connection.request("POST", "/v1/table", "{}", {"Content-Type": "application/json"})
    began.wait(60)
    second = caller(address)
    with pytest.raises(OSError):
        second.post("/v1/table", "{}")
    may_end.set()
    assert first.connection.getresponse().read() == b"{}"
    third = caller(address)
    assert third.post("/v1/table", "{}") == (200, {})   # the first is between calls, and gives way


def test_an_address_has_as_many_connections_and_calls_as_at_the_metastore(started, caller):
    address = started(limits=AddressLimits(LimitSettings(connections=2, requests=3, exempt=())))
    one, two, three = (caller(address) for _ in range(3))
    assert one.post("/v1/table", NOTHING)[0] == two.post("/v1/table", NOTHING)[0] == 200
    with pytest.raises(OSError):
        three.post("/v1/table", NOTHING)
    refused = [one.post("/v1/table", NOTHING) for _ in range(5)][-1]
    assert (refused[0], refused[1]["error"]) == (503, "LimitReachedError")
    assert "127.0.0.1 makes more than 3 calls a second" in refused[1]["message"]


class TestFiles:
    @pytest.fixture
    def server_settings(self, tmp_path):
        (tmp_path / "readable").mkdir()
        return {"metastore.warehouse.roots": f"{(tmp_path / 'warehouse').as_uri()},{SILENT}/w,hdfs://{ANSWERS}/w",
                "metastore.warehouse.readable": (tmp_path / "readable").as_uri()}

    @pytest.fixture(autouse=True)
    def database_d(self, client):
        create_database(client)

    def test_nothing_is_looked_at_beyond_the_roots_and_what_may_be_read(self, client, call, tmp_path):
        (tmp_path / "outside" / "secret").mkdir(parents=True)
        create_table(client, "t", {"id": "int"}, keys={"p": "int"}, location=(tmp_path / "outside").as_uri())
        create_table(client, "r", {"id": "int"}, location=(tmp_path / "readable").as_uri())
        (tmp_path / "warehouse" / "link").symlink_to(tmp_path / "outside")
        create_table(client, "s", {"id": "int"}, keys={"p": "int"}, location=(tmp_path / "warehouse" / "link").as_uri())

        for table in ("t", "s"):
            status, error, message = call.refused("procedure", procedure="repair", arguments={"table": f"d.{table}", "dry_run": True})
            assert (status, error) == (403, "AccessDeniedError")
            assert "metastore.warehouse.readable" in message
            assert "secret" not in message
        assert call.planned("d.r")["events"] == []

    def test_plans_that_hang_hold_nobody_up_when_their_callers_leave(self, client, planner, caller):
        with silent_files() as silent:
            silent.answer()
            for name, host in (("hung", SILENT), ("t", f"hdfs://{ANSWERS}")):
                create_table(client, name, {"id": "int"}, location=f"{host}/w/{name}")
            silent.answering.clear()
            other = caller(planner.address)
            txn = other.begin("READ_ONLY")
            seen = other("snapshot", txn=txn, tables=["d.hung", "d.t"])

            def asked(table):
                return json.dumps({"table": f"d.{table}", "txns": seen["txns"], "write_ids": seen["write_ids"][f"d.{table}"]})

            hung = [caller(planner.address) for _ in range(24)]
            for one in hung:
                one.connection.request("POST", "/v1/plan", asked("hung"), {"Content-Type": "application/json"})
            silent.asked.acquire(timeout=60)
            other.connection.sock.settimeout(20)
            assert other.post("/v1/plan", asked("t"))[0] == 200, "while they wait"
            for one in hung:
                one.connection.close()
            until(lambda: planner.in_work == 0)
            assert other.post("/v1/plan", asked("t"))[0] == 200
