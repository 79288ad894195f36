"""The command ``metastore lock``: an operator's work with locks."""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from metastore.cli.connected import connected, instant, uri_option
from metastore.cli.output import form_option, say, show_rows, show_value, table
from metastore.client import DomainClient
from metastore.errors import TxnOpenError
from metastore.redaction import printable

_MOST_CLAIMS = 3


class WhySubject(NamedTuple):
    """The subject of ``lock why``: exactly one of the three."""

    lock_id: int | None = None
    txn_id: int | None = None
    table: tuple[str | None, str, str] | None = None


def lock_number(text: str) -> int:
    """Parse a lock id; ``7.1``, as SHOW LOCKS prints components, means lock 7."""
    number, _, component = text.partition(".")
    if not number.isdecimal() or not (component or "1").isdecimal():
        raise click.BadParameter(f"{text!r} is not a lock id: write 7 or 7.1")
    return int(number)


def question_of(text: str) -> WhySubject:
    """Read ``7`` or ``7.1`` or ``lockid:7``; ``txn:5`` or ``txnid:5``; ``DB.TABLE`` or ``CATALOG.DB.TABLE``."""
    prefix, colon, rest = text.partition(":")
    if colon and prefix in {"txn", "txnid"} and rest.isdecimal():
        return WhySubject(txn_id=int(rest))
    if colon and prefix in {"lock", "lockid"}:
        return WhySubject(lock_id=lock_number(rest))
    if text[:1].isdecimal() and text.replace(".", "").isdecimal():
        return WhySubject(lock_id=lock_number(text))
    parts = text.split(".")
    if colon or not all(parts) or len(parts) not in {2, 3}:
        raise click.BadParameter(
            f"{text!r} is neither a lock (7 or 7.1), nor a transaction (txn:5), nor a table (DB.TABLE)"
        )
    return WhySubject(table=(parts[0] if len(parts) == 3 else None, parts[-2], parts[-1]))  # noqa: PLR2004


@click.group()
def lock() -> None:
    """Explain the waits of locks, and release locks."""


@lock.command(short_help="Release locks, withdraw requests.")
@click.argument("lock_ids", metavar="[ID...]", nargs=-1, type=lock_number)
@click.option(
    "--agent",
    metavar="TEXT",
    help="All locks of a client by the agent info that `show locks` tells, for example Iceberg-0a1b....",
)
@uri_option
@form_option
def release(lock_ids: tuple[int, ...], agent: str | None, uri: str | None, form: str) -> None:
    """Release locks that have no transaction, and withdraw requests that wait.

    Their owners are not asked. Exit code 1 if one of them could not be released: it belongs to a transaction, or is
    unknown; or if no client has locks with this agent info.
    """
    if not lock_ids and not agent:
        raise click.UsageError("Say which locks: by id, or by --agent.")
    with connected(uri) as client:
        rows = client.show_locks(client.types.ShowLocksRequest()).locks
        owners = {row.lockid: row.txnid for row in rows}
        wanted = [*lock_ids, *(row.lockid for row in rows if agent and row.agentInfo == agent)]
        if not wanted:
            say(f"Nobody has a lock with the agent info {agent}.", err=True)
        answers = [(lock_id, *_released(client, lock_id, owners)) for lock_id in dict.fromkeys(wanted)]
    show_rows(["lock_id", "released", "answer"], answers, form)
    sys.exit(0 if answers and all(released for _, released, _ in answers) else 1)


def _released(client: DomainClient, lock_id: int, owners: dict[int, int]) -> tuple[bool, str]:
    if lock_id not in owners:
        return False, f"There is no lock {lock_id}; it may have been released already."
    try:
        client.unlock(client.types.UnlockRequest(lockid=lock_id))
    except TxnOpenError:
        return False, (
            f"Lock {lock_id} is held by transaction {owners[lock_id]} and goes with it: "
            f"`metastore txn abort {owners[lock_id]}` ends both."
        )
    return True, "released"


@lock.command(short_help="Why something waits, and what ends that.")
@click.argument("question", metavar="LOCK|txn:ID|DB.TABLE", type=question_of)
@uri_option
@form_option
def why(question: WhySubject, uri: str | None, form: str) -> None:
    """Walk from a lock request (7 or 7.1), a transaction (txn:5) or a table to those who have to end first.

    Each line names the owner, the locks held or wanted, the age, the last heartbeat, the time until it expires, and the
    command that ends it now. For a table: all holders of its locks, and their waiters.

    Exit code 1 if there is nothing to explain: it does not wait, no lock is held or wanted there, or there is no such
    lock.
    """
    with connected(uri) as client:
        catalog, db, name = question.table or (None, None, None)
        answer = client.metastore_lock_why(
            client.operators_types.LockWhyRequest(
                lockid=question.lock_id, txnid=question.txn_id, catName=catalog, dbname=db, tablename=name
            )
        )
    owners = [_owner(place, owner, answer.owners) for place, owner in enumerate(answer.owners)]
    if form == "table":
        say(printable(answer.explanation))
        if owners:
            say("\n" + _tree(owners))
    else:
        show_value(
            {"found": answer.found, "blocked": answer.blocked, "explanation": answer.explanation, "owners": owners},
            form,
        )
    sys.exit(0 if answer.blocked or (answer.found and question.table) else 1)


def _owner(place: int, owner: Any, all_of_them: list[Any]) -> dict[str, Any]:
    return {
        "place": place,
        "owner": _name(owner),
        "txn_id": owner.txnid or None,
        "lock_id": None if owner.txnid else owner.lockid,
        "user": owner.user,
        "host": owner.hostname,
        "agent_info": owner.agentInfo,
        "asked": owner.asked,
        "root": owner.root,
        "in_deadlock": owner.inCycle,
        "age_s": owner.ageMs / 1000,
        "last_heartbeat_at": instant(owner.lastHeartbeatAt),
        "silent_s": owner.silentMs / 1000,
        "expires_in_s": owner.expiresInMs / 1000,
        "ends_with": owner.endsWith,
        "waits_for": [_name(all_of_them[other]) for other in owner.waitsFor],
        "waits_for_places": owner.waitsFor,
        "claims": [
            {
                "lock_id": claim.lockid,
                "state": claim.state,
                "type": claim.type,
                "catalog": claim.catName,
                "db": claim.dbname,
                "table": claim.tablename,
                "partition": claim.partitionname,
                "requested_at": instant(claim.requestedAt),
                "acquired_at": instant(claim.acquiredAt),
            }
            for claim in owner.claims
        ],
    }


def _name(held: Any) -> str:
    return f"txn {held.txnid}" if held.txnid else f"lock {held.lockid}"


def _tree(owners: list[dict[str, Any]]) -> str:
    """Return one line for each owner, below an owner that waits for it."""
    rows = []
    for depth, owner in _below(owners, [owner["place"] for owner in owners if owner["asked"]], 0, set()):
        who = f"{owner['owner']} {owner['user']}@{owner['host']} ({owner['agent_info']})"
        expiry = f"in {owner['expires_in_s']:.0f} s" if owner["expires_in_s"] >= 0 else "next reaper pass"
        rows.append(
            [
                "  " * depth + who,
                _claims(owner["claims"]),
                ("DEADLOCK: " if owner["in_deadlock"] else "") + (", ".join(owner["waits_for"]) or "nobody"),
                f"{owner['age_s']:.0f} s",
                f"{owner['silent_s']:.0f} s ago",
                expiry,
                owner["ends_with"],
            ]
        )
    return table(["who", "locks", "waits for", "age", "heartbeat", "expires", "ends with"], rows)


def _below(
    owners: list[dict[str, Any]], places: list[int], depth: int, seen: set[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    for place in places:
        if place not in seen:
            seen.add(place)
            yield depth, owners[place]
            yield from _below(owners, owners[place]["waits_for_places"], depth + 1, seen)


def _claims(claims: list[dict[str, Any]]) -> str:
    texts = [
        f"{'wants' if claim['state'] == 'waiting' else 'holds'} {claim['type'].upper()} on {place(claim)}"
        for claim in claims[:_MOST_CLAIMS]
    ]
    more = [f"{len(claims) - _MOST_CLAIMS} more"] if len(claims) > _MOST_CLAIMS else []
    return ", ".join(texts + more)


def place(claim: dict[str, Any]) -> str:
    """Format ``db.table/partition``, with the catalog if it is not Hive's."""
    catalog = "" if claim["catalog"] == "hive" else f"{claim['catalog']}."
    table_part = f".{claim['table']}" if claim["table"] else ""
    partition_part = f"/{claim['partition']}" if claim["partition"] else ""
    return f"{catalog}{claim['db']}{table_part}{partition_part}"
