"""Kerberos and delegation tokens with Hive's own client 2.3.10, the one inside Spark, and MIT's KDC."""

import pytest

from metastore.app import App
from metastore.client import MetastoreClient
from metastore.config import build
from metastore.config.settings import SettingsSource
from tests.support.kerberos.realm import HOST, HiveClient, RefusedError, is_there, realm

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("kerberos")]


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    if not is_there():
        pytest.skip("there is no KDC: apt-get install krb5-kdc krb5-admin-server libkrb5-dev; pip install gssapi k5test")
    with realm(tmp_path_factory.mktemp("realm")) as made, pytest.MonkeyPatch.context() as patch:
        for name in ("KRB5_CONFIG", "KRB5_KDC_PROFILE"):
            if name in made.environment:
                patch.setenv(name, made.environment[name])
        yield made


@pytest.fixture(scope="module")
def app(postgres, kdc, tmp_path_factory):
    service, keytab = kdc.keytab(f"hive/{HOST}")
    with postgres.cloned() as url:
        app = App(build([SettingsSource("test", {
            "metastore.database.url": url, "hive.metastore.port": "0", "metastore.http.port": "0",
            "hive.metastore.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri(),
            "hive.metastore.sasl.enabled": "true", "hive.metastore.kerberos.principal": service,
            "hive.metastore.kerberos.keytab.file": str(keytab),
            "hadoop.rpc.protection": "authentication,integrity,privacy",
            "hadoop.proxyuser.trino.hosts": "*", "hadoop.proxyuser.trino.users": "alice"})]), loops=False)
        app.start()
        yield app
        app.stop()


@pytest.fixture(scope="module")
def client(app, kdc, tmp_path_factory):
    uri = app.thrift_uri.replace("127.0.0.1", HOST)
    with HiveClient(kdc, tmp_path_factory.mktemp("java"), uri, kdc.keytab(f"hive/{HOST}")[0]) as client:
        yield client


@pytest.mark.parametrize("protection", ["authentication", "integrity", "privacy"])
def test_each_protection(client, kdc, protection):
    alice = kdc.keytab("alice")
    assert client.as_user(*alice, "databases", protection=protection) == "[default]"
    with pytest.raises(RefusedError, match="MetaException"):  # a message of several frames arrives whole
        client.as_user(*alice, "large", protection=protection)


def test_the_user_is_the_principals(app, client, kdc):
    txn_id = int(client.as_user(*kdc.keytab("alice"), "lock", "mallory"))
    with MetastoreClient(app.thrift_uri) as own:
        [txn] = [txn for txn in own.get_open_txns_info().open_txns if txn.id == txn_id]
    assert txn.user in {"alice", "mallory"}


def test_a_token_instead_of_a_ticket(client, kdc):
    alice = kdc.keytab("alice")
    token = client.as_user(*alice, "issue", alice[0], "yarn")
    assert client.with_token(token, "databases") == "[default]"
    with pytest.raises(RefusedError, match="only with kerberos"):
        client.with_token(token, "issue", "alice", "yarn")
    with pytest.raises(RefusedError, match="Only yarn may renew"):
        client.as_user(*alice, "renew", token)
    yarn = kdc.keytab("yarn")
    assert int(client.as_user(*yarn, "renew", token)) > 0
    with pytest.raises(RefusedError, match="Only alice or yarn may cancel"):
        client.as_user(*kdc.keytab("mallory"), "cancel", token)
    client.as_user(*alice, "cancel", token)
    with pytest.raises(RefusedError, match="IO error acquiring password"):
        client.with_token(token, "databases")


def test_a_proxy_gets_tokens_for_its_users_only(client, kdc):
    trino = kdc.keytab(f"trino/{HOST}")
    token = client.as_user(*trino, "issue", "alice", "trino")
    assert client.with_token(token, "databases") == "[default]"
    with pytest.raises(RefusedError, match="trino may not act for bob: neither hadoop.proxyuser.trino.users"):
        client.as_user(*trino, "issue", "bob", "trino")
    with pytest.raises(RefusedError, match="mallory may not act for alice"):
        client.as_user(*kdc.keytab("mallory"), "issue", "alice", "mallory")


def test_who_proves_nothing_is_refused(app, client):
    with pytest.raises(RefusedError):
        client.as_user("nobody@NOWHERE", "/nothing", "databases")
