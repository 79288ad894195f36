"""Settings of the access to PostgreSQL."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from metastore.config import values
from metastore.config.keys import key
from metastore.config.values import duration, integer

_S = duration("s")
_MS = duration("ms")
_POSITIVE = integer(1)


# A row of the table of keys stays together.
# fmt: off


@dataclass(frozen=True)
class DatabaseSettings:
    """The way to PostgreSQL."""

    url: str = key(
        values.DATABASE_URL, "metastore.database.url", "",
        "PostgreSQL to use; empty: the embedded one below the data directory.",
        "javax.jdo.option.ConnectionURL", secret=True)
    user: str = key(
        values.TEXT, "metastore.database.user", "", "User name, where the URL has none.",
        "javax.jdo.option.ConnectionUserName")
    password: str = key(
        values.TEXT, "metastore.database.password", "", "Password, where the URL has none.",
        "javax.jdo.option.ConnectionPassword", secret=True)
    archive: str = key(
        values.TEXT, "metastore.database.embedded.archive", "",
        "Directory in which the embedded PostgreSQL keeps its WAL, to go back to a point in time; empty: not kept.")
    pool_size: int = key(
        _POSITIVE, "metastore.database.pool.size", "20",
        "Connections of threads. Coalesced calls take up to two more for each method. Hive: 10.",
        "datanucleus.connectionPool.maxPoolSize")
    pool_timeout: timedelta = key(
        _MS, "metastore.database.pool.timeout", "30000ms",
        "Longest wait for a free connection before a call is refused.")
    statement_timeout: timedelta = key(
        _S, "metastore.database.statement.timeout", "60s", "Longest run of one statement.")
    lock_timeout: timedelta = key(_S, "metastore.database.lock.timeout", "20s",
                                  "Longest wait for a row or advisory lock.")

    @property
    def archive_dir(self) -> Path | None:
        """The directory of archived WAL, if it is archived."""
        return Path(self.archive) if self.archive else None

    @property
    def full_url(self) -> str:
        """The URL; if it names no user, user and password from the settings of their own are added."""
        scheme, _, rest = self.url.partition("://")
        authority, slash, path = rest.partition("/")
        if "@" in authority or not self.user:
            return self.url
        password = f":{quote(self.password, safe='')}" if self.password else ""
        return f"{scheme}://{quote(self.user, safe='')}{password}@{authority}{slash}{path}"
