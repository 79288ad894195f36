"""The mechanism DIGEST-MD5 with a delegation token as user and password.

Rule: only what Hadoop's clients send is taken: the realm ``default``, the quality ``auth``, one round. Sources: RFC
2831, and Hive's HadoopThriftAuthBridge. MD5 proves that the client knows the token's password, which is a HMAC of 160
bits; use TLS where the network may be read.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable

from metastore.errors import AccessDeniedError, InvalidInputError
from metastore.thrift_server.auth.identity import Identity, IdentityProof
from metastore.thrift_server.auth.sasl import Mechanism, Unprotected
from metastore.tokens.rules import TokenIdentifier

REALM = "default"
_DIRECTIVE = re.compile(r'\s*([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_COUNT = "00000001"
_QUALITY = "auth"
_UNKNOWN = "DIGEST-MD5: IO error acquiring password"
"""The words by which clients know that their token is gone."""


def token_mechanism(password_of: Callable[[bytes], bytes | None]) -> Callable[[str], Mechanism]:
    """Return a function that makes a mechanism for each negotiation.

    ``password_of``: returns the password of a valid token by its identifier; it may wait for PostgreSQL.
    """
    return lambda _host: _Digest(password_of)


class _Digest(Unprotected):
    """One negotiation."""

    def __init__(self, password_of: Callable[[bytes], bytes | None]) -> None:
        self._password_of = password_of
        self._nonce = ""

    @property
    def waits(self) -> bool:
        return bool(self._nonce)

    def step(self, response: bytes) -> bytes:
        if not self._nonce:
            self._nonce = base64.b64encode(secrets.token_bytes(24)).decode()
            return (f'realm="{REALM}",nonce="{self._nonce}",qop="{_QUALITY}",charset=utf-8,algorithm=md5-sess').encode()
        said = directives(response)
        user = said.get("username", "")
        fixed = {"realm": REALM, "nonce": self._nonce, "nc": _COUNT, "qop": _QUALITY}
        wrong = [name for name, value in fixed.items() if said.get(name, value if name == "qop" else "") != value]
        if wrong or said.get("authzid", user) != user or not said.get("cnonce") or not said.get("digest-uri"):
            raise AccessDeniedError(
                f"DIGEST-MD5: the response is refused ({', '.join(wrong) or 'authzid, cnonce or uri'})"
            )
        try:
            identifier = base64.b64decode(user, validate=True)
            token = TokenIdentifier.decoded(identifier)
        except (binascii.Error, ValueError, InvalidInputError) as error:
            raise AccessDeniedError("DIGEST-MD5: the user name is no delegation token") from error
        password = self._password_of(identifier)
        # The same work is done for a token that is gone: an answer's time tells nothing about it.
        key = session_key(said, base64.b64encode(password or secrets.token_bytes(20)).decode())
        expected = digest(key, said, "AUTHENTICATE:")
        if not hmac.compare_digest(expected.encode(), said.get("response", "").encode()) or password is None:
            raise AccessDeniedError(_UNKNOWN)
        self.identity = Identity(token.owner, IdentityProof.TOKEN, principal=token.real_user)
        return b"rspauth=" + digest(key, said, ":").encode()


def directives(response: bytes) -> dict[str, str]:
    """Parse ``name=value,name="value"``. Raises: AccessDeniedError, also for a name that is there twice."""
    try:
        text = response.decode()
    except UnicodeDecodeError as error:
        raise AccessDeniedError("DIGEST-MD5: the response is no text") from error
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _DIRECTIVE.match(text, at)
        if match is None or match[1] in found:
            raise AccessDeniedError("DIGEST-MD5: the response cannot be read")
        found[match[1]] = match[3] if match[3] is not None else re.sub(r"\\(.)", r"\1", match[2])
        at = match.end()
    return found


def session_key(said: dict[str, str], password: str) -> bytes:
    """Return the key of RFC 2831 2.1.2.1, A1 hashed, in hexadecimal."""
    secret = _md5(f"{said['username']}:{REALM}:{password}".encode())
    a1 = secret + f":{said['nonce']}:{said['cnonce']}".encode()
    if said.get("authzid"):
        a1 += f":{said['authzid']}".encode()
    return _md5(a1).hex().encode()


def digest(key: bytes, said: dict[str, str], prefix: str) -> str:
    """Return the response of a client (``AUTHENTICATE:``) or of the server (``:``)."""
    a2 = _md5(f"{prefix}{said['digest-uri']}".encode()).hex()
    parts = (said["nonce"], said["nc"], said["cnonce"], said.get("qop", _QUALITY), a2)
    return _md5(b":".join((key, *(part.encode() for part in parts)))).hex()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
