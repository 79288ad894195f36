"""The way to PostgreSQL through TLS, `sslmode=verify-full`: server, migrations, command line; and who is not believed."""

import json
import re
import subprocess
import sys

import pytest
from sqlalchemy import make_url

from metastore.app import App
from metastore.client import MetastoreClient, TxnManager
from metastore.config import build
from metastore.config.settings import SettingsSource
from metastore.db import migrate
from metastore.db.engine import Database
from metastore.db.leader import Leadership
from metastore.errors import UnavailableError
from tests.support.certificates import Authority
from tests.support.tls_front import TlsFront


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def front(postgres, authority):
    with TlsFront(make_url(postgres.postgres.tcp_url).port, authority.server()) as front:
        yield front


@pytest.fixture
def secured(postgres, front, authority):
    """Yield a function that returns the URL of an empty database by way of the front."""
    with postgres.empty() as url:
        def through(mode="verify-full", host="localhost", trusted=authority.path, front=front):
            return make_url(postgres.postgres.tcp_url).set(
                database=make_url(url).database, host=host, port=front.port,
                query={"sslmode": mode, "sslrootcert": str(trusted)}).render_as_string(hide_password=False)
        yield through


def test_a_server_and_its_migrations(secured, front, tmp_path):
    url, before = secured(), front.served
    app = App(build([SettingsSource("test", {
        "metastore.database.url": url, "hive.metastore.port": "0", "metastore.http.port": "0",
        "hive.metastore.warehouse.dir": tmp_path.as_uri()})]), loops=False)
    app.start()
    try:
        with MetastoreClient(app.thrift_uri, user="ann") as client:
            txns = TxnManager(client, host="h1")
            assert [txns.open().id for _ in range(3)] == [1, 2, 3]
            assert client.get_open_txns().open_txns == [1, 2, 3]
        assert app.waiting._listener.connected
        assert Leadership(url).is_leader("loops")
    finally:
        app.stop()
    assert front.served - before >= 4  # the migrations, the pool, the ear, the leader
    assert front.turned_away == 0


def test_the_command_line(secured, tmp_path):
    def version(url):
        return subprocess.run([sys.executable, "-m", "metastore", "db", "version", "--database-url", url, "-o", "json"],
                              check=False, capture_output=True, text=True, timeout=60)

    done = version(secured())
    assert json.loads(done.stdout) == {"database": "empty", "release": migrate.release_version()}
    done = version(secured(trusted=Authority(tmp_path, "Other CA").path))
    assert (done.returncode, done.stdout) == (3, "")
    assert re.search("certificate verify failed.*sslrootcert", done.stderr)


@pytest.mark.parametrize("connect", [migrate.versions, lambda url: Database(url).check()], ids=["migrations", "pool"])
def test_who_is_not_believed(secured, front, authority, tmp_path, connect):
    with pytest.raises(UnavailableError, match="certificate verify failed.*sslrootcert"):
        connect(secured(trusted=Authority(tmp_path, "Other CA").path))
    with pytest.raises(UnavailableError, match="root certificate file .* does not exist"):
        connect(secured(trusted=tmp_path / "nothing.pem"))
    elsewhere = authority.issue("elsewhere", "elsewhere.example")
    with (TlsFront(front._behind, elsewhere) as other,
          pytest.raises(UnavailableError, match="elsewhere.*does not match host name.*localhost")):
        connect(secured(front=other))


def test_a_server_without_tls_is_not_believed(postgres, authority):
    url = make_url(postgres.postgres.tcp_url).set(query={"sslmode": "verify-full", "sslrootcert": str(authority.path)})
    with pytest.raises(UnavailableError, match="server does not support SSL, but SSL was required"):
        migrate.versions(url.render_as_string(hide_password=False))
