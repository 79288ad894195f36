"""``metastore lock``: what an operator does with locks."""

import sys

import click

from metastore.cli.connected import connected, uri_option
from metastore.cli.output import form_option, show_rows
from metastore.client import MetastoreClient
from metastore.client.answers import domain_errors
from metastore.errors import TxnOpenError


def lock_number(text: str) -> int:
    """Read a lock id; ``7.1``, as SHOW LOCKS prints components, means lock 7."""
    number, _, component = text.partition(".")
    if not number.isdecimal() or not (component or "1").isdecimal():
        raise click.BadParameter(f"{text!r} is not a lock id: write 7 or 7.1")
    return int(number)


@click.group()
def lock() -> None:
    """Locks: release them."""


@lock.command(short_help="Release locks, withdraw requests.")
@click.argument("lock_ids", metavar="ID...", nargs=-1, required=True, type=lock_number)
@uri_option
@form_option
def release(lock_ids: tuple[int, ...], uri: str | None, form: str) -> None:
    """Release locks that have no transaction, and withdraw requests that wait.

    Their owners are not asked. Exit code 1 if one of them could not be released: it belongs to a transaction, or is
    unknown.
    """
    with connected(uri) as client:
        owners = {row.lockid: row.txnid for row in client.show_locks(client.types.ShowLocksRequest()).locks}
        answers = [(lock_id, *_released(client, lock_id, owners)) for lock_id in dict.fromkeys(lock_ids)]
    show_rows(["lock_id", "released", "answer"], answers, form)
    sys.exit(0 if all(released for _, released, _ in answers) else 1)


def _released(client: MetastoreClient, lock_id: int, owners: dict[int, int]) -> tuple[bool, str]:
    if lock_id not in owners:
        return False, f"There is no lock {lock_id}; it may have been released already."
    try:
        with domain_errors():
            client.unlock(client.types.UnlockRequest(lockid=lock_id))
    except TxnOpenError:
        return False, (f"Lock {lock_id} is held by transaction {owners[lock_id]} and goes with it: "
                       f"`metastore txn abort {owners[lock_id]}` ends both.")
    return True, "released"
