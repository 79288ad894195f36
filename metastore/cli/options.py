"""Options that select the settings; `serve`, `config` and `db` share them."""

import os
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import click

from metastore.config import Settings, build, hive_image, sources
from metastore.config.settings import SettingsSource
from metastore.tls import credential_files

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_DATA_DIR = ".data"
READY_FILE_VARIABLE = "METASTORE_READY_FILE"


def settings_options(command: Command) -> Command:
    """Add ``--config`` and ``--set`` to a command."""
    command = click.option(
        "--set",
        "assignments",
        metavar="KEY=VALUE",
        multiple=True,
        help="A setting; may be repeated. `metastore config show` lists the keys.",
    )(command)
    return click.option(
        "--config",
        "files",
        metavar="FILE",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Settings in YAML or a hive-site.xml, or a directory of such files (Hive's own); may be repeated.",
    )(command)


def place_options(command: Command) -> Command:
    """Add ``--data-dir`` and ``--database-url`` to a command."""
    command = click.option("--database-url", metavar="URL", help="PostgreSQL to use instead of the embedded one.")(
        command
    )
    return click.option(
        "--data-dir",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        default=DEFAULT_DATA_DIR,
        show_default=True,
        help="Where the embedded PostgreSQL and the warehouse are.",
    )(command)


def ready_file_option(command: Command) -> Command:
    """Add ``--ready-file`` to a command."""
    return click.option(
        "--ready-file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar=READY_FILE_VARIABLE,
        show_envvar=True,
        help="JSON with the addresses, written once everything answers, removed at the end.",
    )(command)


def settings_of(files: tuple[Path, ...], assignments: tuple[str, ...], **options: str | int | None) -> Settings:
    """Return the settings in force.

    ``options``: values of options that stand for keys, by key with ``__`` for each dot.
    """
    values = {name.replace("__", "."): str(value) for name, value in options.items() if value is not None}
    given = chain.from_iterable(map(sources.files, (*hive_image.files(os.environ), *files)))
    sites = list(sources.expanded([*given, *hive_image.sources(os.environ)], os.environ))
    assigned = sources.command_line(assignments)
    return build(
        [
            *hive_image.defaults(os.environ),
            *sites,
            *credential_files.sources([*sites, assigned], os.environ),
            sources.environment(os.environ),
            assigned,
            SettingsSource("command line", values),
        ]
    )
