"""The ``metastore`` command: its nouns and its exit codes.

Rule: exit codes are 0 done, 1 the answer is "no" or a finding, 2 wrong use or bad input, 3 not reachable; errors are
sentences on stderr, never stack traces. A command's module is loaded only when the command is used.
"""

import ast
import importlib
import sys
from pathlib import Path

import click

from metastore import __version__
from metastore.cli.output import say
from metastore.errors import InvalidInputError, MetastoreError, UnavailableError

COMMANDS = {
    "serve": "metastore.cli.serve:serve",
    "worker": "metastore.cli.worker:worker",
    "planner": "metastore.cli.planner:planner",
    "health": "metastore.cli.health:health",
    "doctor": "metastore.cli.doctor:doctor",
    "config": "metastore.cli.config:config",
    "db": "metastore.cli.db:db",
    "show": "metastore.cli.show:show",
    "txn": "metastore.cli.txns:txn",
    "lock": "metastore.cli.locks:lock",
    "compaction": "metastore.cli.compactions:compaction",
    "table": "metastore.cli.tables:table",
    "spark": "metastore.cli.spark:spark",
    "upstream": "metastore.cli.upstream:upstream",
}
FAILED, WRONG_USE, NOT_REACHABLE = 1, 2, 3
SERVER_MODULES = {"alembic", "apscheduler", "croniter", "greenlet", "prometheus_client", "psycopg2", "sqlalchemy"}
"""The modules of the extra ``server``, by the names of imports; the embedded PostgreSQL has a message of its own."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, so that help and start are quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first line of each command's docstring."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(*place.split(":"))) for name, place in COMMANDS.items()])


def _summary(module: str, command: str) -> str:
    """Return the first line of a command's docstring, from the source: an import would take a tenth of a second."""
    source = Path(__file__).with_name(f"{module.rpartition('.')[2]}.py").read_text(encoding="utf-8")
    [text] = [
        ast.get_docstring(node) or ""
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == command
    ]
    return text.partition("\n")[0]


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="metastore")
def cli() -> None:
    """Run and operate a Hive-compatible transaction metastore on PostgreSQL."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    try:
        cli.main(arguments, prog_name="metastore", standalone_mode=False)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.Abort:
        sys.exit(FAILED)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG_USE)
    except MetastoreError as error:
        say(f"metastore: {error}", err=True)
        sys.exit(exit_code(error))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in SERVER_MODULES:
            raise
        say(
            f"metastore: The packages of the server are not installed ({error.name} is missing): "
            "pip install 'transaction-metastore[server]'",
            err=True,
        )
        sys.exit(WRONG_USE)
    except OSError as error:  # The error concerns a file or directory of an option.
        say(f"metastore: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", err=True)
        sys.exit(FAILED)


def exit_code(error: MetastoreError) -> int:
    """Return the exit code that tells scripts the kind of error."""
    if isinstance(error, InvalidInputError):
        return WRONG_USE
    # The client's errors are found by name: importing the client would cost every command a tenth of a second.
    ancestors = {ancestor.__name__ for ancestor in type(error).__mro__}
    if isinstance(error, UnavailableError) or "MetastoreUnreachableError" in ancestors:
        return NOT_REACHABLE
    return FAILED
