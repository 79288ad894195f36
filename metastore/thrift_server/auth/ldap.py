"""Passwords checked by a directory server (LDAP), by Hive's keys.

Rule: an empty password is never sent, since directories take it for an anonymous login. Names go into patterns and
filters escaped. Source: Hive's LdapAuthenticationProviderImpl.
"""

import importlib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from metastore.config.identity import IdentitySettings
from metastore.errors import InvalidInputError, UnavailableError

_TIMEOUT_S = 5


class LdapDirectory:
    """A directory server that knows the users."""

    def __init__(self, settings: IdentitySettings) -> None:
        """Prepare the directory. Raises: InvalidInputError (no library, or no address)."""
        try:
            self._ldap3: Any = importlib.import_module("ldap3")
            self._escape_filter: Any = importlib.import_module("ldap3.utils.conv").escape_filter_chars
            self._escape_rdn: Any = importlib.import_module("ldap3.utils.dn").escape_rdn
        except ImportError as error:
            raise InvalidInputError(
                "hive.metastore.authentication = ldap needs the package ldap3: install transaction-metastore[ldap]."
            ) from error
        if not settings.ldap_urls:
            raise InvalidInputError(
                "hive.metastore.authentication = ldap needs hive.metastore.authentication.ldap.url."
            )
        self._settings = settings
        # The library's own default takes any certificate.
        self._tls = self._ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=settings.ldap_authorities or None)

    def check(self, user: str, password: str) -> bool:
        """Return True if the password is the user's and the filters allow him. Raises: UnavailableError."""
        settings = self._settings
        if not user or not password or (settings.ldap_user_filter and user not in settings.ldap_user_filter):
            return False
        errors = []
        for url in settings.ldap_urls:
            server = self._ldap3.Server(url, connect_timeout=_TIMEOUT_S, get_info=self._ldap3.NONE, tls=self._tls)
            try:
                return self._is_user(server, user, password)
            except self._ldap3.core.exceptions.LDAPCommunicationError as error:
                errors.append(f"{url}: {error}")
        raise UnavailableError(f"No directory server answers, so nobody can log in ({'; '.join(errors)})")

    def _is_user(self, server: Any, user: str, password: str) -> bool:
        for name in self._names(server, user):
            with self._connected(server, name, password) as connection:
                if connection is not None:
                    groups = self._settings.ldap_group_filter
                    return not groups or self._is_member(connection, user, name)
        return False

    def _names(self, server: Any, user: str) -> Iterator[str]:
        """Yield the names by which a user may log in."""
        settings = self._settings
        if settings.ldap_bind_user:
            yield from self._found(server, user)
        elif settings.ldap_domain:
            yield f"{user}@{settings.ldap_domain}"
        elif settings.ldap_user_patterns:
            for pattern in settings.ldap_user_patterns:
                yield pattern.replace("%s", self._escape_rdn(user))
        else:
            yield f"{settings.ldap_guid_key}={self._escape_rdn(user)},{settings.ldap_base}"

    def _found(self, server: Any, user: str) -> list[str]:
        """Return the user's name, if the directory has exactly one of him."""
        settings = self._settings
        with self._connected(server, settings.ldap_bind_user, settings.ldap_bind_password) as connection:
            if connection is None:
                raise UnavailableError(f"The directory server does not take {settings.ldap_bind_user} (ldap.binddn)")
            text = f"({settings.ldap_guid_key}={self._escape_filter(user)})"
            connection.search(settings.ldap_base, text, size_limit=2, time_limit=_TIMEOUT_S)
            found = [entry["dn"] for entry in connection.response if entry["type"] == "searchResEntry"]
        return found if len(found) == 1 else []

    def _is_member(self, connection: Any, user: str, name: str) -> bool:
        """Return True if one of the listed groups has the user as its member."""
        settings = self._settings
        member, group_class = settings.ldap_group_member_key, settings.ldap_group_class
        who = "".join(f"({member}={self._escape_filter(text)})" for text in (name, user))
        listed = "".join(
            f"({settings.ldap_group_key}={self._escape_filter(group)})" for group in settings.ldap_group_filter
        )
        text = f"(&(objectClass={group_class})(|{listed})(|{who}))"
        connection.search(settings.ldap_group_base or settings.ldap_base, text, size_limit=1, time_limit=_TIMEOUT_S)
        return any(entry["type"] == "searchResEntry" for entry in connection.response)

    @contextmanager
    def _connected(self, server: Any, name: str, password: str) -> Iterator[Any | None]:
        """Log in for a while; None if the directory does not take name and password."""
        connection = self._ldap3.Connection(
            server, name, password, receive_timeout=_TIMEOUT_S, auto_referrals=False, read_only=True
        )
        try:
            yield connection if connection.bind() else None
        finally:
            connection.unbind()
            if connection.socket is not None:  # The library leaves the socket of a failed connect open.
                connection.socket.close()
