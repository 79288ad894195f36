"""The checker finds each anomaly in a history that has nothing else wrong with it, and finds nothing in a good one."""

from math import inf

import pytest

from tests.robustness.checker.check import check
from tests.robustness.checker.history import Answer, Append, Base, Call, History, Read, Unreadable, View


def opened(txn, start, end=None, *, read_only=False):
    return Call("open_txns", start, end or start + 0.1, Answer.OK, {"ids": [txn], "read_only": read_only})


def commit(txn, start, end=None, answer=Answer.OK):
    return Call("commit_txn", start, end or start + 0.1, answer, {"txn": txn})


def snapshot(start, mark, *still_open, aborted=(), end=None, method="get_open_txns_info"):
    facts = {"mark": mark, "open": list(still_open), "aborted": list(aborted)}
    return Call(method, start, end or start + 0.1, Answer.OK, facts)


def allocated(table, start, answer=Answer.OK, **owners):
    return Call("allocate_table_write_ids", start, start + 0.1, answer,
                {"table": table, "write_ids": {name[1:]: write_id for name, write_id in owners.items()},
                 "txns": [name[1:] for name in owners], "reallocate": False})


def locked(lock_id, start, kind="exclusive", txn=0, place=("db", "ice", ""), state="acquired", owner="ann"):
    return Call("lock", start, start + 0.1, Answer.OK,
                {"owner": owner, "txn": txn, "components": [[kind, *place]], "lock": lock_id, "state": state})


def unlocked(lock_id, start):
    return Call("unlock", start, start + 0.1, Answer.OK, {"owner": "ann", "lock": lock_id})


def heartbeat(lock_id, start):
    return Call("heartbeat", start, start + 0.1, Answer.OK, {"owner": "ann", "txn": 0, "lock": lock_id})


def history(*parts, states=None, **more):
    found = History(**more)
    for part in parts:
        {Call: found.calls, View: found.views, Read: found.reads, Append: found.appends, Base: found.bases,
         Unreadable: found.unreadable}[type(part)].append(part)
    found.states = states or {append.txn: "committed" for append in found.appends} | {
        read.txn: "committed" for read in found.reads}
    return found


def kinds(*parts, **more):
    return {anomaly.kind for anomaly in check(history(*parts, **more))}


def changed(txn, key, element, write_id):
    return Append(txn, key, element, write_id, changes=True)


def added(txn, key, element, write_id):
    return Append(txn, key, element, write_id, changes=False)


GOOD = (
    opened(1, 0), View(1, 0.2, 0.3, 1, frozenset()), Read(1, "t/a", ()), changed(1, "t/a", "x", 1), commit(1, 0.5),
    opened(2, 1), View(2, 1.2, 1.3, 2, frozenset()), Read(2, "t/a", ("x",)), changed(2, "t/a", "y", 2), commit(2, 1.5),
    snapshot(1.2, 2, 2), allocated("t", 0.3, T1=1), allocated("t", 1.3, T2=2))


def test_a_serial_history_is_good():
    assert kinds(*GOOD) == set()


def test_two_inserts_that_do_not_see_each_other_are_good():
    assert kinds(Read(1, "t/a", ()), added(1, "t/a", "x", 1), Read(2, "t/a", ()), added(2, "t/a", "y", 2)) == set()


def test_write_skew_is_allowed():
    assert kinds(Read(1, "t/a", ()), Read(1, "t/b", ()), changed(1, "t/a", "x", 1),
                 Read(2, "t/a", ()), Read(2, "t/b", ()), changed(2, "t/b", "y", 2)) == set()


def test_g0_two_transactions_overwrite_each_other():
    assert "G0" in kinds(changed(1, "t/a", "x", 1), changed(2, "t/a", "y", 2), changed(1, "u/b", "z", 2),
                         changed(2, "u/b", "w", 1))


@pytest.mark.parametrize("state", ["aborted", None])
def test_g1a_something_aborted_or_unknown_is_read(state):
    states = {2: "committed"} | ({1: state} if state else {})
    assert kinds(added(1, "t/a", "x", 1), Read(2, "t/a", ("x",)), states=states) == {"G1a"}


def test_g1a_something_that_nobody_wrote_is_read():
    assert kinds(Read(2, "t/a", ("x",))) == {"G1a"}


def test_g1b_half_of_a_transaction_is_read():
    parts = (added(1, "t/a", "x", 1), added(1, "t/a", "y", 1), opened(2, 0), Read(2, "t/a", ("x",)))
    assert "G1b" in kinds(*parts)
    assert "G1b" not in kinds(*parts, states={1: "committed", 2: "aborted"})   # it was ended while it listed the files


def test_g1c_two_transactions_see_each_other():
    assert "G1c" in kinds(added(1, "t/a", "x", 1), Read(1, "t/b", ("y",)), added(2, "t/b", "y", 1), Read(2, "t/a", ("x",)))


def test_g_single_a_reader_sees_one_write_of_a_transaction_and_not_the_other():
    assert kinds(added(1, "t/a", "x", 1), added(1, "u", "y", 1), Read(2, "t/a", ("x",)), Read(2, "u", ())) == {"G-single"}


def test_g_single_through_a_third_transaction():
    assert kinds(added(1, "t/a", "x", 1), Read(2, "t/a", ("x",)), added(2, "t/b", "y", 2), Read(3, "t/b", ("y",)),
                 Read(3, "t/a", ())) == {"G-single"}


def test_a_read_that_changes_under_one_snapshot():
    assert kinds(added(1, "t/a", "x", 1), Read(2, "t/a", ()), Read(2, "t/a", ("x",))) == {"G-single"}


def test_lost_update():
    assert kinds(Read(1, "t/a", ()), changed(1, "t/a", "x", 1), Read(2, "t/a", ()), changed(2, "t/a", "y", 2)) == {
        "lost update"}


def test_lost_update_of_a_read_in_between():
    assert "lost update" in kinds(
        Read(1, "t/a", ()), changed(1, "t/a", "x", 1), Read(2, "t/a", ("x",)), changed(2, "t/a", "y", 2),
        Read(3, "t/a", ("x",)), changed(3, "t/a", "z", 3))


def test_what_did_not_commit_loses_nothing():
    parts = (Read(1, "t/a", ()), changed(1, "t/a", "x", 1), Read(2, "t/a", ()), changed(2, "t/a", "y", 2))
    assert kinds(*parts, states={1: "committed", 2: "aborted"}) == set()


@pytest.mark.parametrize("state", ["open", "aborted", None])
def test_an_acknowledged_commit_that_is_missing(state):
    states = {1: state} if state else {9: "open"}
    assert kinds(added(1, "t/a", "x", 1), commit(1, 0), states=states) == {"acknowledged commit missing"}


def test_a_refused_commit_that_happened():
    assert kinds(added(1, "t/a", "x", 1), commit(1, 0, answer=Answer.FAIL)) == {"refused commit happened"}


def test_an_unknown_commit_may_have_happened_or_not():
    for state in ("committed", "aborted"):
        assert kinds(added(1, "t/a", "x", 1), commit(1, 0, inf, answer=Answer.UNKNOWN), states={1: state}) == set()


def test_an_acknowledged_abort_that_is_committed():
    abort = Call("abort_txn", 0, 0.1, Answer.OK, {"txn": 1})
    assert kinds(added(1, "t/a", "x", 1), abort) == {"acknowledged abort missing"}


@pytest.mark.parametrize(("told", "state", "wrong"), [
    ("committed", "committed", False), ("aborted", "aborted", False), ("open", "committed", False), ("open", "aborted", False),
    ("unknown", "committed", False),
    ("committed", "aborted", True), ("aborted", "committed", True), ("never_opened", "committed", True)])
def test_an_outcome_that_is_not_so(told, state, wrong):
    asked = Call("metastore_txn_outcome", 1, 1.1, Answer.OK, {"txn": 1, "outcome": told})
    assert (kinds(added(1, "t/a", "x", 1), asked, states={1: state}) == {"wrong outcome told"}) is wrong


def test_an_id_that_is_opened_below_an_earlier_mark():
    assert kinds(*GOOD, snapshot(2, 5), opened(4, 3)) >= {"id below the mark"}


def test_an_id_that_is_seen_open_below_an_earlier_mark():
    assert kinds(*GOOD, snapshot(2, 5), snapshot(3, 5, 4)) == {"id below the mark"}


def test_an_id_that_gets_a_write_id_below_an_earlier_mark():
    assert kinds(*GOOD, snapshot(2, 5), allocated("u", 3, T4=1)) == {"id below the mark"}


def test_an_id_that_is_listed_may_be_seen_again():
    assert kinds(*GOOD, snapshot(2, 5, 4, aborted=[3]), snapshot(3, 5, 4, aborted=[3])) == set()


def test_snapshots_at_the_same_time_say_nothing():
    assert kinds(*GOOD, snapshot(2, 5, end=9), snapshot(3, 5, 4, end=4)) == set()


def test_snapshots_that_hide_read_only_transactions_say_nothing_about_them():
    parts = (*GOOD, opened(4, 2, read_only=True), snapshot(3, 4, method="get_open_txns"), snapshot(4, 4, 4))
    assert kinds(*parts) == set()


def test_a_crash_may_bring_back_what_wrote_nothing():
    parts = (*GOOD, opened(4, 2), commit(4, 3), snapshot(4, 4), snapshot(6, 4, 4))
    assert kinds(*parts) == {"id below the mark"}
    assert kinds(*parts, crashes=[5.0]) == set()
    assert "id below the mark" in kinds(*parts, added(4, "t/c", "z", 3), crashes=[5.0])


@pytest.mark.parametrize(("later", "wrong"), [
    (snapshot(3, 2), True), (snapshot(3, 2, aborted=[1]), False), (snapshot(0.2, 2, end=4), False),
    (Call("abort_txn", 2, 2.1, Answer.FAIL, {"txn": 1}), False),
    (Call("abort_txns", 2, 2.1, Answer.OK, {"txns": [1]}), False), (commit(1, 2, answer=Answer.FAIL), False)])
def test_a_writer_that_somebody_else_aborted_and_that_is_forgotten(later, wrong):
    parts = [opened(1, 0, 0.5), added(1, "t/a", "x", 1), later]
    if later.method != "get_open_txns_info":
        parts.append(snapshot(3, 2))

    assert ("aborted id forgotten" in kinds(*parts, states={1: "aborted"})) == wrong


@pytest.mark.parametrize(("bases", "wrong"), [
    ([], True), ([("t/a", 5, 7, 2)], False), ([("t/a", 4, 7, 2)], True), ([("t/b", 5, 7, 2)], True), ([("t/a", 5, 8, 2)], True),
    ([("t/a", 5, 7, 3.5)], True), ([("t/a", 4, 7, 2), ("t/a", 6, 7, 2.5)], False)])
def test_a_base_that_covers_all_that_it_wrote_lets_an_aborted_writer_go(bases, wrong):
    parts = [opened(1, 0, 0.5), added(1, "t/a", "x", 5), snapshot(3, 9), *(Base(*base) for base in bases)]
    states = {7: "committed", 8: "aborted"}
    assert ("aborted id forgotten" in kinds(*parts, states=states)) == wrong
    elsewhere = added(1, "t/c", "y", 2)   # also what it published afterwards
    assert "aborted id forgotten" in kinds(*parts, elsewhere, states=states)


def test_an_element_that_was_found_twice():
    assert kinds(*GOOD, added(4, "t/d", "w", 4), Read(5, "t/d", ("w", "w"))) == {"found twice"}


def test_an_open_reader_whose_directories_were_cleaned():
    assert kinds(*GOOD, Unreadable(5, "t/d", "not enough history")) == {"cleaned too early"}


def test_an_open_transaction_that_a_snapshot_does_not_list():
    assert kinds(opened(1, 0), added(1, "t/a", "x", 1), snapshot(1, 1), commit(1, 2)) == {"open id missing"}


def test_a_commit_that_the_next_transaction_does_not_see():
    parts = [part for part in GOOD if not isinstance(part, View)]
    assert kinds(*parts, View(2, 1.2, 1.3, 2, frozenset({1}))) == {"commit not visible", "read against the snapshot"}


def test_a_view_of_what_is_committed_later():
    assert kinds(opened(1, 0), added(1, "t/a", "x", 1), View(2, 0.5, 0.6, 2, frozenset()), commit(1, 1)) == {
        "view of the future"}


def test_a_read_that_finds_more_or_less_than_its_snapshot():
    seen = (added(1, "t/a", "x", 1), commit(1, -1), View(2, 0, 0.1, 2, frozenset()))
    hidden = (added(1, "t/a", "x", 1), View(2, 0, 0.1, 2, frozenset({1})))
    assert kinds(*seen, Read(2, "t/a", ())) == {"read against the snapshot"}
    assert kinds(*hidden, Read(2, "t/a", ("x",))) == {"read against the snapshot"}
    assert kinds(*hidden, Read(2, "t/a", ())) == set()
    assert kinds(*hidden, Read(2, "t/a", ("x",)), states={1: "committed", 2: "aborted"}) == set()


def test_a_transaction_id_that_is_given_twice():
    assert "id given twice" in kinds(opened(1, 0), opened(1, 1))


def test_a_transaction_id_that_goes_back():
    assert kinds(opened(2, 0), opened(1, 1)) == {"ids out of order"}


def test_a_write_id_that_is_given_twice():
    assert "id given twice" in kinds(allocated("t", 0, T1=1), allocated("t", 1, T2=1))


def test_a_write_id_that_goes_back():
    assert kinds(allocated("t", 0, T1=2), allocated("t", 1, T2=1)) == {"ids out of order"}


def test_write_ids_may_be_asked_for_again_and_are_counted_by_table():
    assert kinds(allocated("t", 0, T1=1), allocated("t", 1, T2=2), allocated("t", 2, T1=1), allocated("u", 3, T3=1)) == set()


def test_an_allocation_whose_first_answer_was_lost_may_be_old():
    assert kinds(allocated("t", 0, Answer.UNKNOWN, T1=1), allocated("t", 1, T2=2), allocated("t", 2, T1=1)) == set()


def test_a_write_under_the_write_id_of_another():
    assert kinds(allocated("t", 0, T1=1), added(2, "t/a", "x", 1)) == {"write id of another"}


def test_a_lock_without_a_transaction_that_two_hold():
    assert kinds(locked(1, 0), locked(2, 1), timeout=300) == {"lock held by two"}
    assert kinds(locked(1, 0), unlocked(1, 0.5), locked(2, 1), timeout=300) == set()


def test_one_lock_that_two_are_told_to_hold():
    assert kinds(locked(1, 0), locked(1, 1, owner="bob"), timeout=300) == {"lock held by two"}
    assert kinds(locked(1, 0), locked(1, 1), timeout=300) == set()


def test_a_lock_may_be_relied_on_for_one_time_out_after_the_last_heartbeat():
    assert kinds(locked(1, 0), locked(2, 3), timeout=2) == set()
    assert kinds(locked(1, 0), heartbeat(1, 1.5), locked(2, 3), timeout=2) == {"lock held by two"}


def test_a_lock_that_is_granted_later_counts_from_then():
    check_lock = Call("check_lock", 2, 2.1, Answer.OK, {"owner": "ann", "lock": 2, "state": "acquired"})
    assert kinds(locked(1, 0), unlocked(1, 1), locked(2, 0.5, state="waiting"), check_lock, timeout=300) == set()
    assert kinds(locked(1, 0), unlocked(1, 3), locked(2, 0.5, state="waiting"), check_lock, timeout=300) == {
        "lock held by two"}


@pytest.mark.parametrize(("one", "other", "together"), [
    ("shared_read", "shared_read", True), ("shared_read", "shared_write", True), ("shared_read", "excl_write", True),
    ("shared_write", "shared_write", True), ("shared_write", "excl_write", False), ("excl_write", "excl_write", False),
    ("shared_read", "exclusive", False), ("exclusive", "exclusive", False)])
def test_which_locks_may_be_held_together(one, other, together):
    for first, second in ((one, other), (other, one)):
        assert (kinds(locked(1, 0, first), locked(2, 1, second), timeout=300) == set()) is together


def test_locks_on_different_partitions_and_tables_are_held_together():
    assert kinds(locked(1, 0, place=("db", "t", "p=1")), locked(2, 1, place=("db", "t", "p=2")), timeout=300) == set()
    assert kinds(locked(1, 0, place=("db", "t", "")), locked(2, 1, place=("db", "u", "")), timeout=300) == set()
    assert kinds(locked(1, 0, place=("db", "t", "")), locked(2, 1, place=("db", "t", "p=2")), timeout=300) == {
        "lock held by two"}


def test_a_grant_that_arrives_after_the_time_out_holds_nothing():
    late = Call("lock", 0, 3, Answer.OK, {"owner": "bob", "txn": 0, "components": [["exclusive", "db", "ice", ""]],
                                          "lock": 2, "state": "acquired"})
    assert kinds(late, locked(1, 2.5), timeout=2) == set()


def test_a_transaction_gets_on_with_itself():
    parts = (added(1, "t", "x", 1), locked(1, 0, txn=1), locked(2, 1, txn=1), commit(1, 2))
    assert kinds(*parts) == set()


def test_locks_of_transactions_count_if_both_commit():
    parts = (added(1, "t", "x", 1), added(2, "t", "y", 2), locked(1, 0, txn=1), locked(2, 1, txn=2), commit(1, 2), commit(2, 3))
    assert kinds(*parts) == {"lock held by two"}
    assert kinds(*parts, states={1: "aborted", 2: "committed"}) == {"acknowledged commit missing"}
    one_after_the_other = [part if part != parts[4] else replace_start(part, 0.5) for part in parts]
    assert kinds(*one_after_the_other) == set()


def replace_start(call, start):
    return call._replace(start=start, end=start + 0.1)


def test_few_witnesses_of_each_kind_are_told():
    many = history(*(Read(2, f"t/{number}", ("x",)) for number in range(50)))
    assert len(check(many)) == 5
