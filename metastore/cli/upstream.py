"""``metastore upstream``: a cut-over from a Hive metastore's transactions to this service's, and back."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import click

from metastore.cli.output import form_option, say, show_fields
from metastore.cli.places import DatabasePlace, with_place
from metastore.db import migrate
from metastore.db.engine import Database
from metastore.txns.adoption.service import AdoptionService


@click.group()
def upstream() -> None:
    """In front of a Hive metastore that keeps the catalog: take its transactions over, or hand them back."""


@upstream.command(short_help="Go on where a Hive metastore's transactions stopped.")
@click.option(
    "--hive-database-url",
    metavar="URL",
    required=True,
    help="PostgreSQL of the Hive metastore 3.x or 4.x; it is only read.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be taken over, and change nothing.")
@with_place
@form_option
def adopt(*, hive_database_url: str, dry_run: bool, place: DatabasePlace, form: str) -> None:
    """Take over the marks, the open and aborted transactions and the locks of a Hive metastore.

    Nothing of it may begin a transaction from now on. Refused where an id would go backwards.
    """
    with _service(place) as service:
        show_fields(service.adopt(hive_database_url, dry_run=dry_run), form)


@upstream.command(short_help="Print the SQL with which a Hive metastore goes on from here.")
@with_place
def release(*, place: DatabasePlace) -> None:
    """Print the SQL with which the transactions of a Hive metastore 4.x go on above those of this service.

    Stop this service's writers first: refused while a transaction is open.
    """
    with _service(place) as service:
        say(service.release(), nl=False)


@contextmanager
def _service(place: DatabasePlace) -> Iterator[AdoptionService]:
    with place.database() as url:
        migrate.upgrade(url)
        with closing(Database(url, pool_size=1)) as database:
            yield AdoptionService(database)
