"""The command ``metastore config``: settings, their values, and their sources."""

from pathlib import Path

import click

from metastore.cli.options import settings_of, settings_options
from metastore.cli.output import form_option, say, show_rows
from metastore.errors import InvalidInputError


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


@config.command("hash-password")
@click.argument("user")
@click.option("--password", help="The password; asked for if it is not given.")
def hash_password(user: str, password: str | None) -> None:
    """Print the line of a user for metastore.authentication.users.file: the password itself is not in it."""
    from metastore.thrift_server.auth.passwords import hashed

    if not user or ":" in user:
        raise InvalidInputError(f"{user!r} cannot be a user's name: it must not be empty, and have no colon.")
    if password is None:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    say(f"{user}:{hashed(password)}")
