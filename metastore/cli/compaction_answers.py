"""``metastore compaction plan`` and ``explain``: what is due, and who waits for whom."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click

from metastore.cli.compaction_rows import rows_of
from metastore.cli.connected import connected, instant, uri_option
from metastore.cli.output import form_option, say, show_rows, show_value, table
from metastore.client import DomainClient

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_STEP = 1000


class CompactedPlace(NamedTuple):
    """A table, or a partition of it."""

    db: str
    table: str
    partition: str | None = None

    def __str__(self) -> str:
        """``db.table`` or ``db.table/part=1``."""
        return f"{self.db}.{self.table}" + (f"/{self.partition}" if self.partition else "")


def place_argument(text: str) -> CompactedPlace:
    """Read ``DB.TABLE``, ``DB.TABLE/KEY=VALUE/...`` or, with a dot before the partition, ``DB.TABLE.KEY=VALUE``."""
    db, dot, rest = text.partition(".")
    end = min((at for at in (rest.find("."), rest.find("/")) if at >= 0), default=len(rest))
    name, partition = rest[:end], rest[end + 1 :]
    is_table = dot and db and name and "/" not in db
    if not is_table or (end < len(rest) and "=" not in partition):
        raise click.BadParameter(f"{text!r} is not a table or partition: write DB.TABLE or DB.TABLE/KEY=VALUE")
    return CompactedPlace(db, name, partition or None)


def _most_option(command: Any) -> Any:
    return click.option(
        "--most",
        type=click.IntRange(1, 1000),
        default=100,
        show_default=True,
        help="Of how many partitions the directories are listed.",
    )(command)


@click.command(short_help="What would be compacted, and why or why not.")
@click.argument("place", metavar="DB.TABLE[/PARTITION]", type=place_argument)
@click.option("--run", is_flag=True, help="Request what is due.")
@click.option("--rows", "counts", is_flag=True, help="Count the rows of the inputs, by their footers.")
@_most_option
@uri_option
@form_option
def plan(place: CompactedPlace, most: int, uri: str | None, form: str, *, run: bool, counts: bool) -> None:
    """Show what a compaction would read and write, the thresholds, and how long one took before.

    Of a partitioned table: all partitions with something to compact. With --run, what is due is requested; exit code 1
    if nothing is, or if a request is refused. With --rows, this machine opens each file of the inputs: it must reach
    them. Rows of a delete delta are deleted rows; text has no footer, and its rows are not known.
    """
    with connected(uri) as client:
        answer = _examined(client, place, most, with_files=counts)
        plans = [_plan(place, each) for each in answer.entities]
        requested = [_requested(client, place, each) for each in answer.entities if run and each.type]
    if form == "table":
        for text in _plan_texts(plans):
            say(text)
        _say_left_out(answer.leftOut)
        if requested:
            say("")
            show_rows(
                ["entity", "compaction_id", "accepted", "answer"], [tuple(row.values()) for row in requested], form
            )
        elif run:
            say("\nNothing is due: nothing was requested (`metastore compaction request` does it all the same).")
    else:
        show_value({"entities": plans, "left_out": answer.leftOut, "requested": requested}, form)
    sys.exit(0 if not run or (requested and all(row["accepted"] for row in requested)) else 1)


@click.command(short_help="Why it is not compacted or not cleaned, and what ends that.")
@click.argument("place", metavar="DB.TABLE[/PARTITION]", type=place_argument)
@_most_option
@uri_option
@form_option
def explain(place: CompactedPlace, most: int, uri: str | None, form: str) -> None:
    """Say what a table or partition waits for: who is in the way, since when, and the command that ends it.

    Exit code 1 if nothing waits: nothing is due, nothing is left to be cleaned.
    """
    with connected(uri) as client:
        answer = _examined(client, place, most)
    reasons = [_explained(place, each) for each in answer.entities]
    if form == "table":
        for text in _reason_texts(reasons):
            say(text)
        _say_left_out(answer.leftOut)
    else:
        show_value({"entities": reasons, "left_out": answer.leftOut}, form)
    sys.exit(0 if any(each["waits"] for each in reasons) else 1)


def _examined(client: DomainClient, place: CompactedPlace, most: int, *, with_files: bool = False) -> Any:
    return client.metastore_compaction_examine(
        client.operators_types.CompactionQuestion(
            dbname=place.db, tablename=place.table, partitionname=place.partition, limit=most, withFiles=with_files
        )
    )


def _requested(client: DomainClient, place: CompactedPlace, each: Any) -> dict[str, Any]:
    types = client.types
    answer = client.compact2(
        types.CompactionRequest(
            dbname=place.db,
            tablename=place.table,
            partitionname=each.partitionname,
            type=getattr(types.CompactionType, each.type.upper()),
        )
    )
    return {
        "entity": _name(place, each),
        "compaction_id": answer.id if answer.accepted else None,
        "accepted": answer.accepted,
        "answer": answer.errormessage or answer.state,
    }


def _name(place: CompactedPlace, each: Any) -> str:
    return str(place._replace(partition=each.partitionname))


def _plan(place: CompactedPlace, each: Any) -> dict[str, Any]:
    return {
        "entity": _name(place, each),
        "type": each.type,
        "reason": each.reason,
        "inputs": [
            {
                "path": source.path,
                "kind": source.kind,
                "files": source.files,
                "bytes": source.bytes,
                "rows": None if source.uris is None else rows_of(source.uris),
            }
            for source in each.inputs
        ],
        "thresholds": [
            {
                "name": threshold.name,
                "measured": round(threshold.measured, 4),
                "limit": threshold.limit,
                "exceeded": threshold.exceeded,
                "missed_by": None if threshold.exceeded else round(threshold.limit - threshold.measured, 4),
            }
            for threshold in each.thresholds
        ],
        "reads_bytes": each.readBytes,
        "takes_s": _seconds(each.takesMs),
        "takes_by": each.takesBy,
        "delays_of_cleaning": [_holder(holder) for holder in each.delays],
    }


def _explained(place: CompactedPlace, each: Any) -> dict[str, Any]:
    reasons = [("compaction", each.compaction), *(("cleaning", cleaning) for cleaning in each.cleanings)]
    return {
        "entity": _name(place, each),
        "waits": bool(each.cleanings or each.type or each.compaction.endsWith),
        "held_bytes": each.heldBytes,
        "reasons": [
            {
                "of": what,
                "text": reason.text,
                "since": instant(reason.since),
                "holders": [_holder(holder) for holder in reason.holders],
                "ends_with": reason.endsWith,
            }
            for what, reason in reasons
        ],
    }


def _holder(holder: Any) -> dict[str, Any]:
    return {
        "txn_id": holder.txnid,
        "user": holder.user,
        "host": holder.hostname,
        "agent_info": holder.agentInfo,
        "started_at": instant(holder.startedAt),
        "last_heartbeat_at": instant(holder.lastHeartbeatAt),
        "write_id": holder.writeId,
        "ends_with": holder.endsWith,
    }


def _plan_texts(plans: Iterable[dict[str, Any]]) -> Iterator[str]:
    for place, each in enumerate(plans):
        due = f"{each['type'].upper()}: {each['reason']}" if each["type"] else f"nothing is due: {each['reason']}"
        yield ("\n" if place else "") + f"{each['entity']}  {due}"
        inputs = [
            (part["kind"], part["path"], part["files"], _size(part["bytes"]), part["rows"]) for part in each["inputs"]
        ]
        if inputs:
            columns = [
                "input",
                "path",
                "files",
                "size",
                *(["rows"] if any(part["rows"] for part in each["inputs"]) else []),
            ]
            yield table(columns, [part[: len(columns)] for part in inputs])
        yield table(
            ["threshold", "measured", "must exceed", "exceeded"],
            [(limit["name"], limit["measured"], limit["limit"], limit["exceeded"]) for limit in each["thresholds"]],
        )
        took = (
            f"takes about {each['takes_s']} s, the" if each["takes_s"] is not None else "takes nobody knows how long:"
        )
        size = _size(each["reads_bytes"])
        yield f"It would read {size} and write at most as much; it {took} {each['takes_by']}."
        if each["delays_of_cleaning"]:
            yield "Old files would stay until these have ended:"
            yield _holders(each["delays_of_cleaning"])


def _reason_texts(reasons: Iterable[dict[str, Any]]) -> Iterator[str]:
    for place, each in enumerate(reasons):
        yield (
            "\n" if place else ""
        ) + f"{each['entity']}  {_size(each['held_bytes'])} are held by files that no new reader reads"
        for reason in each["reasons"]:
            since = f" Since {reason['since']}." if reason["since"] else ""
            ends = f" `{reason['ends_with']}` ends it." if reason["ends_with"] else ""
            yield f"{reason['of']}: {reason['text']}{since}{ends}"
            if reason["holders"]:
                yield _holders(reason["holders"])


def _holders(holders: Iterable[dict[str, Any]]) -> str:
    return table(
        ["txn", "who", "open since", "heartbeat", "ends with"],
        [
            (
                each["txn_id"],
                f"{each['user']}@{each['host']} ({each['agent_info']})",
                each["started_at"],
                each["last_heartbeat_at"],
                each["ends_with"],
            )
            for each in holders
        ],
    )


def _say_left_out(left_out: int) -> None:
    if left_out:
        say(f"\n{left_out} more partitions were not looked at: name one, or raise --most.")


def _size(number: int) -> str:
    size, unit = float(number), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{number} B"


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / 1000
