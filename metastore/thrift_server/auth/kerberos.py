"""The mechanism GSSAPI: Kerberos, with the security layers of RFC 4752.

Rule: the library decides what a ticket proves; here is only the exchange about the layer. The name of a user follows
from the principal by ``hadoop.security.auth_to_local``.
"""

import importlib
import threading
from collections.abc import Callable, Collection
from typing import Any, Final

from metastore.errors import AccessDeniedError, InvalidInputError
from metastore.thrift_server.auth.identity import Identity, IdentityProof
from metastore.thrift_server.auth.principals import LocalNames
from metastore.thrift_server.auth.sasl import Mechanism

LAYERS: Final = {"authentication": 1, "integrity": 2, "privacy": 4}
"""The security layers by Hadoop's words for them, as bits of RFC 4752."""
_LARGEST = 0xFFFFFF
"""Bytes: the largest size that the offer of layers can name."""
_CHOICE = 4
"""Bytes of the client's choice: a layer and a size; its authorization id follows."""


def gssapi_mechanism(
    principal: str, keytab: str, protection: Collection[str], local_names: LocalNames
) -> Callable[[str], Mechanism]:
    """Return a function that makes a mechanism for each negotiation.

    ``protection``: the layers that are offered. Raises: InvalidInputError (no library, or an unusable keytab).
    """
    try:
        gssapi = _library()
    except ImportError as error:
        raise InvalidInputError(
            "Kerberos needs the package gssapi: install transaction-metastore[kerberos], which compiles it with the "
            "operating system's Kerberos (Debian and Ubuntu: apt-get install libkrb5-dev gcc)."
        ) from error
    offered = sum(LAYERS[word] for word in protection)
    try:
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        credentials = gssapi.Credentials(name=name, usage="accept", store={"keytab": f"FILE:{keytab}"})
    except gssapi.exceptions.GSSError as error:
        raise InvalidInputError(
            f"hive.metastore.kerberos.keytab.file {keytab} has no usable key of {principal} "
            f"(hive.metastore.kerberos.principal): {reason_of(error)}"
        ) from error
    return lambda _host: _Gssapi(gssapi.SecurityContext(creds=credentials, usage="accept"), offered, local_names)


def _library() -> Any:
    """Return the package, which is not everywhere, and whose import loads the system's Kerberos."""
    return importlib.import_module("gssapi")


def reason_of(error: Any) -> str:
    """Return the message of a Kerberos error in one line."""
    return " ".join(str(error).split())


class _Gssapi:
    """One negotiation, and the frames after it."""

    waits = False

    def __init__(self, context: Any, offered: int, local_names: LocalNames) -> None:
        self._context, self._offered, self._local_names = context, offered, local_names
        self._is_asked = False
        self._layer = 0
        self._lock = threading.Lock()  # The context has counters: a read and an answer must not use it at once.
        self.identity: Identity | None = None

    @property
    def protects(self) -> bool:
        return self._layer > LAYERS["authentication"]

    def step(self, response: bytes) -> bytes:
        gssapi = _library()
        try:
            if not self._context.complete:
                token: bytes = self._context.step(response) or b""
                if token or not self._context.complete:
                    return token
            if not self._is_asked:
                self._is_asked = True
                size = _LARGEST if self._offered > LAYERS["authentication"] else 0
                return self._wrapped(bytes((self._offered,)) + size.to_bytes(3, "big"), encrypt=False)
            self._choose(self._context.unwrap(response).message)
        except gssapi.exceptions.GSSError as error:
            raise AccessDeniedError(f"GSSAPI: {reason_of(error)}") from error
        return b""

    def _choose(self, choice: bytes) -> None:
        """Take the client's choice of a layer."""
        layer = choice[0] if len(choice) >= _CHOICE else 0
        if layer not in LAYERS.values() or not layer & self._offered:
            raise AccessDeniedError(
                "The client chose a protection that hadoop.rpc.protection does not allow here: give both the same value"
            )
        principal = str(self._context.initiator_name)
        wanted = choice[_CHOICE:].decode("utf-8", "replace")
        if wanted not in {"", principal}:
            raise AccessDeniedError(
                f"{principal} may not act as {wanted[:200]!r}: a delegation token says for whom it is"
            )
        self._layer = layer
        self.identity = Identity(self._local_names.of(principal), IdentityProof.KERBEROS, principal=principal)

    def wrap(self, data: bytes) -> bytes:
        return self._wrapped(data, encrypt=self._layer == LAYERS["privacy"])

    def unwrap(self, data: bytes) -> bytes:
        gssapi = _library()
        try:
            with self._lock:
                opened = self._context.unwrap(data)
        except gssapi.exceptions.GSSError as error:
            raise ConnectionAbortedError(f"A frame was changed on the way: {reason_of(error)}") from error
        if self._layer == LAYERS["privacy"] and not opened.encrypted:
            raise ConnectionAbortedError("A frame that must be encrypted is not")
        return bytes(opened.message)

    def _wrapped(self, data: bytes, *, encrypt: bool) -> bytes:
        with self._lock:
            return bytes(self._context.wrap(data, encrypt).message)
