"""Ids and snapshots: nothing appears later below a mark, nothing is given out twice, views agree with what happened."""

from bisect import bisect_left
from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from tests.robustness.checker.history import Anomaly, Answer, Append, Call, History

_ALL = "get_open_txns_info"
_SNAPSHOTS = ("get_open_txns", "get_open_txns_req", _ALL)


def snapshots_without_gaps(history: History) -> Iterator[Anomaly]:
    """No id at or below a snapshot's mark turns up later as open, unless that snapshot has it as open (or aborted).

    One exception, which harms nobody: the commit of a transaction that wrote nothing does not wait for the disk, so a
    crash of PostgreSQL may bring it back as open.
    """
    snapshots = sorted(history.called(*_SNAPSHOTS, answer=Answer.OK), key=lambda call: call.end)
    ends = [call.end for call in snapshots]
    listed = [{*call.facts["open"], *call.facts["aborted"]} for call in snapshots]
    wrote = {append.txn for append in history.appends}
    told: set[int] = set()
    for seen in _appearances(history):
        for place in range(bisect_left(ends, seen.start)):
            earlier = snapshots[place]
            if seen.txn in told or earlier.facts["mark"] < seen.txn or seen.txn in listed[place]:
                continue
            if seen.may_be_hidden and earlier.method != _ALL:
                continue
            if seen.txn not in wrote and any(earlier.start < crash for crash in history.crashes):
                continue
            told.add(seen.txn)
            yield Anomaly("id below the mark", f"T{seen.txn} {seen.what} at {seen.start:.3f}; the snapshot that had "
                          f"returned at {earlier.end:.3f} has the mark {earlier.facts['mark']} and does not list it")


class _Appearance(NamedTuple):
    """A transaction that was seen open; snapshots other than the full listing may hide it if it is read-only."""

    txn: int
    start: float
    what: str
    may_be_hidden: bool


def _appearances(history: History) -> Iterator[_Appearance]:
    read_only = {txn for txn, call in history.opened.items() if call.facts["read_only"]}
    for txn, call in history.opened.items():
        yield _Appearance(txn, call.start, "was opened by a call made", txn in read_only)
    for call in history.called(*_SNAPSHOTS, answer=Answer.OK):
        for txn in call.facts["open"]:
            hidden = txn in read_only or (call.method == _ALL and txn not in history.opened)
            yield _Appearance(txn, call.start, "is open in a snapshot asked for", hidden)
    for call in history.called("allocate_table_write_ids", answer=Answer.OK):
        for txn in call.facts["write_ids"]:
            yield _Appearance(int(txn), call.start, "was given a write id by a call made", may_be_hidden=False)


def snapshots_with_the_open(history: History) -> Iterator[Anomaly]:
    """Check that a snapshot lists each transaction that was open during the whole call and is committed in the end."""
    ended = {}
    for call in history.called("commit_txn", "abort_txn", "abort_txns"):
        for txn in call.facts.get("txns") or [call.facts["txn"]]:
            ended[txn] = min(ended.get(txn, inf), call.start)
    owned = sorted((txn, call.end, ended.get(txn, inf)) for txn, call in history.opened.items()
                   if history.states.get(txn) == "committed")
    for call in history.called(_ALL, answer=Answer.OK):
        known = {*call.facts["open"], *call.facts["aborted"]}
        for txn, opened, end in owned:
            if opened < call.start and call.end < end and txn not in known:
                yield Anomaly("open id missing", f"T{txn} was open from {opened:.3f} to {end:.3f}, but the snapshot of "
                              f"{call.start:.3f} to {call.end:.3f} does not list it")


def views_in_real_time(history: History) -> Iterator[Anomaly]:
    """Check that views see all commits before their transaction began, and no commit first asked for after their snapshot."""
    first_ack = {txn: min((call.end for call in calls if call.answer is Answer.OK), default=inf)
                 for txn, calls in history.commits.items()}
    first_try = {txn: min(call.start for call in calls) for txn, calls in history.commits.items()}
    writers = {append.txn for append in history.appends} & history.committed
    for view in history.views:
        opening = history.opened.get(view.txn)
        for txn in writers:
            if txn == view.txn:
                continue
            if opening is not None and first_ack.get(txn, inf) < opening.start and not view.sees(txn):
                yield Anomaly("commit not visible", f"T{txn} was committed at {first_ack[txn]:.3f}, before T{view.txn} "
                              f"was opened, whose snapshot (mark {view.mark}) does not have it")
            if view.sees(txn) and first_try.get(txn, inf) > view.end:
                yield Anomaly("view of the future", f"T{view.txn} had its snapshot at {view.end:.3f} and sees T{txn}, "
                              f"whose commit was first asked for later")


def reads_agree_with_views(history: History) -> Iterator[Anomaly]:
    """Check that a reader finds an element if and only if its snapshot has the element's writer as committed.

    Only readers that committed are checked: files that a snapshot may need are kept no longer than its transaction lives, and one that the
    reaper has ended may go on reading for a while without knowing it.
    """
    views = {view.txn: view for view in history.views}
    by_key: dict[str, list] = {}
    for append in history.appends:
        if append.txn in history.committed:
            by_key.setdefault(append.key, []).append(append)
    for read in history.reads:
        view, seen = views.get(read.txn) if read.txn in history.committed else None, set(read.elements)
        for append in by_key.get(read.key, ()) if view is not None else ():
            if append.txn != read.txn and view.sees(append.txn) != (append.element in seen):
                how = "has it, but does not find" if view.sees(append.txn) else "does not have it, but finds"
                yield Anomaly("read against the snapshot", f"T{append.txn} wrote {append.element} into {append.key}"
                              f"@{append.write_id}; the snapshot of T{read.txn} (mark {view.mark}) {how} it")


def aborted_stay_listed(history: History) -> Iterator[Anomaly]:
    """Check that a writer aborted by somebody else is in every later list until bases cover it: it may go on and publish.

    A base covers all that it ever wrote, also afterwards: a base of a committed compaction, with a write id as high.
    """
    written: dict[int, list[Append]] = {}
    for append in history.appends:
        if append.txn in history.lost:
            written.setdefault(append.txn, []).append(append)
    told: set[int] = set()
    for call in history.called(*_SNAPSHOTS, answer=Answer.OK):
        known = {*call.facts["open"], *call.facts["aborted"]}
        for txn in sorted(written.keys() - known - told):
            bare = [append for append in written[txn] if not _is_covered(history, append, call.end)]
            if history.opened[txn].end < call.start and bare:
                told.add(txn)
                yield Anomaly("aborted id forgotten", f"T{txn} was aborted by somebody else than its owner, but the "
                              f"snapshot asked for at {call.start:.3f} (mark {call.facts['mark']}) does not list it, and no "
                              f"base covers {bare[0].key}@{bare[0].write_id}")


def _is_covered(history: History, append: Append, before: float) -> bool:
    return any(base.key == append.key and base.write_id >= append.write_id and base.at < before and base.txn in history.committed
               for base in history.bases)


def ids_given_once(history: History) -> Iterator[Anomaly]:
    """Transaction ids and write ids have one owner, for ever, and grow in the order of the calls."""
    opens = list(history.called("open_txns", answer=Answer.OK))
    yield from _unique("transaction id", [(f"T{txn}", f"the call made at {call.start:.6f}", call, txn)
                                          for call in opens for txn in call.facts["ids"]])
    yield from _rising("transaction id", [(call, call.facts["ids"]) for call in opens])
    allocations = list(history.called("allocate_table_write_ids", answer=Answer.OK))
    tables = sorted({call.facts["table"] for call in allocations})
    for table in tables:
        mine = [call for call in allocations if call.facts["table"] == table]
        yield from _unique(f"write id of {table}", [
            (f"{table}@{write_id}", f"T{txn}", call, write_id)
            for call in mine for txn, write_id in call.facts["write_ids"].items()])
        first: dict[tuple[str, int], Call] = {}
        for call in sorted(mine, key=lambda call: call.end):
            for txn, write_id in call.facts["write_ids"].items():
                first.setdefault((txn, write_id), call)
        fresh = [(call, [write_id]) for (txn, write_id), call in first.items()
                 if not any(one.answer is Answer.UNKNOWN and txn in one.facts.get("txns", ())
                            for one in history.called("allocate_table_write_ids") if one.facts.get("table") == table)]
        yield from _rising(f"write id of {table}", fresh)
    for append in history.appends:
        owners = {txn for call in allocations if call.facts["table"] == append.table
                  for txn, write_id in call.facts["write_ids"].items() if write_id == append.write_id}
        if owners and str(append.txn) not in owners:
            yield Anomaly("write id of another", f"{append} was written under a write id of T{owners}")


def _unique(what: str, given: list[tuple[str, str, Call, int]]) -> Iterator[Anomaly]:
    owners: dict[str, set[str]] = {}
    for name, owner, _, _ in given:
        owners.setdefault(name, set()).add(owner)
    for name, known in owners.items():
        if len(known) > 1:
            yield Anomaly("id given twice", f"the {what} {name} was given to {' and to '.join(sorted(known))}")


def _rising(what: str, given: list[tuple[Call, list[int]]]) -> Iterator[Anomaly]:
    """Check that a call made after another was answered gets greater ids."""
    by_end = sorted(given, key=lambda one: one[0].end)
    by_start = sorted(given, key=lambda one: one[0].start)
    top, place = 0, 0
    for call, ids in by_start:
        while place < len(by_end) and by_end[place][0].end < call.start:
            top = max(top, *by_end[place][1])
            place += 1
        if ids and min(ids) <= top:
            yield Anomaly("ids out of order", f"the {what} {min(ids)} was given to a call made at {call.start:.3f}, after "
                          f"{top} had been answered")
