"""``metastore txn``: what an operator does with transactions."""

import sys

import click

from metastore.cli.connected import connected, uri_option
from metastore.cli.output import form_option, show_rows
from metastore.client.answers import domain_errors
from metastore.errors import NoSuchTxnError
from metastore.txns.rules import AbortCode


@click.group()
def txn() -> None:
    """Transactions: end them."""


@txn.command(short_help="Abort transactions.")
@click.argument("txn_ids", metavar="ID...", nargs=-1, required=True, type=click.IntRange(min=1))
@uri_option
@form_option
def abort(txn_ids: tuple[int, ...], uri: str | None, form: str) -> None:
    """Abort transactions: their locks are free at once, and nothing that they wrote will be seen.

    Exit code 1 if one of them could not be aborted: it is committed, or unknown.
    """
    answers = []
    with connected(uri) as client:
        for txn_id in txn_ids:
            try:
                with domain_errors():
                    client.abort_txn(client.types.AbortTxnRequest(txnid=txn_id, errorCode=int(AbortCode.QUERY_COMMAND)))
            except NoSuchTxnError as error:
                answers.append((txn_id, False, str(error)))
            else:
                answers.append((txn_id, True, "aborted"))
    show_rows(["txn_id", "aborted", "answer"], answers, form)
    sys.exit(0 if all(aborted for _, aborted, _ in answers) else 1)
