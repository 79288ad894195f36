"""The commands ``metastore db backup``, ``restore``, ``restored`` and ``move``, and the recovery of a restore."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from metastore.cli.output import form_option, say, show_fields
from metastore.cli.places import DatabasePlace, PlaceError, with_place
from metastore.db.embedded import EmbeddedPostgres
from metastore.redaction import redacted

_LOOK = click.option(
    "--directories/--no-directories",
    default=True,
    show_default=True,
    help="Look into the tables' directories, and let what was written after the backup be void. Without it only where "
    "the directories are of the same instant as the backup.",
)

_HIDDEN = (
    "void: written after the backup, or by a transaction that was open then. The Cleaner removes it: copy it "
    "away before you start a server if its rows are wanted"
)
_KEPT = "kept: it holds rows of before and of after the backup, and what it was made of is gone"
_STRANGE = "of no table: move it away before a table of that name is made"


@click.command(short_help="Write the database to a file.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--base",
    is_flag=True,
    help="A directory with a copy of the whole embedded PostgreSQL instead, from "
    "which restore --to-time goes on with archived WAL (metastore.database.embedded.archive).",
)
@with_place
@form_option
def backup(file: Path, *, base: bool, place: DatabasePlace, form: str) -> None:
    """Write the database to FILE, as of one instant, while servers run or not. The tables' files are not in it.

    FILE can be restored into an embedded or an outside PostgreSQL, of the same or of a newer version.
    """
    from metastore.db import backup as backups

    if base and place.settings.database.url:
        raise click.UsageError(
            "--base is for the embedded PostgreSQL. Of an outside one make a base backup with its "
            "own means, pg_basebackup for example."
        )
    place.require_made()
    with place.database(beside_others=True) as url:
        (backups.write_base if base else backups.write)(url, file)
    size = sum(path.stat().st_size for path in ([file] if file.is_file() else file.rglob("*")) if path.is_file())
    show_fields({"backup": str(file), "bytes": size, "sha256": backups.digest(file)}, form)


@click.command(short_help="Let the database hold what a backup holds.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, exists=True))
@click.option("--replace", is_flag=True, help="Drop the metastore that the database holds.")
@click.option(
    "--to-time",
    metavar="TIME",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"]),
    help="With a base backup: the instant to go to, as 2026-11-23T01:30:00Z. Default: the end of what is archived.",
)
@click.option(
    "--sha256",
    metavar="DIGEST",
    help="What `metastore db backup` printed of the backup; another one is refused before it is looked into.",
)
@_LOOK
@with_place
@form_option
def restore(
    file: Path,
    *,
    replace: bool,
    to_time: datetime | None,
    sha256: str | None,
    directories: bool,
    place: DatabasePlace,
    form: str,
) -> None:
    """Let the database hold what a backup holds, all of it or nothing. Stop servers, workers and writers before.

    Ids go on far above those of the backup, what was open is aborted, and what directories hold of the time after the
    backup is void: no reader shows it. The answer names those directories.
    """
    from metastore.db import backup as backups

    recovery = _Recovery(place, directories=directories)
    if sha256 is not None:
        backups.require_digest(file, sha256)
    if file.is_dir():
        _go_back(file, to_time, place, replace=replace, last=lambda url: backups.change(url, recovery.run))
    else:
        if to_time:
            raise click.UsageError("--to-time needs a base backup (metastore db backup --base) and archived WAL.")
        with place.database() as url:
            backups.restore(url, file, replace=replace, last=recovery.run)
    recovery.show(form)


def _go_back(
    base: Path, to_time: datetime | None, place: DatabasePlace, *, replace: bool, last: Callable[[str], None]
) -> None:
    archive = place.settings.database.archive_dir
    if place.settings.database.url or archive is None:
        raise click.UsageError(
            "A base backup is restored into an embedded PostgreSQL (--data-dir), with the directory "
            "of its WAL: --set metastore.database.embedded.archive=DIR."
        )
    embedded = EmbeddedPostgres(place.data_dir)
    if embedded.is_made and not replace:
        raise PlaceError(
            f"There is a PostgreSQL in {place.data_dir} already. Choose another --data-dir, or say --replace "
            "to give it up."
        )
    instant = to_time.isoformat() if to_time else None
    embedded.go_back(base.resolve(), archive.resolve(), instant, last)


@click.command(short_help="After a restore by other means: let ids go on above all that were given out.")
@click.option(
    "--nothing-lost",
    is_flag=True,
    help="Only record that this is the database to work on: it has "
    "everything that was acknowledged, as after pg_upgrade, or on a standby that had received all.",
)
@_LOOK
@with_place
@form_option
def restored(*, nothing_lost: bool, directories: bool, place: DatabasePlace, form: str) -> None:
    """Repair a database that PostgreSQL's own tools brought back to an earlier time, before a server starts on it.

    For point-in-time recovery, copies of volumes, and standbys that had not received everything. Does what restore
    does after the rows are there; it may be repeated.
    """
    from metastore.db import backup as backups

    recovery = _Recovery(place, directories=directories)
    place.require_made()
    with place.database() as url:
        backups.change(url, (lambda _pg: None) if nothing_lost else recovery.run)
    if nothing_lost:
        show_fields({"recorded": "this is the database to work on"}, form)
    else:
        recovery.show(form)


@click.command(short_help="Move the database to another PostgreSQL.")
@click.option("--to", metavar="URL", help="The PostgreSQL to move to.")
@click.option(
    "--to-data-dir",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the embedded PostgreSQL is to be that it moves to.",
)
@click.option("--replace", is_flag=True, help="Drop the metastore that is there.")
@with_place
@form_option
def move(to: str | None, to_data_dir: Path | None, *, replace: bool, place: DatabasePlace, form: str) -> None:
    """Move the database from the embedded PostgreSQL to another server, or from any to any other. Stop servers before.

    The rows are counted before anything is given up; afterwards no server starts on the database that was left. The
    tables' files stay where they are.
    """
    from metastore.db import backup as backups

    if (to is None) == (to_data_dir is None):
        raise click.UsageError("Say where to move it: either --to URL or --to-data-dir DIR.")
    place.require_made()
    with place.database() as source, place.elsewhere(to, to_data_dir).database() as target:
        counted = backups.move(source, target, replace=replace)
    option = f"--database-url {redacted(to)}" if to else f"--data-dir {to_data_dir}"
    show_fields(
        {"tables": len(counted), "rows": sum(counted.values()), "next": f"start servers and workers with {option}"},
        form,
    )


class _Recovery:
    """The recovery after a restore, and its report."""

    def __init__(self, place: DatabasePlace, *, directories: bool) -> None:
        self._place, self._directories = place, directories
        self._report: Any = None

    def run(self, pg: Any) -> None:
        from metastore.files import Files
        from metastore.recovery import service

        files = Files(stores=self._place.settings.stores) if self._directories else None
        self._report = service.recover(pg, files)

    def show(self, form: str) -> None:
        report = self._report
        if form != "table":
            show_fields(vars(report), form)
            return
        show_fields({"aborted": report.aborted, "next_txn_id": report.next_txn_id}, form)
        for listed, text in ((report.hidden, _HIDDEN), (report.kept, _KEPT), (report.strange, _STRANGE)):
            for table, partition, path in listed:
                say(f"{table}{f' ({partition})' if partition else ''}: {path} is {text}")
