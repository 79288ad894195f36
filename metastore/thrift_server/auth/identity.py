"""Where a connection gets its identity: what is proven about the user, once, before its first call.

Rule: only what somebody proved is an identity. What a client says of itself (``set_ugi``) names the user in logs and
locks where nothing is proven, and changes nothing where it is.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Identity(NamedTuple):
    """The proven user; None: nobody has proven anything."""

    user: str | None = None


NOBODY = Identity()


def of_certificate(certificate: Mapping[str, Any] | None, named_by: str) -> Identity:
    """The user whom a verified client certificate names, as ``ssl.SSLSocket.getpeercert`` gives it.

    ``named_by``: ``subject`` (its common name) or ``san`` (its first e-mail address, URI or DNS name). `NOBODY` for
    a certificate that names nobody in that way.
    """
    if not certificate:
        return NOBODY
    if named_by == "san":
        return Identity(
            next(
                (value for kind, value in certificate.get("subjectAltName", ()) if kind in {"email", "URI", "DNS"}),
                None,
            )
        )
    parts = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return Identity(parts.get("commonName"))
