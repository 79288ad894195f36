"""Where the catalog is, if it is not here."""

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
        values.WORDS, "metastore.upstream.uris", "",
        "Hive metastore that has the catalog, thrift://HOST:PORT, several with commas: all calls but those about "
        "transactions, write ids, locks and compaction go there. It must speak this server's protocol and framing. "
        "Empty: the catalog is here. Hive: no such key.")
    connect_timeout: timedelta = key(
        duration("s", _SECOND), "metastore.upstream.connect.timeout", "5s",
        "How long one address of the upstream may take to let us in. Hive: no such key.")
    timeout: timedelta = key(
        duration("s", _SECOND), "metastore.upstream.timeout", "600s",
        "How long the upstream may be silent while a client waits for its answer. Hive: no such key.")
    max_reply_size: int = key(
        values.SIZE, "metastore.upstream.max.reply.size", "2gb",
        "Largest answer of the upstream that is passed on; a larger one ends the connection. Hive: no such key.")

    def __bool__(self) -> bool:
        """Whether the catalog is elsewhere."""
        return bool(self.uris)
