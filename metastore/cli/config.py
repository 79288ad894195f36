"""The command ``metastore config``: settings, their values, and their sources."""

from pathlib import Path

import click

from metastore.cli.options import settings_of, settings_options
from metastore.cli.output import form_option, show_rows


@click.group()
def config() -> None:
    """Show the settings in force, and their sources."""


@config.command()
@settings_options
@form_option
@click.option("--changed", is_flag=True, help="Only settings that differ from the default.")
def show(files: tuple[Path, ...], assignments: tuple[str, ...], form: str, changed: bool) -> None:
    """List every key with its value and the source that it comes from; secrets are masked.

    Keys of Hive that change nothing here say so, with the reason.

    Later sources win: defaults, --config files in their order, the environment (METASTORE_CONF_HIVE_TXN_TIMEOUT=300s
    stands for hive.txn.timeout), --set.
    """
    settings = settings_of(files, assignments)
    rows = [row for row in settings.shown() if not changed or row.source != "default"]
    show_rows(["key", "value", "source", "effect"], rows, form)
