"""The mechanism PLAIN: a user and a password, checked by a file, a directory server or a function.

Rule: the right and the wrong password, of a known or an unknown user, take the same time; after some failures of an
address or for a user the next ones are refused unchecked, for longer and longer.
"""

import hashlib
import hmac
import importlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from metastore.config.identity import IdentitySettings
from metastore.errors import AccessDeniedError, InvalidInputError, UnavailableError
from metastore.thrift_server.auth.identity import Identity, IdentityProof
from metastore.thrift_server.auth.ldap import LdapDirectory
from metastore.thrift_server.auth.sasl import Mechanism, Unprotected

Check = Callable[[str, str], bool]
"""Returns True if a password is the user's. Raises: UnavailableError."""
_COST, _BLOCK, _PARALLEL = 1 << 14, 8, 1
_SALT_BYTES = 16
_FREE_FAILURES = 5
_LONGEST_PAUSE_S = 300.0
_MOST_REMEMBERED = 10_000
_LONGEST = 4096
"""Characters of a password; a token of Kubernetes has about 1,500."""


def hashed(password: str, salt: bytes | None = None) -> str:
    """Return the line's part for a password in the file of users: ``scrypt$SALT$HASH``, in hexadecimal."""
    salt = salt or secrets.token_bytes(_SALT_BYTES)
    made = hashlib.scrypt(password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL)
    return f"scrypt${salt.hex()}${made.hex()}"


def of_file(path: Path) -> Check:
    """Return a check against a file with a line ``user:scrypt$SALT$HASH`` for each user, which is read each time.

    Raises: InvalidInputError, naming the line that cannot be read.
    """
    _users_in(path)
    unknown = hashed(secrets.token_hex())

    def check(user: str, password: str) -> bool:
        known = _users_in(path).get(user)
        salt = bytes.fromhex((known or unknown).split("$")[1])
        return hmac.compare_digest(hashed(password, salt), known or unknown) and known is not None

    return check


def of_function(name: str) -> Check:
    """Return a function of the operator's, ``module:function``. Raises: InvalidInputError."""
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"hive.metastore.custom.authentication.class = {name!r} is not valid: expected module:function of Python, "
            "which gets user and password and returns True or False."
        ) from error
    return lambda user, password: found(user, password) is True


def check_of(settings: IdentitySettings, *, use_ssl: bool) -> Check:
    """Return the check that the settings ask for. Raises: InvalidInputError."""
    if not use_ssl and not settings.plain_in_the_clear:
        raise InvalidInputError(
            f"hive.metastore.authentication = {settings.authentication} sends passwords: set hive.metastore.use.SSL, "
            "or metastore.authentication.without.tls=true if nobody can read the network."
        )
    if settings.authentication == "config":
        return of_file(Path(settings.users_file))
    if settings.authentication == "custom":
        return of_function(settings.custom)
    return LdapDirectory(settings).check


class FailedLogins:
    """The failures by address and by user: a pause after each beyond the first few."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin without failures."""
        self._now = now
        self._failures: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def require_none_recent(self, *names: str) -> None:
        """Raise AccessDeniedError while one of the names is in its pause."""
        with self._lock:
            pause = max((self._failures.get(name, (0, 0.0))[1] for name in names), default=0.0) - self._now()
        if pause > 0:
            raise AccessDeniedError(f"Too many failed logins: try again in {pause:.0f} s")

    def failed(self, *names: str) -> None:
        """Count a failure."""
        with self._lock:
            if len(self._failures) >= _MOST_REMEMBERED:
                self._failures = {name: kept for name, kept in self._failures.items() if kept[1] > self._now()}
            for name in names:
                count = self._failures.get(name, (0, 0.0))[0] + 1
                pause = min(2.0 ** (count - _FREE_FAILURES), _LONGEST_PAUSE_S) if count >= _FREE_FAILURES else 0.0
                self._failures[name] = (count, self._now() + pause)

    def succeeded(self, *names: str) -> None:
        """Forget the failures."""
        with self._lock:
            for name in names:
                self._failures.pop(name, None)


def plain_mechanism(check: Check, failures: FailedLogins) -> Callable[[str], Mechanism]:
    """Return a function that makes a mechanism for a negotiation with an address."""
    return lambda host: _Plain(check, failures, host)


class _Plain(Unprotected):
    """One negotiation. Source: RFC 4616."""

    waits = True

    def __init__(self, check: Check, failures: FailedLogins, host: str) -> None:
        self._check, self._failures, self._host = check, failures, host

    def step(self, response: bytes) -> bytes:
        try:
            wanted, user, password = response.decode().split("\0")
        except ValueError as error:
            raise AccessDeniedError("PLAIN: the response is not a user and a password") from error
        if wanted not in {"", user} or not user or not password or len(password) > _LONGEST:
            raise AccessDeniedError("PLAIN: a user and a password are needed, and nobody acts for another")
        names = (f"address {self._host}", f"user {user}")
        self._failures.require_none_recent(*names)
        try:
            is_right = self._check(user, password)
        except UnavailableError as error:
            raise AccessDeniedError(str(error)) from error
        if not is_right:
            self._failures.failed(*names)
            raise AccessDeniedError("PLAIN: user and password do not fit")
        self._failures.succeeded(*names)
        self.identity = Identity(user, IdentityProof.PASSWORD)
        return b""


def _users_in(path: Path) -> Mapping[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInputError(f"The file of users {path} cannot be read: {error.strerror}") from error
    users = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, kept = line.strip().partition(":")
        if not user or len(kept.split("$")) != 3 or not kept.startswith("scrypt$"):  # noqa: PLR2004 - as `hashed` makes it
            raise InvalidInputError(
                f"{path}, line {number}: expected user:scrypt$SALT$HASH (metastore config hash-password)"
            )
        users[user] = kept
    return users
