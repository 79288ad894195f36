"""TLS with clients that we did not write, on a whole server: Hive's own client 2.3.10, curl's peer, the CLI."""

import json
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from metastore.app import App
from metastore.client import MetastoreClient
from metastore.config import build
from metastore.config.settings import SettingsSource
from metastore.errors import InvalidInputError
from metastore.tls.contexts import ClientSide
from tests.support.certificates import Authority
from tests.support.planner_caller.caller import RefusedError, is_there, java_caller
from tests.support.probing import readyz
from tests.support.thrift_server import until


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def app(postgres, authority, tmp_path_factory):
    """With a planner beside it, as ``metastore serve`` has."""
    tls = {"hive.metastore.use.SSL": "true", "hive.metastore.keystore.path": str(authority.server()),
           "hive.metastore.truststore.path": str(authority.path), "metastore.ssl.client.certificates": "wanted"}
    with postgres.cloned() as url:
        app = App(build([SettingsSource("test", {
            "metastore.database.url": url, "hive.metastore.port": "0", "metastore.http.port": "0",
            "hive.metastore.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri(), **tls})]),
            loops=False, planner=[part for pair in tls.items() for part in ("--set", "=".join(pair))])
        app.start()
        yield app
        app.stop()


@pytest.mark.spark
def test_hives_own_client_and_the_planner_that_it_finds(app, authority, tmp_path):
    """The trust store is that of Hive's client in Spark; the certificate is our own addition."""
    if not is_there():
        pytest.skip("there is no Java compiler")
    trust = tmp_path / "trust.p12"
    trust.write_bytes(pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(authority.certificate, b"ca")], BestAvailableEncryption(b"changeit")))
    settings = {"hive.metastore.uris": app.thrift_uri, "hive.metastore.use.SSL": "true", "hive.metastore.truststore.path": str(trust),
                "hive.metastore.truststore.password": "changeit", "hive.metastore.connect.retries": "1"}
    who = {"kind": "DEFAULT", "user": "ann", "host": "h1", "agent": "spark"}
    with java_caller(tmp_path / "noise.txt") as call:
        call("begin", settings, **who)
        call("begin", {**settings, "metastore.client.keystore.path": str(authority.issue("bob"))}, **who)
        with pytest.raises(RefusedError, match="did not say where its planner is: .*truststore.path"):
            call("begin", {key: value for key, value in settings.items() if "truststore" not in key}, **who)

    tls = ClientSide(truststore=(str(authority.path),))
    with MetastoreClient(app.thrift_uri, tls=tls) as client:
        assert sorted(one.user for one in client.get_open_txns_info().open_txns) == ["ann", "bob"]


def test_the_command_line(app, authority):
    def show(**environment):
        return subprocess.run([sys.executable, "-m", "metastore", "show", "locks", "-o", "json", "--uri", app.thrift_uri],
                              check=False, capture_output=True, text=True, timeout=120,
                              env={"PATH": "/usr/bin", "PYTHONPATH": str(Path(__file__).parents[3]), **environment})

    done = show(METASTORE_USE_SSL="true", METASTORE_TRUSTSTORE_PATH=str(authority.path))
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    done = show(METASTORE_USE_SSL="true")
    assert done.returncode == 3
    assert "TLS failed: " in done.stderr
    assert show().returncode == 3


def test_the_http_port(app, authority):
    context = ssl.create_default_context(cafile=str(authority.path))
    assert app.http_uri.startswith("https://")
    until(lambda: readyz(app.http_uri, context=context)["ready"])


@pytest.mark.parametrize(("settings", "said"), [
    ({"hive.metastore.thrift.bind.host": "0.0.0.0"}, "nothing is encrypted"),
    ({"hive.metastore.thrift.bind.host": "::"}, "nothing is encrypted"),
    ({"hive.metastore.thrift.bind.host": "10.0.0.1", "hive.metastore.use.SSL": "true"}, "clients need not prove who they are"),
])
def test_the_network_is_not_listened_to_by_accident(settings, said, tmp_path):
    done = subprocess.run([sys.executable, "-m", "metastore", "serve", "--data-dir", str(tmp_path),
                           *(part for pair in settings.items() for part in ("--set", "=".join(pair)))],
                          check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("key", "value", "remedy"), [
    ("metastore.dbaccess.ssl.use.SSL", "true", "sslmode=verify-full"),
    ("metastore.server.thrift.transport.mode", "http", "binary"),
])
def test_a_protection_that_is_not_there_is_refused(key, value, remedy):
    for foreign in (False, True):
        with pytest.raises(InvalidInputError, match=f"{key}.*cannot be honoured.*{remedy}"):
            build([SettingsSource("hive-site.xml", {key: value}, foreign)])
    build([SettingsSource("hive-site.xml", {"hive.metastore.sasl.enabled": "false", "metastore.authentication": "NONE"}, foreign=True)])
