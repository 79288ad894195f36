"""Key and trust stores as PEM, from every kind of file.

Rule: the file's content decides its kind, not its name and not a setting: Java writes PKCS12 into files called .jks.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from metastore.errors import InvalidInputError
from metastore.tls import jks

_LARGEST = 1 << 20
"""Bytes; a key store is a few kilobytes."""
_PEM_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*PRIVATE KEY-----")


class KeyStore(NamedTuple):
    """A key and certificates for OpenSSL. ``key`` is None if there is none."""

    key: PrivateKeyTypes | None
    certificates: tuple[x509.Certificate, ...]

    def pem(self) -> bytes:
        """Return the key, then the certificates, the key's own first."""
        key = self.key and self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return (key or b"") + self.certificate_pem().encode()

    def certificate_pem(self) -> str:
        """Return the certificates alone."""
        return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in self.certificates)


def read(paths: Sequence[str], password: str) -> KeyStore:
    """Read the content of the files together.

    Raises: InvalidInputError that names the file and its fault.
    """
    stores = []
    for path in paths:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InvalidInputError(f"The key store {path} cannot be read: {error.strerror}.") from error
        try:
            stores.append(_read(data[:_LARGEST], password))
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise InvalidInputError(f"The key store {path} cannot be used: {_phrase(error)}.") from error
    keys = [store.key for store in stores if store.key is not None]
    certificates = tuple(certificate for store in stores for certificate in store.certificates)
    if not certificates:
        raise InvalidInputError(f"The key store {','.join(paths)} has no certificate.")
    return KeyStore(keys[0] if keys else None, certificates)


def _read(data: bytes, password: str) -> KeyStore:
    if data.startswith(jks.MAGIC):
        store = jks.read(data, password)
        key = serialization.load_der_private_key(store.key, None) if store.key else None
        return KeyStore(key, tuple(map(x509.load_der_x509_certificate, (*store.chain, *store.trusted))))
    if b"-----BEGIN" in data:
        certificates = x509.load_pem_x509_certificates(data) if b"-----BEGIN CERTIFICATE" in data else []
        return KeyStore(_pem_key(data, password), tuple(certificates))
    private_key, own, others = pkcs12.load_key_and_certificates(data, password.encode())
    return KeyStore(private_key, tuple(([own] if own else []) + others))


def _pem_key(data: bytes, password: str) -> PrivateKeyTypes | None:
    match = _PEM_KEY.search(data)
    if match is None:
        return None
    return serialization.load_pem_private_key(match[0], password.encode() if b"ENCRYPTED" in match[0] else None)


def _phrase(error: Exception) -> str:
    return (str(error).splitlines() or ["it is of no known kind"])[0].rstrip(".")
