"""``metastore health``: what a probe gets to know from the ready file, also where the HTTP port speaks TLS."""

import json
import socket
from dataclasses import replace

import pytest

from metastore.cli.main import main
from metastore.config import build
from metastore.config.settings import SettingsSource
from metastore.telemetry.metrics import Metrics
from metastore.tls.contexts import RenewedContext
from metastore.web.health import Health, HealthPart
from metastore.web.server import WebServer
from tests.support.certificates import Authority
from tests.support.dockerfiles import instructions


@pytest.fixture
def parts():
    parts = Health("database", "loops")
    parts.report("loops", HealthPart(ready=True))
    return parts


@pytest.fixture(params=["clear", "TLS"])
def ready_file(request, parts, tmp_path):
    """Of a process whose HTTP port answers; its certificate names no address, and nobody trusts who signed it."""
    tls = None
    if request.param == "TLS":
        settings = build([SettingsSource("test", {"hive.metastore.use.SSL": "true", "metastore.ssl.client.certificates": "required",
                                          "hive.metastore.keystore.path": str(Authority(tmp_path).issue("metastore-1"))})]).tls
        tls = RenewedContext(replace(settings, client_certificates="none"))
    web = WebServer("127.0.0.1", 0, parts, Metrics("1"), "1", tls)
    host, port = web.start()
    path = tmp_path / "ready.json"
    path.write_text(json.dumps({"http": f"{'https' if tls else 'http'}://{host}:{port}"}))
    yield path
    web.stop()


def said(capsys, *arguments):
    """(exit code, what was said)."""
    try:
        main(["health", *map(str, arguments)])
    except SystemExit as leaving:
        return leaving.code, capsys.readouterr().err
    return 0, capsys.readouterr().err


def test_ready_when_every_part_is(capsys, monkeypatch, ready_file, parts):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # of which a probe of one's own machine takes no notice
    assert said(capsys, "--ready-file", ready_file, "--alive") == (0, "")
    parts.report("database", HealthPart(ready=False, reason="does not answer"))
    code, text = said(capsys, "--ready-file", ready_file)
    assert (code, "is not ready: database: does not answer." in text) == (1, True)
    parts.report("database", HealthPart(ready=True))
    assert said(capsys, "--ready-file", ready_file) == (0, "")
    parts.stopping = True
    code, text = said(capsys, "--ready-file", ready_file)
    assert (code, "it is stopping" in text) == (1, True)
    assert said(capsys, "--ready-file", ready_file, "--alive") == (0, "")


def test_the_image_says_where_the_file_is(capsys, monkeypatch, ready_file, parts):
    parts.report("database", HealthPart(ready=True))
    monkeypatch.setenv("METASTORE_READY_FILE", str(ready_file))
    assert said(capsys) == (0, "")
    for image in ("server", "worker"):
        said_there = dict(instructions(image))
        assert "METASTORE_READY_FILE=/tmp/metastore-ready.json" in said_there["ENV"].split()
        program, *arguments = json.loads(said_there["HEALTHCHECK"].partition("CMD ")[2])
        assert program == "metastore"
        main(arguments)


def test_nobody_there(capsys, tmp_path):
    absent = tmp_path / "ready.json"
    assert said(capsys, "--ready-file", absent) == (
        3, f"metastore: There is no {absent}: the process is not up yet, or has ended.\n")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        absent.write_text(json.dumps({"http": f"http://127.0.0.1:{bound.getsockname()[1]}"}))
        code, text = said(capsys, "--ready-file", absent)
    assert (code, "does not answer" in text) == (3, True)


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_what_is_no_ready_file(capsys, tmp_path, text):
    path = tmp_path / "ready.json"
    path.write_text(text)
    code, told = said(capsys, "--ready-file", path)
    assert (code, "is no ready file" in told) == (2, True)


def test_no_file_named(capsys, monkeypatch):
    monkeypatch.delenv("METASTORE_READY_FILE", raising=False)
    assert said(capsys)[0] == 2
