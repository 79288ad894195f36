"""The bytes of delegation tokens, as Hadoop writes them, and the rule for users who may get a token for another user.

Sources: Hadoop's AbstractDelegationTokenIdentifier, Token.encodeToUrlString and WritableUtils; ProxyUsers for
``hadoop.proxyuser.*``.
"""

import base64
import binascii
import hmac
from collections.abc import Callable, Collection, Mapping
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple

from metastore.errors import AccessDeniedError, InvalidInputError

KIND: Final = "HIVE_DELEGATION_TOKEN"
LONGEST_NAME: Final = 1024
"""Bytes of a user's or renewer's name."""
PROXY_USER: Final = "hadoop.proxyuser."
"""The prefix of the settings that say who may act for whom."""
KEY_BYTES: Final = 32
_VERSION = 0
_LARGEST = 1 << 14
_ONE_BYTE = -112
_NEGATIVE = -120


class TokenIdentifier(NamedTuple):
    """The public part of a token."""

    owner: str
    renewer: str
    real_user: str
    """The user who asked for it in the owner's name; "" if the owner asked."""
    issued_ms: int
    expires_ms: int
    """The end of its life, which no renewal prolongs."""
    sequence: int
    key_id: int

    def encoded(self) -> bytes:
        """Return Hadoop's bytes, which are also the token's user name for DIGEST-MD5."""
        names = b"".join(map(_text, (self.owner, self.renewer, self.real_user)))
        numbers = b"".join(map(_number, (self.issued_ms, self.expires_ms, self.sequence, self.key_id)))
        return bytes((_VERSION,)) + names + numbers

    @classmethod
    def decoded(cls, data: bytes) -> "TokenIdentifier":
        """Parse Hadoop's bytes. Raises: InvalidInputError."""
        reader = _Reader(data)
        if reader.byte() != _VERSION:
            raise InvalidInputError("The delegation token is of an unknown version")
        owner, renewer, real_user = (reader.bytes().decode("utf-8", "replace") for _ in range(3))
        identifier = cls(owner, renewer, real_user, *(reader.number() for _ in range(4)))
        if identifier.encoded() != data:
            raise InvalidInputError("The identifier of the delegation token is damaged")
        return identifier


def password(identifier: bytes, key: bytes) -> bytes:
    """Return a token's password, by Hadoop's algorithm."""
    return hmac.digest(key, identifier, "sha1")


def encoded_token(identifier: bytes, secret: bytes, service: str = "") -> str:
    """Return a token as Hadoop's ``Token.encodeToUrlString`` writes it."""
    data = b"".join(_number(len(part)) + part for part in (identifier, secret, KIND.encode(), service.encode()))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded_token(text: str) -> tuple[bytes, bytes]:
    """Return the identifier and the password of a token. Raises: InvalidInputError."""
    if len(text) > _LARGEST:
        raise InvalidInputError(f"This is no delegation token: it has {len(text)} characters")
    try:
        reader = _Reader(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error) as error:
        raise InvalidInputError("This is no delegation token: it is not base64") from error
    return reader.bytes(), reader.bytes()


def require_proxy(
    settings: Mapping[str, str], caller: str, owner: str, host: str, groups_of: Callable[[str], Collection[str]]
) -> None:
    """Check that ``caller`` may act for ``owner`` from an address, by ``hadoop.proxyuser.CALLER.hosts/groups/users``.

    Raises: AccessDeniedError, naming the setting that would allow it.
    """
    prefix = f"{PROXY_USER}{caller}."
    hosts, groups, users = (_words(settings.get(f"{prefix}{word}", "")) for word in ("hosts", "groups", "users"))
    if not _is_among(users, {owner}) and not (groups and _is_among(groups, groups_of(owner))):
        raise AccessDeniedError(f"{caller} may not act for {owner}: neither {prefix}users nor {prefix}groups allows it")
    if not _is_from(hosts, host):
        raise AccessDeniedError(f"{caller} may not act for others from {host}: {prefix}hosts does not name it")


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def _is_among(allowed: Collection[str], given: Collection[str]) -> bool:
    return "*" in allowed or not frozenset(allowed).isdisjoint(given)


def _is_from(hosts: Collection[str], host: str) -> bool:
    """Return True if an address is listed: itself, by a network, or by ``*``."""
    if "*" in hosts:
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return host in hosts
    for word in hosts:
        try:
            if address in ip_network(word, strict=False):
                return True
        except ValueError:
            continue
    return False


def _text(value: str) -> bytes:
    data = value.encode()
    return _number(len(data)) + data


def _number(value: int) -> bytes:
    """Encode as Hadoop's variable-length number."""
    if _ONE_BYTE <= value <= 127:  # noqa: PLR2004 - what one byte holds
        return value.to_bytes(1, "big", signed=True)
    first, value = (_ONE_BYTE, value) if value >= 0 else (_NEGATIVE, ~value)
    size = (value.bit_length() + 7) // 8
    return (first - size).to_bytes(1, "big", signed=True) + value.to_bytes(size, "big")


class _Reader:
    """A reader of Hadoop's values. Raises: InvalidInputError, where the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if count < 0 or len(taken) != count:
            raise InvalidInputError("The delegation token is cut off")
        self._at += count
        return taken

    def byte(self) -> int:
        return int.from_bytes(self._take(1), "big", signed=True)

    def number(self) -> int:
        first = self.byte()
        if first >= _ONE_BYTE:
            return first
        is_negative = first < _NEGATIVE
        value = int.from_bytes(self._take((_NEGATIVE if is_negative else _ONE_BYTE) - first), "big")
        return ~value if is_negative else value

    def bytes(self) -> bytes:
        return self._take(self.number())
