"""The mechanisms of SASL that a server with these settings offers."""

import socket
from collections.abc import Callable

from metastore.config.identity import IdentitySettings
from metastore.errors import InvalidInputError
from metastore.thrift_server.auth.digest import token_mechanism
from metastore.thrift_server.auth.kerberos import gssapi_mechanism
from metastore.thrift_server.auth.passwords import FailedLogins, check_of, plain_mechanism
from metastore.thrift_server.auth.principals import LocalNames, Principal, with_host
from metastore.thrift_server.auth.sasl import Mechanisms


def own_principal(settings: IdentitySettings) -> str:
    """Return the server's Kerberos principal. Raises: InvalidInputError, if it is not service/host@REALM."""
    principal = with_host(settings.principal, socket.getfqdn())
    name = Principal.of(principal)
    if not (name.host and name.realm):
        raise InvalidInputError(
            f"hive.metastore.kerberos.principal = {settings.principal!r} is not valid: expected service/_HOST@REALM"
        )
    return principal


def local_names(settings: IdentitySettings) -> LocalNames | None:
    """Return the mapping of principals to user names; None without Kerberos. Raises: InvalidInputError."""
    if not settings.uses_kerberos:
        return None
    return LocalNames(settings.auth_to_local, Principal.of(own_principal(settings)).realm)


def mechanisms(
    settings: IdentitySettings, password_of: Callable[[bytes], bytes | None], *, use_ssl: bool
) -> Mechanisms:
    """Return the mechanisms; none if clients prove nothing here.

    ``password_of``: see `token_mechanism`; ``use_ssl``: connections have TLS. Raises: InvalidInputError.
    """
    if settings.uses_passwords:
        return {"PLAIN": plain_mechanism(check_of(settings, use_ssl=use_ssl), FailedLogins())}
    names = local_names(settings)
    if names is None:
        return {}
    offered = {"GSSAPI": gssapi_mechanism(own_principal(settings), settings.keytab, settings.protection, names)}
    if "authentication" in settings.protection:  # A token's connection is not protected.
        offered["DIGEST-MD5"] = token_mechanism(password_of)
    return offered
