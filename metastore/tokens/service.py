"""Delegation tokens: to give, prolong and cancel them, and to know the password of one."""

import hmac
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from metastore.config.identity import IdentitySettings
from metastore.db.engine import Database
from metastore.errors import AccessDeniedError
from metastore.tokens import store as token_store
from metastore.tokens.rules import (
    KEY_BYTES,
    LONGEST_NAME,
    TokenIdentifier,
    decoded_token,
    encoded_token,
    password,
    require_proxy,
)
from metastore.tokens.store import StoredToken

_INTS = 1 << 31
"""Hadoop reads these numbers as ints, and a restore moves ours far ahead; nothing rests on them."""


def in_ms(instant: datetime) -> int:
    """Return an instant as milliseconds since 1970."""
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@dataclass(frozen=True)
class TokenService:
    """The tokens of this metastore. Every replica knows each of them."""

    db: Database
    settings: IdentitySettings
    proxies: Mapping[str, str]
    """The settings ``hadoop.proxyuser.*``."""
    groups_of: Callable[[str], Collection[str]]
    """Returns the groups of a user."""

    def get_delegation_token(self, owner: str, renewer: str, caller: str, host: str) -> str:
        """Return a new token of ``owner``, as text; ``host``: the address of the caller. Retry: makes another one.

        Raises: AccessDeniedError (the caller may not act for the owner).
        """
        for name in (owner, renewer):
            if len(name.encode()) > LONGEST_NAME:
                raise AccessDeniedError(f"A name of {len(name)} characters is refused: {LONGEST_NAME} bytes are enough")
        if owner != caller:
            require_proxy(self.proxies, caller, owner, host, self.groups_of)
        with self.db.begin() as pg:
            token_store.lock_keys(pg)
            key = token_store.newest_key(pg, pg.now - self.settings.key_interval)
            if key is None:
                key = token_store.insert_key(pg, secrets.token_bytes(KEY_BYTES))
            sequence = token_store.next_sequence(pg)
            expires = pg.now + self.settings.token_lifetime
            identifier = TokenIdentifier(
                owner,
                renewer,
                "" if owner == caller else caller,
                in_ms(pg.now),
                in_ms(expires),
                sequence % _INTS,
                key.id % _INTS,
            ).encoded()
            valid_until = min(pg.now + self.settings.token_renewal, expires)
            token = StoredToken(renewer, valid_until, expires, key.key)
            token_store.insert(pg, sequence, identifier, token, key.id)
        return encoded_token(identifier, password(identifier, key.key))

    def renew_delegation_token(self, text: str, names: Collection[str]) -> int:
        """Prolong a token; return the end of its validity in milliseconds. Retry: idempotent.

        ``names``: those of the caller, of whom one must be the renewer. Raises: AccessDeniedError, InvalidInputError.
        """
        identifier, secret = decoded_token(text)
        with self.db.begin() as pg:
            token = _required(token_store.lock_token(pg, identifier), identifier, secret)
            if token.renewer not in names:
                raise AccessDeniedError(f"Only {token.renewer or 'nobody'} may renew this delegation token")
            if pg.now >= token.valid_until:
                raise AccessDeniedError("The delegation token has expired: get a new one")
            valid_until = min(pg.now + self.settings.token_renewal, token.expires)
            token_store.update(pg, identifier, valid_until)
        return in_ms(valid_until)

    def cancel_delegation_token(self, text: str, names: Collection[str]) -> None:
        """Remove a token: no replica takes it from now on.

        ``names``: those of the caller, of whom one must be the owner or the renewer. Raises: AccessDeniedError,
        InvalidInputError.
        """
        identifier, secret = decoded_token(text)
        with self.db.begin() as pg:
            token = _required(token_store.lock_token(pg, identifier), identifier, secret)
            owner = TokenIdentifier.decoded(identifier).owner
            if not {owner, token.renewer} & set(names):
                raise AccessDeniedError(f"Only {owner} or {token.renewer or 'nobody'} may cancel this delegation token")
            token_store.delete(pg, identifier)

    def password_of(self, identifier: bytes) -> bytes | None:
        """Return the password of a token that is valid now; None: there is none."""
        token = token_store.select_valid(self.db, identifier)
        return password(identifier, token.key) if token is not None else None

    def purge(self) -> int:
        """Remove tokens that are no longer valid; return their number."""
        count, removed = 0, token_store.BATCH
        while removed == token_store.BATCH:
            with self.db.begin(durable=False) as pg:
                removed = token_store.delete_expired(pg)
            count += removed
        return count

    # ---------------------------------------------- tokens and keys that a Hive server keeps here for itself

    def add_token(self, identifier: str, token: str) -> bool:
        """Keep a token; return False if there is one with this identifier."""
        return token_store.insert_foreign(self.db, identifier, token)

    def get_token(self, identifier: str) -> str:
        """Return a token; "" if there is none."""
        return token_store.select_foreign(self.db, identifier) or ""

    def remove_token(self, identifier: str) -> bool:
        """Remove a token; return False if there is none."""
        return token_store.delete_foreign(self.db, identifier)

    def get_all_token_identifiers(self) -> list[str]:
        """Return all identifiers."""
        return token_store.select_foreign_identifiers(self.db)

    def add_master_key(self, key: str) -> int:
        """Keep a master key; return its number."""
        with self.db.begin() as pg:
            token_store.lock_keys(pg)
            return token_store.insert_foreign_key(pg, key)

    def update_master_key(self, number: int, key: str) -> bool:
        """Replace a master key; return False if there is none."""
        return token_store.update_foreign_key(self.db, number, key)

    def remove_master_key(self, number: int) -> bool:
        """Remove a master key; return False if there is none."""
        return token_store.delete_foreign_key(self.db, number)

    def get_master_keys(self) -> list[str]:
        """Return all master keys."""
        return token_store.select_foreign_keys(self.db)


def _required(token: StoredToken | None, identifier: bytes, secret: bytes) -> StoredToken:
    """Return the token if there is one and its password is right. Raises: AccessDeniedError."""
    if token is None or not hmac.compare_digest(password(identifier, token.key), secret):
        raise AccessDeniedError("There is no such delegation token: it has expired, or was cancelled")
    return token
