"""Where the database is that a command works on: an outside PostgreSQL, or that of a data directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metastore.config import Settings
from metastore.db.embedded import DataDirectoryInUseError, EmbeddedPostgres


def is_made(data_dir: Path, settings: Settings) -> bool:
    """Whether there is a PostgreSQL; outside there always is."""
    return bool(settings.database.url) or EmbeddedPostgres(data_dir).is_made


@contextmanager
def database_of(data_dir: Path, settings: Settings, *, beside_others: bool = False) -> Iterator[str]:
    """URL of the database that a server with the same options would use.

    ``beside_others``: also while a metastore works on the data directory. Raises: DataDirectoryInUseError without it.
    """
    if settings.database.url:
        yield settings.database.full_url
        return
    embedded = EmbeddedPostgres(data_dir)
    try:
        embedded.start()
    except DataDirectoryInUseError:
        if not beside_others:
            raise
        yield embedded.url
        return
    try:
        yield embedded.url
    finally:
        embedded.stop()
