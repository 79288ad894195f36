"""OpenSSL contexts made of the settings, for our server and for our clients.

Rules: no protocol is older than TLSv1.2; a private key is never written to a disk; the next connection uses stores that
changed on disk, and if a file cannot be read then, the previous context stays, with a line in the log.
"""

import os
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from metastore.errors import InvalidInputError, MetastoreError
from metastore.telemetry.logs import get_logger

_LOOK_EVERY_SECONDS = 1.0
_log = get_logger(__name__)


class ServerSide(Protocol):
    """The settings of a server; `metastore.config.security` explains each."""

    @property
    def keystore(self) -> tuple[str, ...]:
        """The files with the server's key and certificates."""

    @property
    def keystore_password(self) -> str:
        """The password of the key store."""

    @property
    def truststore(self) -> tuple[str, ...]:
        """The files with certificates that sign those of clients."""

    @property
    def truststore_password(self) -> str:
        """The password of the trust store."""

    @property
    def client_certificates(self) -> str:
        """``none``, ``wanted`` or ``required``."""

    @property
    def forbidden_protocols(self) -> tuple[str, ...]:
        """The protocols that are refused although OpenSSL has them."""

    @property
    def ciphers(self) -> str:
        """The ciphers for TLSv1.2, in OpenSSL's notation."""


@dataclass(frozen=True)
class ClientSide:
    """The settings of a client. ``truststore``: empty: the operating system's."""

    truststore: tuple[str, ...] = ()
    truststore_password: str = ""
    keystore: tuple[str, ...] = ()
    keystore_password: str = ""
    verify_hostname: bool = True


class Context(ssl.SSLContext):
    """A context that knows when its own certificate ends."""

    expires = float("inf")
    """Seconds since 1970; infinite without a certificate."""


class RenewedContext:
    """A context that is made anew when any of its files has changed."""

    def __init__(self, settings: ServerSide | ClientSide) -> None:
        """Make the context. Raises: InvalidInputError."""
        self._settings = settings
        self._files = (*settings.keystore, *settings.truststore)
        self._seen = self._state()
        self._context = self._made()
        self._looked = time.monotonic()
        self._lock = threading.Lock()

    def get(self) -> Context:
        """Return the context for the next connection. Files are checked once a second."""
        if time.monotonic() - self._looked < _LOOK_EVERY_SECONDS:
            return self._context
        with self._lock:
            self._looked = time.monotonic()
            state = self._state()
            if state != self._seen:
                self._seen = state
                try:
                    self._context = self._made()
                except MetastoreError as error:
                    _log.warning("key_store_not_taken_up", reason=str(error))
                else:
                    _log.info("key_store_taken_up", files=self._files)
            return self._context

    @property
    def expires(self) -> float:
        """The seconds since 1970 at which the own certificate ends; infinite without one."""
        return self._context.expires

    def _made(self) -> Context:
        own = self._settings
        return client_context(own) if isinstance(own, ClientSide) else server_context(own)

    def _state(self) -> list[tuple[int, int, int] | None]:
        return [_identity(path) for path in self._files]


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 - three numbers of one call
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def server_context(settings: ServerSide) -> Context:
    """Return the context with which the Thrift and the HTTP port shake hands. Raises: InvalidInputError."""
    if not settings.keystore:
        raise InvalidInputError(
            "hive.metastore.use.SSL is true, but hive.metastore.keystore.path is not set: TLS "
            "needs the server's private key and certificate."
        )
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    forbidden = {name.lower() for name in settings.forbidden_protocols}
    if {"tlsv1.2", "tlsv1.3"} <= forbidden:
        raise InvalidInputError("hive.ssl.protocol.blacklist forbids TLSv1.2 and TLSv1.3: nothing is left to speak.")
    if "tlsv1.2" in forbidden:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if "tlsv1.3" in forbidden:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if settings.ciphers:
        try:
            context.set_ciphers(settings.ciphers)
        except ssl.SSLError as error:
            raise InvalidInputError(
                f"metastore.ssl.ciphers = {settings.ciphers!r} names no cipher that OpenSSL has: "
                "`openssl ciphers` lists them."
            ) from error
    _load_own(context, settings.keystore, settings.keystore_password)
    if settings.client_certificates != "none":
        if not settings.truststore:
            raise InvalidInputError(
                f"metastore.ssl.client.certificates is {settings.client_certificates}, but "
                "hive.metastore.truststore.path is not set: any authority that the operating system trusts could name "
                "the users. List the certificates that sign the clients'."
            )
        context.verify_mode = ssl.CERT_REQUIRED if settings.client_certificates == "required" else ssl.CERT_OPTIONAL
        _load_trusted(context, settings, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(settings: ClientSide) -> Context:
    """Return the context with which our clients shake hands. Raises: InvalidInputError."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.verify_hostname
    _load_trusted(context, settings, ssl.Purpose.SERVER_AUTH)
    if settings.keystore:
        _load_own(context, settings.keystore, settings.keystore_password)
    return context


def _context(protocol: int) -> Context:
    context = Context(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _load_own(context: Context, paths: Sequence[str], password: str) -> None:
    from metastore.tls import keystore  # Importing cryptography takes 70 ms, spent only with TLS.

    store = keystore.read(paths, password)
    if store.key is None:
        raise InvalidInputError(f"The key store {','.join(paths)} has no private key.")
    with _in_memory(store.pem()) as path:
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise InvalidInputError(
                f"The key store {','.join(paths)} cannot be used: {error.reason or error}. Is its "
                "first certificate that of its key?"
            ) from error
    context.expires = store.certificates[0].not_valid_after_utc.timestamp()


def _load_trusted(context: ssl.SSLContext, settings: ServerSide | ClientSide, purpose: ssl.Purpose) -> None:
    if settings.truststore:
        from metastore.tls import keystore

        context.load_verify_locations(
            cadata=keystore.read(settings.truststore, settings.truststore_password).certificate_pem()
        )
    else:
        context.load_default_certs(purpose)


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Yield a path by which OpenSSL reads the content, which is never on a disk."""
    handle = os.memfd_create("key")
    try:
        os.write(handle, content)
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
