"""Key and trust stores of every kind; those of Java are written by Java's own keytool."""

import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from metastore.errors import InvalidInputError
from metastore.tls import jks, keystore
from tests.support.certificates import Authority

PASSWORD = "changeit"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(authority):
    return keystore.read([str(authority.server())], "")


def numbers(store):
    return store.key.private_numbers()


def test_pem_key_and_certificate_in_one_file_or_in_two(authority, server):
    text = authority.server(file="both.pem").read_bytes()
    mark = text.index(b"-----BEGIN CERTIFICATE")
    (authority.directory / "tls.key").write_bytes(text[:mark])
    (authority.directory / "tls.crt").write_bytes(text[mark:])
    both = keystore.read([str(authority.directory / "both.pem")], "")
    apart = keystore.read([str(authority.directory / "tls.crt"), str(authority.directory / "tls.key")], "")
    assert apart.pem() == both.pem() == text
    assert numbers(apart) != numbers(server)


def test_pem_key_with_a_password(authority, server):
    sealed = server.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode()))
    path = authority.directory / "sealed.pem"
    path.write_bytes(server.certificate_pem().encode() + sealed)
    assert numbers(keystore.read([str(path)], PASSWORD)) == numbers(server)
    with pytest.raises(InvalidInputError, match="sealed.pem cannot be used"):
        keystore.read([str(path)], "wrong")


def test_pkcs12(authority, server):
    path = authority.directory / "server.p12"
    path.write_bytes(pkcs12.serialize_key_and_certificates(
        b"server", server.key, server.certificates[0], [authority.certificate], BestAvailableEncryption(PASSWORD.encode())))
    found = keystore.read([str(path)], PASSWORD)
    assert numbers(found) == numbers(server)
    assert found.certificates == (server.certificates[0], authority.certificate)
    with pytest.raises(InvalidInputError, match="server.p12 cannot be used: "):
        keystore.read([str(path)], "wrong")


needs_keytool = pytest.mark.skipif(not shutil.which("keytool"), reason="there is no Java here")


def keytool(*arguments):
    subprocess.run(["keytool", *map(str, arguments)], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def java(authority, server):
    """Create a JKS store with a key and one with a trusted certificate, written by Java."""
    p12, store, trust = (authority.directory / name for name in ("in.p12", "server.jks", "trust.jks"))
    p12.write_bytes(pkcs12.serialize_key_and_certificates(
        b"server", server.key, server.certificates[0], [authority.certificate], BestAvailableEncryption(PASSWORD.encode())))
    keytool("-importkeystore", "-srckeystore", p12, "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD,
            "-destkeystore", store, "-deststoretype", "JKS", "-deststorepass", PASSWORD, "-noprompt")
    keytool("-importcert", "-file", authority.path, "-keystore", trust, "-storetype", "JKS", "-storepass", PASSWORD,
            "-alias", "ca", "-noprompt")
    assert store.read_bytes().startswith(jks.MAGIC)
    return store, trust


@needs_keytool
def test_jks(java, authority, server):
    found = keystore.read([str(java[0])], PASSWORD)
    assert numbers(found) == numbers(server)
    assert load_pem_private_key(found.pem(), None).private_numbers() == numbers(server)
    assert found.certificates == (server.certificates[0], authority.certificate)
    trusted = keystore.read([str(java[1])], PASSWORD)
    assert trusted == (None, (authority.certificate,))


@needs_keytool
def test_a_jks_store_is_not_believed_without_its_password_or_when_damaged(java):
    data = java[0].read_bytes()
    with pytest.raises(ValueError, match="the password is wrong"):
        jks.read(data, "wrong")
    for at in range(4, len(data), 97):
        with pytest.raises(ValueError, match="damaged"):
            jks.read(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:], PASSWORD)
    with pytest.raises(ValueError, match="not a JKS store"):
        jks.read(b"PK" + data, PASSWORD)


@pytest.mark.parametrize(("content", "said"), [
    (None, "cannot be read: No such file or directory"),
    (b"", "cannot be used"),
    (b"hello", "cannot be used"),
    (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be used"),
])
def test_what_is_no_key_store_is_named(tmp_path, content, said):
    path = tmp_path / "store"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=f"The key store {path} {said}"):
        keystore.read([str(path)], "")


def test_a_store_without_certificates(tmp_path, server):
    path = tmp_path / "tls.key"
    path.write_bytes(server.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(InvalidInputError, match="has no certificate"):
        keystore.read([str(path)], "")
