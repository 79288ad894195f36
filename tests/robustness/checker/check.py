"""The verdict on a history: every rule once, each a generator of anomalies."""

from collections import Counter
from collections.abc import Iterator

from tests.robustness.checker import graph, ids, locks
from tests.robustness.checker.history import Anomaly, Answer, History

MOST_TOLD = 5


def check(history: History) -> list[Anomaly]:
    """Everything that must not have happened, a few witnesses of each kind."""
    rules = (outcomes, aborted_reads, intermediate_reads, doubled_reads, readers_let_down, graph.cycles, ids.snapshots_without_gaps,
             ids.snapshots_with_the_open, ids.views_in_real_time, ids.reads_agree_with_views, ids.ids_given_once,
             ids.aborted_stay_listed, locks.held_by_two)
    told: dict[str, int] = {}
    found = []
    for rule in rules:
        for anomaly in rule(history):
            told[anomaly.kind] = told.get(anomaly.kind, 0) + 1
            if told[anomaly.kind] <= MOST_TOLD:
                found.append(anomaly)
    return found


def outcomes(history: History) -> Iterator[Anomaly]:
    """Check that acknowledged outcomes last: commits are there, refused commits and acknowledged aborts are not."""
    writers = {append.txn for append in history.appends}
    for txn, calls in history.commits.items():
        state = history.states.get(txn)
        answers = {call.answer for call in calls}
        if Answer.OK in answers and txn in writers and state != "committed":
            yield Anomaly("acknowledged commit missing", f"T{txn} was told that it is committed; in the end: {state}")
        if answers == {Answer.FAIL} and txn in writers and state == "committed":
            why = "; ".join(str(call.facts.get("error")) for call in calls)
            yield Anomaly("refused commit happened", f"T{txn} is committed in the end, but was told: {why}")
    for call in history.called("abort_txn", answer=Answer.OK):
        txn = call.facts["txn"]
        if txn in history.committed and txn in writers:
            yield Anomaly("acknowledged abort missing", f"T{txn} was aborted at {call.end:.3f}; in the end: committed")
    for call in history.called("metastore_txn_outcome", answer=Answer.OK):
        txn, told, state = call.facts["txn"], call.facts["outcome"], history.states.get(call.facts["txn"])
        if txn in writers and told not in {"open", "unknown"} and (told == "committed") != (state == "committed"):
            yield Anomaly("wrong outcome told", f"T{txn} was said to be {told!r} at {call.end:.3f}; in the end: {state}")


def aborted_reads(history: History) -> Iterator[Anomaly]:
    """G1a: an element of a transaction that never committed was found."""
    for read in history.reads:
        for element in read.elements:
            append = history.writer.get(element)
            if append is None or (append.txn not in history.committed and append.txn != read.txn):
                state = "nobody" if append is None else f"T{append.txn} ({history.states.get(append.txn)})"
                yield Anomaly("G1a", f"T{read.txn} found {element} in {read.key}, written by {state}")


def intermediate_reads(history: History) -> Iterator[Anomaly]:
    """G1b: of what one transaction appended to a key, some was found and some not.

    Not of readers that somebody else has ended: the Cleaner removes files while they list them.
    """
    by_key: dict[tuple[int, str], set[str]] = {}
    for append in history.appends:
        by_key.setdefault((append.txn, append.key), set()).add(append.element)
    several = {pair: elements for pair, elements in by_key.items() if len(elements) > 1 and pair[0] in history.committed}
    for read in history.reads:
        seen = set(read.elements)
        for (txn, key), elements in several.items() if read.txn not in history.lost else ():
            if key == read.key and txn != read.txn and seen & elements and elements - seen:
                yield Anomaly("G1b", f"T{read.txn} found {sorted(seen & elements)} but not {sorted(elements - seen)} "
                              f"of T{txn} in {key}")


def doubled_reads(history: History) -> Iterator[Anomaly]:
    """Yield each element that was found twice: in the result of a compaction, and beside it."""
    for read in history.reads:
        for element, count in Counter(read.elements).items():
            if count > 1:
                yield Anomaly("found twice", f"T{read.txn} found {element} {count} times in {read.key}")


def readers_let_down(history: History) -> Iterator[Anomaly]:
    """Yield each read of an open transaction that failed because the files were cleaned away."""
    for one in history.unreadable:
        yield Anomaly("cleaned too early", f"T{one.txn} was open, and could not read {one.key}: {one.error}")
