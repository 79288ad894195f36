"""Identity of a caller: the user, the proof, and the address of the call, in one value.

Rule: only a proven user is an identity. The user that a client gives itself (``set_ugi``) appears in logs and locks if
there is no proof, and has no effect if there is.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from metastore.errors import AccessDeniedError


class IdentityProof(StrEnum):
    """The kinds of proof of an identity."""

    NOTHING = "nothing"
    CERTIFICATE = "certificate"
    KERBEROS = "kerberos"
    TOKEN = "token"  # noqa: S105 - a kind of proof
    """A delegation token of this metastore."""
    PASSWORD = "password"  # noqa: S105 - a kind of proof
    KERNEL = "kernel"
    """The kernel says that the caller is a process of the server's own user on this machine."""
    PLANNER = "planner"
    """A planner that this server trusts passes on what it knows of its caller."""


class Identity(NamedTuple):
    """The proven user; None: there is no proof."""

    user: str | None = None
    proof: IdentityProof = IdentityProof.NOTHING
    address: str = ""
    """The caller's address, ``host:port``; for a planner's caller, its own."""
    principal: str = ""
    """The name in the proof, where that is not the user: a Kerberos principal, or who asked for the token."""


NOBODY = Identity()


def of_certificate(certificate: Mapping[str, Any] | None, named_by: str) -> Identity:
    """Return the user named by a verified client certificate, as ``ssl.SSLSocket.getpeercert`` gives it.

    ``named_by``: ``subject`` (its common name) or ``san`` (its first e-mail address, URI or DNS name). `NOBODY` for a
    certificate that names no user in that way. Raises: AccessDeniedError for a subject with several common names.
    """
    if not certificate:
        return NOBODY
    if named_by == "san":
        names = [value for kind, value in certificate.get("subjectAltName", ()) if kind in {"email", "URI", "DNS"}]
    else:
        names = [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]
        if len(names) > 1:  # Some programs read the first, others the last.
            raise AccessDeniedError(f"The certificate names {len(names)} users ({', '.join(names)}): one is needed")
    return Identity(names[0], IdentityProof.CERTIFICATE) if names and names[0] else NOBODY
