"""A reader of Java's JCEKS key stores, in which `hadoop credential create` keeps passwords.

Rule: pure; the store's own digest is checked with the password before anything in it is believed. The format and the
protection of secrets are those of Java's `com.sun.crypto.provider.JceKeyStore` and `PBES1Core`: a secret is a Java
object, sealed by Triple DES, within another Java object.
"""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from typing import Any

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.padding import PKCS7

from metastore.tls.jks import WHITENER, Der, Fields

MAGIC = b"\xce\xce\xce\xce"
_DIGEST_BYTES = 20
_SECRET_ENTRY = 3
_STREAM = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY = range(0x70, 0x76)
_BLOCK, _END = 0x77, 0x78
_FIRST_HANDLE = 0x7E0000
_SIZES = {"B": 1, "Z": 1, "C": 2, "S": 2, "I": 4, "F": 4, "J": 8, "D": 8}


def read(data: bytes, password: str) -> Mapping[str, "Sealed"]:
    """Return the secrets by alias, which Java keeps in lower case.

    Raises: ValueError with a phrase: not a JCEKS store, cut short, or the password is wrong.
    """
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not data.startswith(MAGIC):
        raise ValueError("it is not a JCEKS store")
    check = hashlib.sha1(password.encode("utf-16-be") + WHITENER + body).digest()  # noqa: S324 - the format's
    if not hmac.compare_digest(check, digest):
        raise ValueError("the password is wrong, or the file is damaged")
    fields = Fields(body, len(MAGIC))
    fields.number(4)  # This is the version.
    found = {}
    for _ in range(fields.number(4)):
        if fields.number(4) != _SECRET_ENTRY:
            raise ValueError("it holds keys and certificates, where only secrets are expected")
        alias = fields.text().decode()
        fields.number(8)  # This is the time of its creation.
        sealed = _Objects(fields).value()
        found[alias] = Sealed(sealed["encodedParams"], sealed["encryptedContent"], password)
    return found


class Sealed:
    """A secret that is decrypted when it is asked for, which takes a tenth of a second."""

    def __init__(self, parameters: bytes, content: bytes, password: str) -> None:
        self._parameters, self._content, self._password = parameters, content, password

    def text(self) -> str:
        """Return the secret."""
        inside = Der(self._parameters).inside()
        salt, rounds = inside.value(), int.from_bytes(inside.value())
        key = _derived(self._password.encode("ascii", "replace"), salt, rounds)
        decryptor = Cipher(TripleDES(key[:24]), modes.CBC(key[24:])).decryptor()
        padding = PKCS7(64).unpadder()
        plain = padding.update(decryptor.update(self._content) + decryptor.finalize()) + padding.finalize()
        return bytes(_Objects(Fields(plain, 0)).value()["key"]).decode()


def _derived(password: bytes, salt: bytes, rounds: int) -> bytes:
    """Return 24 bytes of a key and 8 of an initialisation vector."""
    halves = [salt[:4], salt[4:]]
    if halves[0] == halves[1]:  # Java intends to reverse the first half; its code has a bug, which is copied here.
        halves[0] = bytes((salt[3], salt[0], salt[1], salt[3]))
    derived = b""
    for half in halves:
        for _ in range(rounds):
            half = hashlib.md5(half + password).digest()  # noqa: S324, PLW2901 - the format's
        derived += half
    return derived


class _Objects:
    """A reader of Java's serialised objects, as dictionaries of their fields. No class is looked up or run."""

    def __init__(self, fields: Fields) -> None:
        self._fields, self._handles = fields, list[Any]()
        if fields.take(len(_STREAM)) != _STREAM:
            raise ValueError("an entry is no Java object")

    def value(self) -> Any:
        kind = self._fields.number(1)
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self._handles[self._fields.number(4) - _FIRST_HANDLE]
        if kind == _STRING:
            return self._noted(self._fields.text().decode())
        if kind == _CLASS:
            return self._class()
        if kind == _ARRAY:
            self._require(self.value()[0] == "[B")
            at = len(self._handles)
            self._handles.append(None)
            self._handles[at] = self._fields.block()
            return self._handles[at]
        self._require(kind == _OBJECT)
        lineage = list(self._lineage(self.value()))
        made: dict[str, Any] = self._noted({})
        for _, flags, members, _ in reversed(lineage):
            for name, code in members:
                made[name] = self._fields.number(_SIZES[code]) if code in _SIZES else self.value()
            if flags & 1:  # The class's writeObject wrote more.
                self._skip_annotations()
        return made

    def _class(self) -> tuple[str, int, list[tuple[str, str]], Any]:
        name = self._fields.text().decode()
        self._fields.number(8)  # This is the version of the class.
        at = len(self._handles)
        self._handles.append(None)
        flags, members = self._fields.number(1), []
        for _ in range(self._fields.number(2)):
            code = chr(self._fields.number(1))
            members.append((self._fields.text().decode(), code))
            if code in "[L":
                self.value()  # This is the type's name.
        self._skip_annotations()
        described = (name, flags, members, self.value())
        self._handles[at] = described
        return described

    @staticmethod
    def _lineage(described: Any) -> Iterator[Any]:
        while described is not None:
            yield described
            described = described[3]

    def _skip_annotations(self) -> None:
        while (kind := self._fields.number(1)) != _END:
            self._require(kind == _BLOCK)
            self._fields.take(self._fields.number(1))

    def _noted(self, value: Any) -> Any:
        self._handles.append(value)
        return value

    @staticmethod
    def _require(expected: bool) -> None:  # noqa: FBT001 - the condition itself
        if not expected:
            raise ValueError("an entry is of an unknown form")
