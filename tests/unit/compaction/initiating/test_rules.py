"""Is it due, which kind, may the Initiator look, should the Worker run (COMP-9 to COMP-11, COMP-13)."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from metastore.acid.snapshots import CompactorWriteIdList, ValidTxnList
from metastore.acid.state import ListedFile, acid_state
from metastore.compaction.initiating.rules import (
    Aborts,
    Action,
    EligibilityLimits,
    Thresholds,
    abort_rules,
    benefit,
    decide,
    due,
    due_for_aborts,
    examined,
    ineligible,
    merged,
    verdict,
)
from metastore.compaction.inventory.rules import Measured, measure
from metastore.compaction.queue.rules.requests import CompactionType, Entity
from metastore.errors import InvalidRequestError
from metastore.ids import TableName
from tests.unit.compaction.queue.test_requests import DAY, NOW, history, request

DEFAULTS = Thresholds(10, 0.1)
T = Entity(TableName("hive", "d", "t"))


def directories(*names, high=1000, aborted=()):
    """``delta_21_22:2``: two rows; a bare file name is an original."""
    listing = []
    for name in names:
        path, _, rows = name.partition(":")
        inside = f"{path}/bucket_00000" if path.startswith(("base", "delta", "delete")) else path
        listing.append(ListedFile(inside, int(rows or 1) * 100))
    ids = CompactorWriteIdList("d.t", high, None, tuple(aborted), frozenset(aborted))
    return acid_state(listing, ids, ValidTxnList.everything(), lambda _: "")


def deltas(count, first=21, rows=1):
    return [f"delta_{first + n}_{first + n}_0000:{rows}" for n in range(count)]


@pytest.mark.parametrize(("names", "kind"), [
    (["base_20:20", "delta_21_22:2", "delta_23_24:2"], "major"),        # COMP-I12: 0.2 > 0.1
    (["base_50:50", "delta_51_52:2", "delta_53_54:2"], None),           # COMP-I13: 0.08
    (["base_40:40", "delta_51_52:2", "delta_53_54:2"], None),           # exactly 0.1
    (["base_200:200", *deltas(11, 201)], "minor"),                      # COMP-I14
    (["base_200:200", *deltas(10, 201)], None),
    (deltas(11), "major"),                                              # COMP-I15: no base
    (deltas(10), None),
    (["base_10:10", "base_5:5"], "major"),                              # COMP-I18
    (["base_10:10"], None),
    ([], None),
    (["000000_0:2000", *deltas(11)], "major"),                          # COMP-I20: originals rule out a minor one
    (["base_200:2000", *[f"delta_{n}_{n}_0000/000000_0" for n in range(201, 212)]], "major"),   # raw deltas
])
def test_sizes_and_counts(names, kind):
    if any("000000_0" in name and name.startswith("delta") for name in names):
        listing = [ListedFile("base_200/bucket_00000", 200_000), *(ListedFile(name, 100) for name in names[1:])]
        state = acid_state(listing, CompactorWriteIdList("d.t", 1000), ValidTxnList.everything(), lambda _: "")
    else:
        state = directories(*names)

    verdict = due(measure(state), DEFAULTS, insert_only=False)

    assert verdict.type == kind, verdict.reason


def test_a_split_update_counts_twice():
    pairs = [f"{prefix}delta_{n}_{n}_0000:1" for n in range(201, 207) for prefix in ("", "delete_")]

    assert measure(directories("base_200:200", *pairs)).deltas == 12


@pytest.mark.parametrize(("deletes", "part", "kind"), [
    (1, 0.1, None),          # 0.1 % of the base: a tenth of a GB does not have 100 GB written anew
    (10, 0.1, None),
    (11, 0.1, "minor"),      # too many, and still too little: they are merged among themselves
    (1, 0.0009, "major"),    # the table's own threshold says so
    (1, 0.001, None),        # what equals it does not exceed it
])
def test_a_base_of_100_gb_is_not_rewritten_for_few_deletes(deletes, part, kind):
    """The threshold is one of bytes: there is no other."""
    base, each = 10**9, 10**6 // deletes  # rows of 100 bytes
    measured = measure(directories(f"base_200:{base}", *[f"delete_delta_{n}_{n}_0000:{each}" for n in range(201, 201 + deletes)]))
    own = DEFAULTS.overridden_by({"compactorthreshold.hive.compactor.delta.pct.threshold": str(part)})

    assert (measured.base_size, measured.delta_size // deletes) == (100 * 10**9, each * 100)
    assert due(measured, own, insert_only=False).type == kind


def test_what_lies_above_an_open_write_id_does_not_count():
    """COMP-I31: write id 22 is open, so the compactor's mark is 21."""
    assert measure(directories(*deltas(20, 20), high=21)).deltas == 2


def test_insert_only_tables_get_minor_compactions():
    """COMP-I19."""
    assert due(measure(directories("base_200:200", *deltas(11, 201))), DEFAULTS, insert_only=True).type == "minor"


@pytest.mark.parametrize(("parameters", "expected"), [
    ({}, DEFAULTS),
    ({"compactorthreshold.hive.compactor.delta.num.threshold": "2"}, Thresholds(2, 0.1)),
    ({"compactorthreshold.hive.compactor.delta.pct.threshold": "0.5"}, Thresholds(10, 0.5))])
def test_a_tables_own_thresholds_win(parameters, expected):
    """COMP-I16."""
    assert DEFAULTS.overridden_by(parameters) == expected


def test_a_threshold_that_is_not_a_number_is_an_error():
    """COMP-I17."""
    with pytest.raises(InvalidRequestError, match="abc"):
        DEFAULTS.overridden_by({"compactorthreshold.hive.compactor.delta.num.threshold": "abc"})


@pytest.mark.parametrize(("txns", "age_hours", "max_hours", "expected"), [
    (10, 1, 12, None), (11, 1, 12, CompactionType.MAJOR),       # COMP-I04, COMP-I05: strict
    (1, 13, 12, CompactionType.MINOR), (1, 12, 12, None), (1, 13, -1, None),     # COMP-I06
    (11, 13, 12, CompactionType.MAJOR)])
def test_aborts(txns, age_hours, max_hours, expected):
    aborts = Aborts.judged(txns, NOW - timedelta(hours=age_hours), NOW, 10, timedelta(hours=max_hours))

    verdict = due_for_aborts(aborts)
    assert (verdict.type if verdict else None) is expected
    assert aborts.count is (expected is not None)


@dataclass(frozen=True)
class Table:
    entity: Entity = T
    parameters: dict = field(default_factory=dict)
    database_parameters: dict = field(default_factory=dict)
    partition_exists: bool = True
    lacks_partition: bool = False
    is_transactional: bool = True
    is_insert_only: bool = False


LIMITS = EligibilityLimits(2, DAY * 7, compact_insert_only=True)


@pytest.mark.parametrize(("table", "reason"), [
    (None, "does not exist"),                                                                # COMP-E6, COMP-I22
    (Table(), None),
    (Table(database_parameters={"hive.repl.first.inc.pending": "true"}), "replication"),     # COMP-E2, COMP-I34
    (Table(parameters={"hive.repl.first.inc.pending": "true"}), "replication"),
    (Table(parameters={"NO_AUTO_COMPACTION": "true"}), "NO_AUTO"),                           # COMP-I08
    (Table(parameters={"no_auto_compaction": "TRUE"}), "NO_AUTO"),
    (Table(parameters={"no_auto_compaction": "false"}), None),
    (Table(database_parameters={"no_auto_compaction": "true"}), "NO_AUTO"),                  # COMP-I09
    (Table(database_parameters={"no_auto_compaction": "false"}, parameters={"no_auto_compaction": "true"}), None),
    (Table(is_transactional=False), "not transactional"),
    (Table(lacks_partition=True), "one by one"),                                             # COMP-I21
    (replace(Table(), entity=Entity(T.table, "p=1"), partition_exists=False), "partition does not exist"),   # COMP-E11
])
def test_who_is_passed_over(table, reason):
    found = ineligible(table.entity if table else T, table, [], [], Aborts(), LIMITS, NOW)

    assert (found is None) if reason is None else reason in found.reason


def test_insert_only_tables_can_be_switched_off():
    limits = LIMITS._replace(compact_insert_only=False)

    assert ineligible(T, Table(is_insert_only=True), [], [], Aborts(), limits, NOW) is not None
    assert ineligible(T, Table(), [], [], Aborts(), limits, NOW) is None


def test_an_old_abort_makes_a_table_level_trace_eligible():
    assert ineligible(T, Table(lacks_partition=True), [], [], Aborts(too_old=True), LIMITS, NOW) is None


@pytest.mark.parametrize(("code", "blocks"), [("i", True), ("w", True), ("r", False)])
def test_a_running_request_blocks_and_a_finished_one_does_not(code, blocks):
    """COMP-E4, COMP-I10, COMP-I11."""
    found = ineligible(T, Table(), [request(code)], [], Aborts(), LIMITS, NOW)

    assert (found is not None) is blocks
    assert not blocks or found.again


def test_the_failure_stop_is_recorded_once():
    stopped = ineligible(T, Table(), [], history("ff"), Aborts(), LIMITS, NOW)
    again = ineligible(T, Table(), [], history("aff"), Aborts(), LIMITS, NOW)

    assert stopped.recorded
    assert again is not None
    assert not again.recorded


def decided(kind, state, aborted=(), max_aborts=10):
    ids = CompactorWriteIdList("d.t", 1000, None, tuple(aborted), frozenset(aborted))
    return decide(CompactionType(kind), state, ids, max_aborts, insert_only=False)


# COMP-13, with the cases COMP-W04 to COMP-W06, COMP-W10 to COMP-W13
@pytest.mark.parametrize(("kind", "names", "action"), [
    ("major", ["base_20", "delta_21_22", "delta_23_24"], Action.RUN),
    ("minor", ["base_20", "delta_21_22", "delta_23_24"], Action.RUN),
    ("major", ["000000_0"], Action.RUN),                                         # COMP-W06
    ("minor", ["000000_0", "delta_1_1", "delta_2_2"], Action.REFUSE),            # COMP-W05
    ("minor", ["delta_1_1", "delete_delta_2_2"], Action.REFUSE),                 # COMP-W11
    ("major", ["delta_1_1", "delete_delta_2_2"], Action.RUN),
    ("minor", ["delete_delta_1_1", "delete_delta_2_2"], Action.RUN),
    ("minor", ["delta_1_1", "delta_2_2", "delete_delta_3_3"], Action.RUN),
    ("major", ["base_20"], Action.REFUSE),                                       # COMP-W12
    ("major", ["delta_0_2"], Action.REFUSE),                                     # COMP-W10
    ("major", ["base_20", "base_10"], Action.CLEAN_ONLY),                        # COMP-W13
    ("minor", ["base_30", "delta_21_22"], Action.CLEAN_ONLY),
    ("rebalance", [], Action.RUN),
    ("major", [], Action.REFUSE)])
def test_what_a_worker_does(kind, names, action):
    assert decided(kind, directories(*names)).action is action


def test_only_aborted_directories_are_left_to_the_cleaner():
    state = directories("delta_1_1", "delta_2_2", aborted=(1, 2))

    assert decided("major", state, aborted=(1, 2)).action is Action.CLEAN_ONLY


@pytest.mark.parametrize(("kind", "names", "aborted", "action"), [
    ("major", ["base_20"], range(21, 32), Action.RUN),
    ("major", ["base_20"], range(21, 31), Action.REFUSE),      # as many as may be remembered
    ("major", ["base_20"], range(15, 26), Action.REFUSE),      # a new base ends five more than the present one
    ("major", ["delta_1_1"], range(21, 32), Action.RUN),
    ("major", [], range(21, 32), Action.RUN),
    ("minor", ["base_20"], range(21, 32), Action.REFUSE)])
def test_a_major_one_is_worth_it_where_a_base_ends_many_aborted_write_ids(kind, names, aborted, action):
    assert decided(kind, directories(*names), aborted).action is action


def test_a_refusal_says_what_was_found():
    reason = decided("minor", directories("base_20")).reason

    assert reason == ("None of the compaction thresholds met, compaction request for minor is refused: "
                      "0 deltas, a base.")


def test_empty_deltas_are_not_greater_than_an_empty_base():
    assert due(Measured(), DEFAULTS, insert_only=False).type is None


@pytest.mark.parametrize(("kind", "names", "expected"), [
    (CompactionType.MAJOR, ["base_5:10", "delta_6_6:1", "delta_7_7:1"], (2, 1200)),
    (CompactionType.MINOR, ["base_5:10", "delta_6_6:1", "delta_7_7:1"], (1, 200)),
    (CompactionType.MINOR, ["delta_6_6:1", "delete_delta_6_6:1", "delta_7_7:1", "delete_delta_7_7:1"], (2, 400)),
    (CompactionType.MINOR, ["delta_6_6:1", "delete_delta_7_7:1"], (0, 200)),
    (CompactionType.MINOR, [], (0, 0))])
def test_what_a_compaction_is_good_for(kind, names, expected):
    """Directories that readers need not open any more, and the bytes that are rewritten for it."""
    assert benefit(kind, measure(directories(*names)), 3) == (*expected, 3)


@pytest.mark.parametrize(("for_aborts", "names", "kind", "reason"), [
    (None, ["base_5:10", "delta_6_6:1"], None, "1 deltas, not more than 10"),
    (None, ["base_5:10", "delta_6_6:9"], CompactionType.MAJOR, "0.90 of the base"),
    (due_for_aborts(Aborts(too_old=True)), ["delta_6_6:1", "delta_7_7:1"], CompactionType.MINOR, "long ago"),
    (due_for_aborts(Aborts(too_many=True)), ["base_5:10"], None, "but: None of the compaction thresholds met")])
def test_what_a_worker_would_refuse_is_not_due(for_aborts, names, kind, reason):
    ids = CompactorWriteIdList("d.t", 1000, None, (), frozenset())
    said = examined(for_aborts, directories(*names), ids, DEFAULTS, 1000, insert_only=False)

    assert said.type is kind
    assert reason in said.reason


OTHER = Entity(TableName("hive", "d", "u"))
YESTERDAY = NOW - DAY


@pytest.mark.parametrize(("by_cleaner", "expected"), [
    (True, {T: Aborts(too_many=True)}),                                    # nothing asks for what the Cleaner removes
    (False, {T: Aborts(too_many=True, too_old=True), OTHER: Aborts(too_old=True)})])
def test_which_aborts_the_initiator_deals_with(by_cleaner, expected):
    """COMP-I35: several reasons add up. What is only remembered is never too old."""
    writes = {False: [(T, 2, YESTERDAY), (OTHER, 1, YESTERDAY)], True: [(T, 11, YESTERDAY), (OTHER, 10, YESTERDAY)]}
    rules = abort_rules(10, timedelta(hours=12), by_cleaner=by_cleaner)

    assert merged(each for rule in rules for each in rule.judged(writes[rule.cleaned], NOW)) == expected


@pytest.mark.parametrize(("aborts", "queued", "names", "kind", "reason"), [
    (Aborts(), [], deltas(11), CompactionType.MAJOR, "11 deltas, more than 10, and there is no base"),
    (Aborts(), [replace(request("r"), highest_write_id=7)], deltas(11), CompactionType.MAJOR, "11 deltas"),
    (Aborts(), [replace(request("r"), highest_write_id=1000)], deltas(11), None, "but: compaction 1 is ready for cleaning"),
    (Aborts(too_many=True), [], deltas(2), CompactionType.MAJOR, "too many aborted"),
    (Aborts(), [], deltas(2), None, "2 deltas, not more than 10"),
    (Aborts(too_old=True), [], None, CompactionType.MINOR, "long ago"),
    (Aborts(), [], None, None, "no aborted transaction")])
def test_the_verdict(aborts, queued, names, kind, reason):
    ids = CompactorWriteIdList("d.t", 1000, None, (), frozenset())
    said = verdict(Table(), aborts, queued, directories(*names) if names else None, ids, DEFAULTS, 1000)

    assert said.type is kind
    assert reason in said.reason
