"""Who is behind a call: one value, which says who the user is, who proved it, and from which address the call came.

Rule: only what somebody proved is an identity. What a client says of itself (``set_ugi``) names the user in logs and
locks where nothing is proven, and changes nothing where it is.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from metastore.errors import AccessDeniedError


class IdentityProof(StrEnum):
    """What an identity rests on."""

    NOTHING = "nothing"
    CERTIFICATE = "certificate"
    PLANNER = "planner"
    """A planner that this server trusts passes on what it knows of its caller."""


class Identity(NamedTuple):
    """The proven user; None: nobody has proven anything."""

    user: str | None = None
    proof: IdentityProof = IdentityProof.NOTHING
    address: str = ""
    """Where the caller is, ``host:port``; of a planner's caller, where that is."""


NOBODY = Identity()


def of_certificate(certificate: Mapping[str, Any] | None, named_by: str) -> Identity:
    """Return the user whom a verified client certificate names, as ``ssl.SSLSocket.getpeercert`` gives it.

    ``named_by``: ``subject`` (its common name) or ``san`` (its first e-mail address, URI or DNS name). `NOBODY` for
    a certificate that names nobody in that way. Raises: AccessDeniedError for a subject with several common names.
    """
    if not certificate:
        return NOBODY
    if named_by == "san":
        names = [value for kind, value in certificate.get("subjectAltName", ()) if kind in {"email", "URI", "DNS"}]
    else:
        names = [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]
        if len(names) > 1:  # others would read the first, or the last
            raise AccessDeniedError(f"The certificate names {len(names)} users ({', '.join(names)}): one is needed")
    return Identity(names[0], IdentityProof.CERTIFICATE) if names and names[0] else NOBODY
