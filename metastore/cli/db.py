"""``metastore db``: the schema of the database; backups are in `metastore.cli.backups`."""

import sys

import click

from metastore.cli.backups import backup, move, restore, restored
from metastore.cli.output import form_option, show_fields
from metastore.cli.places import DatabasePlace, with_place
from metastore.db import migrate


@click.group()
def db() -> None:
    """The database: its schema's version, backup and restore."""


for _command in (backup, restore, restored, move):
    db.add_command(_command)


@db.command()
@with_place
@form_option
def version(*, place: DatabasePlace, form: str) -> None:
    """Compare the database's schema version with this release's; exit code 1 when they differ. Changes nothing."""
    if not place.is_made:
        show_fields({"database": "none", "release": migrate.release_version()}, form)
        sys.exit(1)
    with place.database() as url:
        versions = migrate.versions(url)
    show_fields({"database": versions.database or "empty", "release": versions.release}, form)
    sys.exit(0 if versions.database == versions.release else 1)


@db.command()
@with_place
@form_option
def upgrade(*, place: DatabasePlace, form: str) -> None:
    """Bring the schema to this release's version. Servers do the same when they start."""
    with place.database() as url:
        before = migrate.upgrade(url)
    show_fields({"before": before.database or "empty", "now": max(before.database, before.release)}, form)
