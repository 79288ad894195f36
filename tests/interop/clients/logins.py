"""Logins with clients that we did not write: Kerberos, delegation tokens and passwords with Hive 2.3.10 to 4.2.0, and PyIceberg.

`make interop-auth` runs it and prints the table of docs/how-to/who-is-it.md; not part of `make test`.
"""

import re
import subprocess
import sys
from contextlib import ExitStack

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from metastore.app import App
from metastore.config import build
from metastore.config.settings import SettingsSource
from metastore.thrift_server.auth.passwords import hashed
from tests.interop.clients.sessions import NEEDS_JAVA, VERSIONS, class_path
from tests.interop.java import BUILT, java_home
from tests.support.certificates import Authority
from tests.support.kerberos.realm import HOST, HiveClient, RefusedError, is_there, realm

JAVA_WITHOUT_SUBJECTS = 24
WITH_PASSWORDS = ["4.0.1", "4.1.0", "4.2.0"]


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    assert is_there(), "apt-get install krb5-kdc krb5-admin-server libkrb5-dev; pip install gssapi k5test"
    with realm(tmp_path_factory.mktemp("realm")) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", made.environment["KRB5_CONFIG"])
        yield made


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def trust(authority, tmp_path_factory):
    path = tmp_path_factory.mktemp("trust") / "trust.p12"
    path.write_bytes(pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(authority.certificate, b"ca")], BestAvailableEncryption(b"changeit")))
    return path


@pytest.fixture(scope="module")
def serve(postgres, tmp_path_factory):
    """Yield a function that starts a server with settings."""
    with ExitStack() as running:
        def start(settings):
            url = running.enter_context(postgres.cloned())
            app = App(build([SettingsSource("test", {
                "metastore.database.url": url, "hive.metastore.port": "0", "metastore.http.port": "0",
                "hive.metastore.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri(), **settings})]), loops=False)
            app.start()
            running.callback(app.stop)
            return app.thrift_uri.replace("127.0.0.1", HOST)
        yield start


@pytest.fixture(scope="module")
def kerberos(serve, kdc):
    service, keytab = kdc.keytab(f"hive/{HOST}")
    return serve({"hive.metastore.sasl.enabled": "true", "hive.metastore.kerberos.principal": service,
                  "hive.metastore.kerberos.keytab.file": str(keytab), "hadoop.rpc.protection": "authentication,integrity,privacy"})


@pytest.fixture(scope="module")
def passwords(serve, authority, tmp_path_factory):
    users = tmp_path_factory.mktemp("users") / "users"
    users.write_text(f"ann:{hashed('secret')}\n")
    return serve({"hive.metastore.authentication": "CONFIG", "metastore.authentication.users.file": str(users),
                  "hive.metastore.use.SSL": "true", "hive.metastore.keystore.path": str(authority.server())})


def java(version, realm_, work, uri, principal):
    home = java_home(NEEDS_JAVA.get(version, 17))
    if realm_ and int(re.search(r'JAVA_VERSION="(\d+)', (home / "release").read_text())[1]) >= JAVA_WITHOUT_SUBJECTS:
        pytest.skip("Hadoop's login needs a Java below 24 (JEP 486), and this client one from 21 on: install Java 21")
    return HiveClient(realm_, work, uri, principal, class_path(version), home)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_kerberos_and_tokens(kerberos, kdc, tmp_path, version):
    alice = kdc.keytab("alice")
    with java(version, kdc, tmp_path, kerberos, kdc.keytab(f"hive/{HOST}")[0]) as client:
        for protection in ("authentication", "integrity", "privacy"):
            assert client.as_user(*alice, "databases", protection=protection) == "[default]"
        token = client.as_user(*alice, "issue", alice[0], "yarn")
        assert client.with_token(token, "databases") == "[default]"
        client.as_user(*alice, "cancel", token)
        with pytest.raises(RefusedError, match="IO error acquiring password"):
            client.with_token(token, "databases")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", WITH_PASSWORDS)
def test_passwords(passwords, trust, tmp_path, version):
    with java(version, None, tmp_path, passwords, "") as client:
        assert client.with_password("ann", "secret", trust, "databases") == "[default]"
        for user, password in (("ann", "wrong"), ("bob", "secret")):
            with pytest.raises(RefusedError, match="PLAIN: user and password do not fit"):
                client.with_password(user, password, trust, "databases")


@pytest.mark.timeout(900)
def test_pyiceberg(kerberos, kdc):
    """Its extra hive-kerberos, whose packages are compiled, in an environment of its own."""
    folder = BUILT / "pyiceberg-kerberos"
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "pyiceberg[hive-kerberos,pyarrow]"], check=True)
    alice, keytab = kdc.keytab("alice")
    cache = {**kdc.environment, "KRB5CCNAME": f"FILE:{keytab}.cache"}
    subprocess.run(["kinit", "-k", "-t", keytab, alice], check=True, env=cache, capture_output=True)
    program = (f"from pyiceberg.catalog import load_catalog; c = load_catalog('c', type='hive', uri={kerberos!r}, "
               "**{'hive.kerberos-authentication': 'true', 'hive.kerberos-service-name': 'hive'}); print(c.list_namespaces())")
    done = subprocess.run([folder / "bin" / "python", "-c", program], check=False, capture_output=True, text=True, env=cache, timeout=300)
    assert done.stdout.strip() == "[('default',)]", done.stderr[-3000:]
