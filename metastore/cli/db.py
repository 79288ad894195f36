"""``metastore db``: the schema of the database; backups are in `metastore.cli.backups`."""

import sys
from pathlib import Path

import click

from metastore.cli.backups import backup, move, restore, restored
from metastore.cli.options import place_options, settings_of, settings_options
from metastore.cli.output import form_option, show_fields
from metastore.cli.places import database_of, is_made
from metastore.db import migrate


@click.group()
def db() -> None:
    """The database: its schema's version, backup and restore."""


for _command in (backup, restore, restored, move):
    db.add_command(_command)


@db.command()
@place_options
@settings_options
@form_option
def version(
    data_dir: Path, database_url: str | None, files: tuple[Path, ...], assignments: tuple[str, ...], form: str
) -> None:
    """Compare the database's schema version with this release's; exit code 1 when they differ. Changes nothing."""
    settings = settings_of(files, assignments, metastore__database__url=database_url)
    if not is_made(data_dir, settings):
        show_fields({"database": "none", "release": migrate.release_version()}, form)
        sys.exit(1)
    with database_of(data_dir, settings) as url:
        versions = migrate.versions(url)
    show_fields({"database": versions.database or "empty", "release": versions.release}, form)
    sys.exit(0 if versions.database == versions.release else 1)


@db.command()
@place_options
@settings_options
@form_option
def upgrade(
    data_dir: Path, database_url: str | None, files: tuple[Path, ...], assignments: tuple[str, ...], form: str
) -> None:
    """Bring the schema to this release's version. Servers do the same when they start."""
    settings = settings_of(files, assignments, metastore__database__url=database_url)
    with database_of(data_dir, settings) as url:
        before = migrate.upgrade(url)
    show_fields({"before": before.database or "empty", "now": max(before.database, before.release)}, form)
