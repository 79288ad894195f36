"""Settings of the upstream that has the catalog, if it is not here."""

from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import key
from metastore.config.values import duration

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class UpstreamSettings:
    """The Hive metastore that has the catalog."""

    uris: tuple[str, ...] = key(
        values.WORDS,
        "metastore.upstream.uris",
        "",
        "Hive metastore that has the catalog, thrift://HOST:PORT, several with commas: all calls but those about "
        "transactions, write ids, locks and compaction go there. It must speak this server's protocol and framing. "
        "Empty: the catalog is here. Hive: no such key.",
    )
    connect_timeout: timedelta = key(
        duration("s", _SECOND),
        "metastore.upstream.connect.timeout",
        "5s",
        "How long one address of the upstream may take to let us in. Hive: no such key.",
    )
    timeout: timedelta = key(
        duration("s", _SECOND),
        "metastore.upstream.timeout",
        "600s",
        "How long the upstream may be silent while a client waits for its answer. Hive: no such key.",
    )
    max_reply_size: int = key(
        values.SIZE,
        "metastore.upstream.max.reply.size",
        "2gb",
        "Largest answer of the upstream that is passed on; a larger one ends the connection. Hive: no such key.",
    )

    use_ssl: bool = key(
        values.FLAG,
        "metastore.upstream.use.SSL",
        "false",
        "The upstream speaks TLS (its hive.metastore.use.SSL). Hive: no such key.",
    )
    truststore: tuple[str, ...] = key(
        values.WORDS,
        "metastore.upstream.truststore.path",
        "",
        "Certificates that sign the upstream's: PEM, PKCS12 or JKS; empty: those that the operating system trusts. "
        "Files that change are taken up by the next connection. Hive: no such key.",
    )
    truststore_password: str = key(
        values.TEXT, "metastore.upstream.truststore.password", "", "Password of that trust store.", secret=True
    )
    keystore: tuple[str, ...] = key(
        values.WORDS,
        "metastore.upstream.keystore.path",
        "",
        "Key and certificate that this service shows to the upstream, if it wants any. Hive: no such key.",
    )
    keystore_password: str = key(
        values.TEXT, "metastore.upstream.keystore.password", "", "Password of that key store.", secret=True
    )
    verify_hostname: bool = key(
        values.FLAG,
        "metastore.upstream.ssl.verify.hostname",
        "true",
        "The upstream's certificate must name the host of metastore.upstream.uris. Hive: no such key.",
    )

    def __bool__(self) -> bool:
        """Return True if the catalog is elsewhere."""
        return bool(self.uris)
