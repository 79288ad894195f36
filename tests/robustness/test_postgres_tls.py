"""A PostgreSQL with TLS of its own (the embedded one has none): Debian's, where it is installed."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from metastore.app import App
from metastore.client import MetastoreClient, TxnManager
from metastore.config import build
from metastore.config.settings import SettingsSource
from metastore.db import migrate
from metastore.errors import UnavailableError
from tests.support.certificates import Authority
from tests.support.postgres import FAST
from tests.support.thrift_server import until

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=None)
HBA = """local all all trust
hostssl all metastore 127.0.0.1/32 scram-sha-256 clientcert=verify-full
hostnossl all all 0.0.0.0/0 reject
"""
pytestmark = [pytest.mark.robustness, pytest.mark.skipif(PROGRAMS is None, reason="no PostgreSQL of Debian is installed")]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def port(authority):
    """Where it listens; who comes must show a certificate with its user's name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with owned_directory() as (directory, user):
        data, key = directory / "data", directory / "server.pem"
        shutil.copy(authority.server(), key)
        shutil.copy(authority.path, directory / "ca.pem")
        key.chmod(0o600)
        if user:
            for path in (key, directory / "ca.pem"):
                shutil.chown(path, user)
        (directory / "password").write_text("secret")
        subprocess.run([PROGRAMS / "initdb", "-D", data, "-U", "metastore", "-E", "UTF8", "--locale=C", "--pwfile",
                        directory / "password", "--no-sync"], check=True, capture_output=True, user=user, cwd="/")
        (data / "pg_hba.conf").write_text(HBA)
        settings = {**FAST, "ssl": "on", "ssl_cert_file": key, "ssl_key_file": key, "ssl_ca_file": directory / "ca.pem",
                    "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": directory}
        with (directory / "log").open("wb") as output:
            running = subprocess.Popen([PROGRAMS / "postgres", "-D", data, *(
                part for name, value in settings.items() for part in ("-c", f"{name}={value}"))],
                stdout=output, stderr=output, user=user, cwd="/")
        try:
            until(lambda: running.poll() is not None or "ready" in (data / "postmaster.pid").read_text()
                  if (data / "postmaster.pid").exists() else running.poll() is not None)
            assert running.poll() is None, (directory / "log").read_text()
            yield port
        finally:
            running.terminate()
            running.wait(30)


@contextmanager
def owned_directory():
    """Yield a directory and the user who owns it: PostgreSQL does not run as root."""
    directory = Path(tempfile.mkdtemp(prefix="metastore-tls-"))
    user = "postgres" if os.getuid() == 0 else None
    if user:
        shutil.chown(directory, user)
    try:
        yield directory, user
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def url(port, authority):
    mine = authority.issue("metastore")
    mine.chmod(0o600)
    return (f"postgresql://metastore:secret@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={authority.path}"
            f"&sslcert={mine}&sslkey={mine}")


def test_a_server_whose_every_session_is_encrypted(url, tmp_path):
    app = App(build([SettingsSource("test", {
        "metastore.database.url": url, "hive.metastore.port": "0", "metastore.http.port": "0",
        "hive.metastore.warehouse.dir": tmp_path.as_uri()})]))
    app.start()
    try:
        with MetastoreClient(app.thrift_uri, user="ann") as client:
            txn = TxnManager(client, host="h1").open()
            assert client.get_open_txns().open_txns == [txn.id]
        sessions = app.database.once("SELECT ssl, version, client_dn FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                                     "WHERE application_name LIKE 'metastore%%'")
        assert len(sessions) >= 3
        assert set(sessions) == {(True, "TLSv1.3", "/CN=metastore")}
    finally:
        app.stop()


def test_who_is_not_believed(url, port, authority, tmp_path):
    other = Authority(tmp_path, "Other CA")
    with pytest.raises(UnavailableError, match="certificate verify failed.*sslrootcert"):
        migrate.versions(url.replace(str(authority.path), str(other.path)))
    with pytest.raises(UnavailableError, match="does not match host name"):
        migrate.versions(f"{url.replace('@localhost', '@elsewhere')}&hostaddr=127.0.0.1")
    with pytest.raises(UnavailableError, match="requires a valid client certificate"):
        migrate.versions(url.split("&sslcert")[0])
    with pytest.raises(UnavailableError, match="rejects connection.*no encryption"):
        migrate.versions(f"postgresql://metastore:secret@127.0.0.1:{port}/postgres?sslmode=disable")
