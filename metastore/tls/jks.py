"""A reader of Java key stores (JKS), which Java wrote by default until version 9.

Rule: pure; the store's own digest is checked with the password before anything in it is believed. The format and the
protection of keys are those of Java's `sun.security.provider.JavaKeyStore` and `KeyProtector`.
"""

import hashlib
import hmac
from typing import NamedTuple

MAGIC = b"\xfe\xed\xfe\xed"
WHITENER = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_SALT_BYTES = 20
_KEY_ENTRY, _CERTIFICATE_ENTRY = 1, 2


class JavaKeyStore(NamedTuple):
    """The content of a key store, in DER.

    ``key``: in PKCS8, b"" if the store has none; ``chain`` begins with the key's certificate.
    """

    key: bytes
    chain: tuple[bytes, ...]
    trusted: tuple[bytes, ...]


def read(data: bytes, password: str) -> JavaKeyStore:
    """Return the first key of the store, and its trusted certificates.

    Raises: ValueError with a phrase: not a JKS store, cut short, or the password is wrong.
    """
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    secret = password.encode("utf-16-be")
    if not data.startswith(MAGIC):
        raise ValueError("it is not a JKS store")
    if not hmac.compare_digest(hashlib.sha1(secret + WHITENER + body).digest(), digest):  # noqa: S324 - the format's
        raise ValueError("the password is wrong, or the file is damaged")
    fields = Fields(body, len(MAGIC))
    version, entries = fields.number(4), fields.number(4)
    key, chain, trusted = b"", tuple[bytes, ...](), []
    for _ in range(entries):
        tag = fields.number(4)
        fields.text()  # This is the alias.
        fields.number(8)  # This is the time of its creation.
        if tag == _KEY_ENTRY:
            protected = fields.block()
            certificates = tuple(_certificate(fields, version) for _ in range(fields.number(4)))
            if not key:
                key, chain = _unprotected(protected, secret), certificates
        elif tag == _CERTIFICATE_ENTRY:
            trusted.append(_certificate(fields, version))
        else:
            raise ValueError(f"an entry has the unknown kind {tag}")
    return JavaKeyStore(key, chain, tuple(trusted))


class Fields:
    """A reader of numbers and blocks, one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, length: int) -> bytes:
        """Return the next bytes. Raises: ValueError with a phrase."""
        end = self._at + length
        if end > len(self._data):
            raise ValueError("it is cut short")
        taken, self._at = self._data[self._at : end], end
        return taken

    def number(self, length: int) -> int:
        """Return the next bytes as a number."""
        return int.from_bytes(self.take(length))

    def text(self) -> bytes:
        """Return the next bytes, behind two with their number."""
        return self.take(self.number(2))

    def block(self) -> bytes:
        """Return the next bytes, behind four with their number."""
        return self.take(self.number(4))


def _certificate(fields: Fields, version: int) -> bytes:
    if version > 1:
        fields.text()  # X.509
    return fields.block()


def _unprotected(protected: bytes, secret: bytes) -> bytes:
    """Decrypt the key of an EncryptedPrivateKeyInfo: whitened with a chain of SHA-1, and followed by a digest."""
    info = Der(protected).inside()
    info.inside()  # This is the algorithm: there is only one.
    sealed = info.value()
    salt, text, check = (sealed[:_SALT_BYTES], sealed[_SALT_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:])
    pad, link = b"", salt
    while len(pad) < len(text):
        link = hashlib.sha1(secret + link).digest()  # noqa: S324 - the format's
        pad += link
    key = bytes(a ^ b for a, b in zip(text, pad, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):  # noqa: S324 - the format's
        raise ValueError("the key has another password than the store")
    return key


class Der:
    """A reader of the part of ASN.1 that an EncryptedPrivateKeyInfo needs."""

    def __init__(self, data: bytes) -> None:
        self._fields = Fields(data, 0)

    def value(self) -> bytes:
        """Return the next value."""
        self._fields.number(1)
        length = self._fields.number(1)
        return self._fields.take(self._fields.number(length & 0x7F) if length & 0x80 else length)

    def inside(self) -> "Der":
        """Return a reader of the next value."""
        return Der(self.value())
