"""The command ``metastore compaction``: requests for compactions, and their withdrawal."""

import sys
from collections.abc import Sequence
from functools import partial

import click

from metastore.cli.compaction_answers import explain, plan
from metastore.cli.connected import connected, uri_option
from metastore.cli.output import form_option, say, show_rows
from metastore.client.compactions import DONE, Progress, compaction_type, requested, wait_until_done
from metastore.client.shown import shown_compactions
from metastore.ids import DEFAULT_DATABASE, split_table_name


def table_argument(text: str) -> tuple[str, str]:
    """Parse ``DB.TABLE``, or the name of a table of the database ``default``."""
    try:
        db, table = split_table_name(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return db or DEFAULT_DATABASE, table


@click.group()
def compaction() -> None:
    """Plan, explain, request and abort compactions."""


compaction.add_command(plan)
compaction.add_command(explain)


@compaction.command()
@click.argument("table", metavar="DB.TABLE", type=table_argument)
@click.option("--partition", metavar="KEY=VALUE/...", help="The partition; without it, all that need it.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(["minor", "major", "rebalance"]),
    required=True,
    help="What to do: merge deltas (minor), make a new base (major), even out buckets (rebalance).",
)
@click.option("--buckets", type=click.IntRange(min=1), help="Into how many buckets a rebalance deals the rows.")
@click.option(
    "--order-by", metavar="COLUMN [DESC], ...", help="How a rebalance sorts the rows; without it as they were written."
)
@click.option("--pool", help="The pool of workers that shall do it.")
@click.option(
    "--property", "properties", metavar="KEY=VALUE", multiple=True, help="A property of the job; may be repeated."
)
@click.option(
    "--wait", is_flag=True, help="Wait until it is done, with its progress on standard error; exit code 1 if it fails."
)
@uri_option
@form_option
def request(
    table: tuple[str, str],
    partition: str | None,
    kind: str,
    buckets: int | None,
    order_by: str | None,
    pool: str | None,
    properties: Sequence[str],
    uri: str | None,
    form: str,
    *,
    wait: bool,
) -> None:
    """Ask for a compaction. Exit code 1 if the metastore sees no reason for it."""
    db, name = table
    with connected(uri) as client:
        types = client.types
        request = types.CompactionRequest(
            dbname=db,
            tablename=name,
            partitionname=partition,
            type=compaction_type(kind),
            poolName=pool,
            properties=_properties(properties) or None,
            numberOfBuckets=buckets,
            orderByClause=order_by,
        )
        answer = client.compact2(request)
        if not answer.accepted:
            show_rows(
                ["compaction_id", "accepted", "answer"], [(answer.id, False, answer.errormessage or answer.state)], form
            )
            sys.exit(1)
        if wait:
            became = wait_until_done(client, request, answer.id, Progress(partial(say, err=True)).note)
        else:
            became = requested(client, request, answer.id)
        rows = shown_compactions(client, became)
    show_rows(
        ["compaction_id", "partition", "state", "error"],
        [(row["compaction_id"], row["partition"], row["state"], row["error"]) for row in rows],
        form,
    )
    sys.exit(0 if not wait or all(row["state"] in DONE for row in rows) else 1)


@compaction.command(short_help="Take back requests.")
@click.argument("compaction_ids", metavar="ID...", nargs=-1, required=True, type=click.IntRange(min=1))
@uri_option
@form_option
def abort(compaction_ids: tuple[int, ...], uri: str | None, form: str) -> None:
    """Take back requests that no worker has begun. Exit code 1 if one of them could not be taken back."""
    with connected(uri) as client:
        answer = client.abort_Compactions(client.types.AbortCompactionRequest(compactionIds=list(compaction_ids)))
    outcomes = answer.abortedcompacts
    rows = [
        (compaction_id, outcomes[compaction_id].status == "Success", outcomes[compaction_id].message)
        for compaction_id in compaction_ids
        if compaction_id in outcomes
    ]
    show_rows(["compaction_id", "aborted", "answer"], rows, form)
    sys.exit(0 if len(rows) == len(compaction_ids) and all(aborted for _, aborted, _ in rows) else 1)


def _properties(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise click.BadParameter(f"{key!r} has no value: write KEY=VALUE", param_hint="--property")
    return {key: value for key, _, value in pairs}
