"""Security settings: TLS by Hive's own keys, and the security keys that are refused.

Rule: a security setting is honoured or stops the start; none is accepted and ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address

from metastore.config import values
from metastore.config.identity import IdentitySettings
from metastore.config.keys import inert, key
from metastore.config.values import choice, duration
from metastore.errors import InvalidInputError


@dataclass(frozen=True)
class TlsSettings:
    """TLS of the Thrift and the HTTP port."""

    use_ssl: bool = key(values.FLAG, "hive.metastore.use.SSL", "false", "TLS on the Thrift and the HTTP port.")
    keystore: tuple[str, ...] = key(
        values.WORDS,
        "hive.metastore.keystore.path",
        "",
        "The server's private key and certificates: one PEM, PKCS12 or JKS file, or PEM files separated by commas "
        "(tls.crt,tls.key). Files that change are taken up without a restart.",
    )
    keystore_password: str = key(
        values.TEXT, "hive.metastore.keystore.password", "", "Password of the key store.", secret=True
    )
    keystore_type: str = inert(
        values.TEXT, "hive.metastore.keystore.type", "", "The file itself tells whether it is PEM, PKCS12 or JKS."
    )
    truststore: tuple[str, ...] = key(
        values.WORDS,
        "hive.metastore.truststore.path",
        "",
        "Certificates that sign the clients' certificates, and for compaction jobs the server's own; empty: those that "
        "the operating system trusts.",
    )
    truststore_password: str = key(
        values.TEXT, "hive.metastore.truststore.password", "", "Password of the trust store.", secret=True
    )
    truststore_type: str = inert(
        values.TEXT, "hive.metastore.truststore.type", "", "The file itself tells whether it is PEM, PKCS12 or JKS."
    )
    forbidden_protocols: tuple[str, ...] = key(
        values.WORDS,
        "hive.ssl.protocol.blacklist",
        "SSLv2,SSLv3",
        "Protocols that are not spoken; those before TLSv1.2 never are.",
        "metastore.ssl.protocol.blacklist",
    )
    ciphers: str = key(
        values.TEXT,
        "metastore.ssl.ciphers",
        "",
        "Ciphers for TLSv1.2 in OpenSSL's notation; empty: OpenSSL's choice. Hive: no such key.",
    )
    client_certificates: str = key(
        choice("none", "wanted", "required"),
        "metastore.ssl.client.certificates",
        "none",
        "Whether clients of the Thrift port must show a certificate; the user of one that does is the certificate's. "
        "Hive: no such key.",
    )
    client_user: str = key(
        choice("subject", "san"),
        "metastore.ssl.client.user",
        "subject",
        "Where a client certificate names the user: the subject's common name, or the first alternative name. "
        "Hive: no such key.",
    )
    operators: tuple[str, ...] = key(
        values.WORDS,
        "hive.users.in.admin.role",
        "",
        "Users who may do what nobody can undo (set the next ids, replay a replication) and work as remote compaction "
        "Workers, by the names in their certificates. The server's own user on its own machine always may.",
    )
    client_keystore: tuple[str, ...] = key(
        values.WORDS,
        "metastore.client.keystore.path",
        "",
        "Key and certificate that compaction jobs show to the server; empty: the server's own. Hive: no such key.",
    )
    client_keystore_password: str = key(
        values.TEXT, "metastore.client.keystore.password", "", "Password of that key store.", secret=True
    )
    http: bool = key(
        values.FLAG, "metastore.http.use.SSL", "true", "Where TLS is on, the HTTP port has it too. Hive: no such key."
    )
    handshake_timeout: timedelta = key(
        duration("s", timedelta(seconds=1)),
        "metastore.ssl.handshake.timeout",
        "10s",
        "A client that has not finished its handshake by then is disconnected. Hive: no such key.",
    )
    http_hosts: tuple[str, ...] = key(
        values.WORDS,
        "metastore.http.hosts",
        "*.svc, *.cluster.local, *.internal, *.local",
        "Names, or patterns of names, by which the HTTP port and the planner may be called in the clear, besides "
        "addresses, names without a dot and this machine's own: by any other a page of the web could call them. "
        "Hive: no such key.",
    )
    allow_insecure: bool = key(
        values.FLAG,
        "metastore.server.allow.insecure",
        "false",
        "Listen on other addresses than loopback although not every client must prove who it is "
        "(hive.metastore.use.SSL with metastore.ssl.client.certificates=required). Hive: always does.",
    )


_PREFIXES = ("hive.metastore.", "metastore.", "hive.")
_OFF = frozenset(("", "false"))
_REFUSED: Mapping[str, tuple[frozenset[str], str]] = {
    "thrift.transport.mode": (frozenset(("", "binary")), "only the binary transport is served"),
    "server.thrift.transport.mode": (frozenset(("", "binary")), "only the binary transport is served"),
    "dbaccess.ssl.use.ssl": (_OFF, "write sslmode=verify-full and sslrootcert=FILE into the database URL instead"),
}
"""Security keys of Hive that cannot be honoured, without prefix: the values that ask for nothing; what to do."""


def require_honoured(name: str, text: str, source: str) -> None:
    """Raise InvalidInputError if the key asks for a protection that this service does not have."""
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
    if prefix is None:
        return
    harmless, remedy = _REFUSED.get(name.removeprefix(prefix).lower(), (None, ""))
    if harmless is not None and text.strip().lower() not in harmless:
        raise InvalidInputError(f"{name} = {text!r} ({source}) cannot be honoured, and is not ignored: {remedy}.")


def exposure(host: str, tls: TlsSettings, identity: IdentitySettings) -> str:
    """Return a sentence about the rights of strangers on the network; "" if they have none.

    Raises: InvalidInputError if no setting allows these rights.
    """
    if _is_loopback(host) or identity.requires_proof or (tls.use_ssl and tls.client_certificates == "required"):
        return ""
    lacks = "clients need not prove who they are"
    if not tls.use_ssl:
        lacks = f"nothing is encrypted, and {lacks}"
    if not tls.allow_insecure:
        raise InvalidInputError(
            f"Listening on {host} would open this metastore to the network: {lacks}. Set hive.metastore.use.SSL with "
            "metastore.ssl.client.certificates=required, or hive.metastore.sasl.enabled (Kerberos), or "
            "metastore.server.allow.insecure=true if the network itself keeps strangers out, or "
            "listen on 127.0.0.1."
        )
    return f"Open to whoever reaches {host}: {lacks} (metastore.server.allow.insecure)."


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
