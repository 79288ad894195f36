"""Places of databases for commands: an outside PostgreSQL, or that of a data directory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

from metastore.cli.options import place_options, settings_of, settings_options
from metastore.config import Settings
from metastore.db.embedded import DataDirectoryInUseError, EmbeddedPostgres
from metastore.errors import MetastoreError


class PlaceError(MetastoreError):
    """Error: there is no database to work on, or a database in the place of another."""


@dataclass(frozen=True)
class DatabasePlace:
    """The database that a command's options name; a server with the same options uses the same database."""

    data_dir: Path
    database_url: str | None
    files: tuple[Path, ...]
    assignments: tuple[str, ...]

    @cached_property
    def settings(self) -> Settings:
        """The settings in force.  Raises: InvalidInputError."""
        return settings_of(self.files, self.assignments, metastore__database__url=self.database_url)

    @property
    def is_made(self) -> bool:
        """True if there is a PostgreSQL; outside there always is."""
        return bool(self.settings.database.url) or EmbeddedPostgres(self.data_dir).is_made

    def require_made(self) -> None:
        """Raise PlaceError if there is no PostgreSQL."""
        if not self.is_made:
            raise PlaceError(f"There is no PostgreSQL in {self.data_dir}. Say --data-dir or --database-url.")

    def elsewhere(self, url: str | None, data_dir: Path | None) -> "DatabasePlace":
        """Return the same settings with another database."""
        return replace(self, database_url=url or "", data_dir=data_dir or self.data_dir)

    @contextmanager
    def database(self, *, beside_others: bool = False) -> Iterator[str]:
        """Yield the URL of the database, which answers within the block.

        ``beside_others``: allow a metastore that works on the data directory. Raises: DataDirectoryInUseError without
        it.
        """
        if self.settings.database.url:
            yield self.settings.database.full_url
            return
        embedded = EmbeddedPostgres(self.data_dir)
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


def with_place(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--data-dir``, ``--database-url``, ``--config`` and ``--set``, which it gets as its ``place``."""

    @wraps(command)
    def run(
        *, data_dir: Path, database_url: str | None, files: tuple[Path, ...], assignments: tuple[str, ...], **rest: Any
    ) -> None:
        command(place=DatabasePlace(data_dir, database_url, files, assignments), **rest)

    return place_options(settings_options(run))
