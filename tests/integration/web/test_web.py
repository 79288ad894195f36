"""The HTTP port answers while everything else starts, fails or stops."""

import json
import socket
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, closing, suppress

import pytest
from prometheus_client.parser import text_string_to_metric_families

from metastore.config import TlsSettings
from metastore.telemetry.metrics import Metrics
from metastore.web import http_server
from metastore.web.health import Health, HealthPart
from metastore.web.server import WebServer
from tests.support.probing import readyz
from tests.support.thrift_server import until


@pytest.fixture
def health(monkeypatch):
    monkeypatch.setattr("metastore.web.health._PATIENCE_S", 60)  # for a probe
    return Health("database", "loops")


@pytest.fixture
def web(health):
    server = WebServer("127.0.0.1", 0, health, Metrics("1"), "1", hosts=TlsSettings().http_hosts)
    host, port = server.start()
    yield f"http://{host}:{port}"
    server.stop()


def get(url, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_ready_only_when_every_part_is(web, health):
    status, body = get(f"{web}/readyz")
    assert status == 503
    assert json.loads(body)["parts"]["database"] == {"ready": False, "reason": "not started yet"}

    health.report("loops", HealthPart(ready=True))
    health.probe("database", lambda: HealthPart(ready=False, reason="does not answer"))
    status, body = get(f"{web}/readyz")
    assert status == 503
    assert json.loads(body) == {"ready": False, "stopping": False, "parts": {
        "database": {"ready": False, "reason": "does not answer"}, "loops": {"ready": True}}}

    health.probe("database", lambda: HealthPart(ready=True))
    assert get(f"{web}/readyz")[0] == 200

    health.stopping = True
    assert get(f"{web}/readyz")[0] == 503
    assert get(f"{web}/livez")[0] == 200


def test_a_probe_is_not_asked_for_every_reader(health, monkeypatch):
    monkeypatch.setattr("metastore.web.health._PROBE_LASTS_S", 60)
    asked = []
    health.probe("database", lambda: asked.append(1) or HealthPart(ready=True))
    for _ in range(10):
        health.parts()
    assert len(asked) == 1


def test_a_probe_that_does_not_come_back_holds_up_nobody(web, health, monkeypatch):
    """As when PostgreSQL's host vanishes: the answer is quick, and it is no."""
    monkeypatch.setattr("metastore.web.health._PATIENCE_S", 0.01)
    monkeypatch.setattr("metastore.web.health._SILENCE_S", 0.02)
    asked, back = [], threading.Event()
    health.report("loops", HealthPart(ready=True))
    health.probe("database", lambda: asked.append(1) or (back.wait(60) and HealthPart(ready=True)))
    try:
        until(lambda: "has not answered for" in get(f"{web}/readyz")[1].decode())
        assert get(f"{web}/readyz")[0] == 503
        assert asked == [1]
    finally:
        back.set()
    until(lambda: get(f"{web}/readyz")[0] == 200)


def test_a_probe_with_a_bug_is_a_reason(health):
    health.probe("database", lambda: {}["nothing"])
    assert health.parts()["database"] == HealthPart(ready=False, reason="'nothing'")


def test_paths(web):
    assert get(web)[0] == 200
    assert get(f"{web}/nothing")[0] == 404
    assert get(f"{web}/livez", "HEAD") == (200, b"")
    assert get(f"{web}/livez?verbose")[0] == 200
    assert get(f"{web}/livez", "POST")[0] == 405


def test_garbage_hurts_nobody_else(web):
    host, port = web.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as rude:
        rude.sendall(b"\x80\x01\x00\x01\xff\xff\xff\xff\r\n\r\n")
        assert get(f"{web}/livez")[0] == 200


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example:9084"}], ids=str)
def test_a_page_in_a_browser_reads_nothing(web, headers):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{web}/metrics", headers=headers), timeout=60)
    assert refused.value.code == 403
    refused.value.close()


@pytest.mark.parametrize("host", ["localhost", "metastore-0", "m.default.svc.cluster.local:9084", "10.0.0.7:9084"])
def test_probes_call_by_addresses_and_by_names_in_a_cluster(web, host):
    with urllib.request.urlopen(urllib.request.Request(f"{web}/livez", headers={"Host": host}), timeout=60) as answer:
        assert answer.status == 200


def test_strangers_hold_no_threads_and_give_way_to_probes(web, monkeypatch):
    monkeypatch.setattr(http_server, "HEAD_S", 1)
    host, port = web.removeprefix("http://").split(":")
    before = threading.active_count()
    with ExitStack() as open_ones:
        slow = [open_ones.enter_context(closing(socket.create_connection((host, int(port)), timeout=30))) for _ in range(100)]
        for one in slow:
            with suppress(OSError):
                one.sendall(b"G")
        assert get(f"{web}/livez")[0] == 200
        assert threading.active_count() - before <= 8
        for one in slow:
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""


def test_metrics_of_a_server_that_served(server, client):
    client.get_all_databases()

    _, body = get(f"{server.http_uri}/metrics")
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    calls = {sample.labels["method"]: sample.value for sample in families["metastore_calls"].samples if sample.name.endswith("_total")}
    assert calls["get_all_databases"] == 1
    assert all(name.startswith(("metastore_", "process_", "python_")) for name in families)


def test_a_whole_server_is_ready(server):
    told = until(lambda: (told := readyz(server.http_uri))["ready"] and told)
    assert set(told["parts"]) == {"database", "schema", "thrift", "loops"}
