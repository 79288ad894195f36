"""Each check of the soak's verdict finds what it is there for, in what a soak could have left; and nothing where all is well."""

from types import SimpleNamespace

import pytest

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import ListedFile, acid_state
from tests.robustness.soak.holder import differs
from tests.robustness.soak.ledger import Ledger, judged
from tests.robustness.soak.tables import ACCOUNTS, EACH, twice, wrong_accounts
from tests.robustness.soak.verdict import unneeded, wrong_compactions, wrong_moves, wrong_rows

BROKEN_FILE = "OSError: /broken/delta_1/bucket_0"
ROWS = {1: (10, "a"), 2: (20, "b")}


def compaction(number, table="flat", state="succeeded", reason=None):
    return SimpleNamespace(id=number, tablename=table, partitionname=None, state=state, errorMessage=reason)


def listed(*compactions, accepted=()):
    return wrong_compactions([compaction(1, "broken", "failed", BROKEN_FILE), *compactions], accepted)


def test_compactions_that_ended_with_a_reason_are_right():
    assert listed(compaction(2), compaction(3, state="refused", reason="too small"), accepted=[2, 3]) == []


@pytest.mark.parametrize(("left", "accepted", "said"), [
    ([compaction(2, state="working")], [], "compaction 2 of flat None is still working"),
    ([compaction(2, state="ready for cleaning", reason="still there: delta_1")], [], "is still ready for cleaning: still there"),
    ([compaction(2, state="failed")], [], "compaction 2 of flat is failed, and nobody says why"),
    ([compaction(2, state="failed", reason="The compaction did not write what it read, so nothing was changed: x")], [], "did not write"),
    ([], [7], "compaction 7 was accepted, and nobody knows of it"),
], ids=["no end", "no cleaning", "no reason", "rows lost by a job", "forgotten"])
def test_a_request_without_its_end_is_found(left, accepted, said):
    [wrong] = listed(*left, accepted=accepted)
    assert said in wrong


@pytest.mark.parametrize("seen", [[], [compaction(1, "broken")], [compaction(1, "broken", "failed", "out of memory")]],
                         ids=["never compacted", "compacted all the same", "another reason"])
def test_a_broken_file_that_is_not_named_is_found(seen):
    [wrong] = wrong_compactions(seen, [])
    assert "the compaction of a broken file" in wrong


@pytest.mark.parametrize(("seen", "said"), [
    ([(1, 10, "a")], r"lost [(2, 20, 'b')], more []"),
    ([(1, 10, "a"), (2, 20, "b"), (2, 20, "b")], "lost [], more [(2, 20, 'b')]"),
    ([(1, 10, "a"), (2, 21, "b")], "lost [(2, 20, 'b')], more [(2, 21, 'b')]"),
    ([(1, 10, "a"), (2, 20, "b"), (3, 1, "undone")], "more [(3, 1, 'undone')]"),
], ids=["lost", "twice", "changed", "of an aborted statement"])
def test_rows_that_the_ledger_has_not_are_found(seen, said):
    [wrong] = wrong_rows("flat", "w0", seen, ROWS)
    assert said in wrong
    assert wrong_rows("flat", "w0", [(2, 20, "b"), (1, 10, "a")], ROWS) == []


def test_a_statement_is_there_whole_or_not_at_all(tmp_path):
    after = {1: (10, "a"), 2: (21, "b"), 3: (30, "c")}
    ledger = Ledger(tmp_path / "ledger")
    ledger.begin("INSERT", ROWS)
    ledger.end(made=True)
    ledger.begin("MERGE", after)

    assert judged(ledger, after) is True
    assert judged(ledger, ROWS) is False
    assert judged(ledger, {**ROWS, 3: (30, "c")}) is None
    ledger.end(made=True)
    assert judged(ledger, after) is True
    assert judged(ledger, ROWS) is None, "it was acknowledged"


def test_money_that_is_lost_or_comes_up_is_found():
    whole = [EACH] * ACCOUNTS
    assert wrong_accounts(whole) == []
    assert wrong_accounts(whole[1:])
    assert wrong_accounts([*whole, 0])
    assert wrong_accounts([EACH + 1, *whole[1:]])


def test_rows_that_are_read_twice_are_found():
    assert twice("flat", [(1, 10, "a", 0), (1, 10, "a", 1), (2, 20, "b", 0)]) == [], "each writer has its own ids"
    assert twice("flat", [(1, 10, "a", 0), (1, 11, "b", 0)]) == ["flat: ids are there twice: [(1, 0)] of 1"]
    assert twice("accounts", [(1, 1000, 0), (1, 1000, 1)]) == ["accounts: ids are there twice: [1] of 1"]


@pytest.mark.parametrize(("seen", "is_right"), [(1, False), (2, True), (4, True), (5, False)])
def test_transfers_are_counted(seen, is_right):
    """Of three one was acknowledged, one is not known, one was refused."""
    lines = ["transfers begun", "transfers", "transfers begun", "transfers begun", "transfers not made", "statements"]
    assert (wrong_moves(seen, lines) == []) is is_right


def test_files_that_nobody_needs_are_found():
    names = ["base_0000002_v0000009", "delta_0000001_0000001_0000", "delta_0000003_0000003_0000", ".acid_stage_7", "_orc_acid_version"]
    listing = [ListedFile(f"{name}/bucket_00000", 10, is_dir=False) for name in names[:3]]
    state = acid_state(listing, ValidWriteIdList("soak.t", 3, None, (3,), frozenset({3})), ValidTxnList.everything(), lambda _: b"")

    assert unneeded(state, names) == ["obsolete delta_0000001_0000001_0000", "aborted delta_0000003_0000003_0000", "left behind .acid_stage_7"]


class Plan:
    """What a reader would read: rows in one batch, or an error."""

    def __init__(self, found):
        self.found = found

    def batches(self):
        if isinstance(self.found, OSError):
            raise self.found
        return [SimpleNamespace(to_pylist=lambda: [{"id": number} for number in self.found])]


@pytest.mark.parametrize(("found", "said"), [
    ([1, 2], ""), ([1], "2 rows, and then 1: lost [(2,)] of 1"), ([1, 2, 3], "more [(3,)] of 1"), ([1, 2, 2], "2 rows, and then 3"),
    (FileNotFoundError("delta_1"), "cannot be read again: FileNotFoundError('delta_1')")], ids=["same", "lost", "more", "twice", "gone"])
def test_a_snapshot_that_changes_is_found(found, said):
    assert said in differs(Plan(found), [(1,), (2,)])
    assert bool(said) == bool(differs(Plan(found), [(1,), (2,)]))
