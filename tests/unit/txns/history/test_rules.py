from datetime import UTC, datetime, timedelta

import pytest

from metastore.ids import TableName
from metastore.txns.core import rules
from metastore.txns.core.rules import CommittedWrite, Component, Operation, TxnState, TxnType
from metastore.txns.history.rules import (
    Answer,
    LeftWrite,
    LostConflict,
    Outcome,
    Record,
    TxnEvidence,
    appended,
    conflict,
    listed,
    named,
    operation_name,
    outcome,
    when,
)

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
NOTHING = TxnEvidence(5, None, from_history=False, wrote=False, skipped=False, mark=10, complete_above=0)


def record(state, **more):
    return Record(state, TxnType.DEFAULT, "ann", "h1", "etl", AT, AT, 0, timedelta(), None, None, None, None)._replace(**more)


@pytest.mark.parametrize(("left", "expected", "reason"), [
    (NOTHING._replace(record=record(TxnState.OPEN)), Outcome.OPEN, "open since 2026-11-21 03:00:00 UTC for ann@h1 (etl), last heartbeat at 2026-11-21 03:00:00 UTC"),
    (NOTHING._replace(record=record(TxnState.ABORTED, ended_at=AT, abort_reason="aborted by hand")), Outcome.ABORTED, "aborted by hand, at 2026-11-21 03:00:00 UTC"),
    (NOTHING._replace(record=record(TxnState.ABORTED)), Outcome.ABORTED, "aborted, no reason was recorded, at an unknown time"),
    (NOTHING._replace(record=record(TxnState.COMMITTED, ended_at=AT)), Outcome.COMMITTED, "committed at 2026-11-21 03:00:00 UTC by ann@h1 (etl)"),
    (NOTHING._replace(txn_id=0), Outcome.NEVER_OPENED, "ids begin at 1"),
    (NOTHING._replace(txn_id=11), Outcome.NEVER_OPENED, "the highest that was given out is 10"),
    (NOTHING._replace(skipped=True), Outcome.NEVER_OPENED, "it was skipped"),
    (NOTHING._replace(wrote=True, complete_above=9), Outcome.COMMITTED, "what it committed is still listed"),
    (NOTHING._replace(complete_above=4), Outcome.COMMITTED, "had it been aborted that would be on record"),
    (NOTHING._replace(complete_above=5), Outcome.UNKNOWN, "only for transactions above 5"),
    # Skipped ids below the floor are known all the same; above the mark nothing else counts.
    (NOTHING._replace(skipped=True, complete_above=9), Outcome.NEVER_OPENED, "it was skipped"),
    (NOTHING._replace(txn_id=11, complete_above=20), Outcome.NEVER_OPENED, "no transaction has this id yet"),
])
def test_outcome(left, expected, reason):
    answer = outcome(left)

    assert answer.outcome is expected
    assert reason in answer.reason


@pytest.mark.parametrize(("left", "said"), [
    ([], None),
    ([LeftWrite("d.t", 1, cleaned=True, may_publish=True), LeftWrite("d.u", 1, cleaned=False, may_publish=True)],
     "until the Cleaner has removed what it wrote to d.t, d.u"),
    ([LeftWrite("d.t/p=1", 1, cleaned=True, may_publish=True)], "its owner did not abort it, and may still publish in d.t/p=1"),
    ([LeftWrite("d.t", 1, cleaned=True, may_publish=False)], "until a major compaction covers")])
def test_why_snapshots_name_an_aborted_one(left, said):
    assert listed(left) is None if said is None else said in listed(left)


def test_the_conflict_is_read_from_the_reason_that_the_rules_write():
    name = TableName("hive", "db", "t")
    for partition, place in (("", "db/t"), ("p=a/q=[b] committed by", "db/t/p=a/q=[b] committed by")):
        lost = rules.Conflict(Component(7, name, partition, Operation.UPDATE), CommittedWrite(8, 9, name, partition, Operation.DELETE))

        assert conflict(lost.message(12)) == LostConflict(8, 9, place, "update", "delete")


@pytest.mark.parametrize("reason", [None, "", "aborted by hand", "Aborting [txnid:7,9] due to something else"])
def test_other_reasons_tell_of_no_conflict(reason):
    assert conflict(reason) is None


def test_operations_have_names():
    assert [operation_name(letter) for letter in "iudcwr"] == ["insert", "update", "delete", "compact", "change", "reserve"]


def test_texts_begin_as_they_did():
    answer = Answer(Outcome.ABORTED, "aborted by hand, at noon")
    assert appended("Transaction txnid:5 already aborted", answer) == (
        "Transaction txnid:5 already aborted: aborted by hand, at noon")
    assert appended("Transaction txnid:5 is already committed.", Answer(Outcome.COMMITTED, "committed at noon")) == (
        "Transaction txnid:5 is already committed. Committed at noon")
    assert appended("No: aborted by hand, at noon", answer) == "No: aborted by hand, at noon"


def test_odds_and_ends():
    assert named([3, None, 1, 3]) == [1, 3]
    assert when(None) == "an unknown time"
