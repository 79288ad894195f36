"""The command ``metastore doctor``: what is wrong right now."""

import os
import sys
from contextlib import closing
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import click

from metastore.cli.output import form_option, say, show_value
from metastore.cli.places import DatabasePlace, with_place
from metastore.config import Settings
from metastore.roots import local_path

_PLANNER_S = 5
WARNINGS, WRONG = 1, 2


@click.command()
@with_place
@form_option
def doctor(*, place: DatabasePlace, form: str) -> None:
    """Say what is wrong right now, why it matters, and the command that ends it.

    It takes seconds and changes nothing. Give it the options of a server. Exit code 0: nothing is wrong; 1: there are
    warnings; 2: something is lost, refused or stands still (or the options are wrong); 3: PostgreSQL cannot be reached.
    """
    from metastore.db import migrate
    from metastore.db.engine import Database
    from metastore.doctor.rules import Severity
    from metastore.doctor.service import examine

    place.require_made()
    settings = place.settings
    with place.database(beside_others=True) as url:
        versions = migrate.versions(url)
        with closing(Database(url, pool_size=1)) as database:
            found = examine(
                database, settings, (versions.database, versions.release), _unwritable(settings), _planner(settings)
            )
    if form == "table":
        lines = [f"{each.severity}: {each.what}\n  why:  {each.why}\n  then: {each.remedy}" for each in found]
        say("\n".join(lines) if found else "Nothing is wrong.")
    else:
        show_value([each._asdict() for each in found], form)
    if found:
        sys.exit(WRONG if any(each.severity is Severity.WRONG for each in found) else WARNINGS)


def _unwritable(settings: Settings) -> dict[str, str]:
    """Return the local roots that this user cannot write, with the reason. Those of object stores are not tried."""
    catalog = settings.catalog
    found = {}
    for root in filter(None, (catalog.warehouse, catalog.external_warehouse, *catalog.more_roots)):
        path = local_path(root)
        if path is None:
            continue
        there = next((each for each in (path, *path.parents) if each.exists()), Path("/"))
        if not os.access(there, os.W_OK | os.X_OK):
            found[root] = f"{there} is not writable for user {os.geteuid()}"
    return found


def _planner(settings: Settings) -> str:
    """Return why the planner that clients are told of does not answer; "" if it does, or if none is named."""
    uri = settings.planner.uri
    if not uri or urlsplit(uri).scheme != "http":  # With TLS the planner wants a certificate that a probe may lack.
        return ""
    try:
        build_opener(ProxyHandler({})).open(f"{uri.rstrip('/')}/livez", timeout=_PLANNER_S).close()
    except (URLError, OSError, ValueError) as error:
        return f"{uri}: {getattr(error, 'reason', error)}"
    return ""
