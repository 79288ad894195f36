"""The command ``metastore table check``: violations in a table's files."""

import sys
from pathlib import Path

import click

from metastore.cli.compactions import table_argument
from metastore.cli.connected import connected, uri_option
from metastore.cli.options import settings_of, settings_options
from metastore.cli.output import form_option, say, show_rows
from metastore.errors import MetaError

_COLUMNS = ("partition", "path", "violation", "detail", "moved_to")


@click.command(short_help="What is wrong with its files.")
@click.argument("name", metavar="DB.TABLE", type=table_argument)
@click.option(
    "--quarantine",
    "move",
    is_flag=True,
    help="Move what no reader needs (leftovers of writers that aborted "
    "or died, empty directories) to .quarantine/ beside it. Nothing is ever removed.",
)
@click.option(
    "--repair",
    "mend",
    is_flag=True,
    help="Move files that were written past the transactions there too: no "
    "reader shows them. Insert their rows from there.",
)
@click.option("--listing-only", is_flag=True, help="Look at names only, not into files.")
@uri_option
@settings_options
@form_option
def check(
    *,
    name: tuple[str, str],
    move: bool,
    mend: bool,
    listing_only: bool,
    uri: str | None,
    files: tuple[Path, ...],
    assignments: tuple[str, ...],
    form: str,
) -> None:
    """Walk a transactional table and name every violation of the ACID format.

    Nested or overlapping directories, files in the wrong bucket or order, footers without what Hive needs, side files,
    leftovers of aborted writers, rows that were written past the transactions. The exit code is 1 when something was
    found. Object stores are found by the settings, as a server finds them.
    """
    try:
        from metastore.spark.check import table_check
    except ImportError as error:
        raise MetaError(
            f"Looking into tables needs more packages ({error.name} is missing): "
            "pip install 'transaction-metastore[spark]'"
        ) from error
    from metastore.files import Files
    from metastore.ids import table_name

    table_files = Files(stores=settings_of(files, assignments).stores)
    with connected(uri) as client:
        report = table_check.check_table(client, table_files, table_name(*name), with_files=not listing_only)
    if move:
        report = table_check.quarantine(table_files, report)
    if mend:
        report = table_check.repair(table_files, report)
    if report or form != "table":
        rows = [
            (
                finding.place.partition or None,
                finding.finding.path,
                finding.finding.rule.value,
                finding.finding.text,
                finding.moved_to,
            )
            for finding in report
        ]
        columns = len(_COLUMNS) if move or mend else len(_COLUMNS) - 1
        show_rows(_COLUMNS[:columns], [row[:columns] for row in rows], form)
    else:
        say("Nothing is wrong.")
    sys.exit(1 if report else 0)
