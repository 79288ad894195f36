"""States, duplicates, failure stop, dead claims, retries and retention (COMP-1 to COMP-3, COMP-7, COMP-22)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from metastore.compaction.queue.rules.requests import (
    ACTIVE,
    TRANSITIONS,
    Compaction,
    CompactionState,
    CompactionType,
    Entity,
    Retention,
    cleaner_retry_delay,
    expendable,
    is_active_duplicate,
    is_claim_dead,
    is_final_failure,
    is_left_by,
    is_stopped_by_failures,
    is_switched_on,
    may_become,
    outside_cause,
    put_off,
)
from metastore.errors import InvalidRequestError
from metastore.ids import TableName

NOW = datetime(2026, 1, 10, tzinfo=UTC)
DAY = timedelta(days=1)
STATES = {state.code: state for state in CompactionState}


def request(state="i", kind="minor", number=1, **fields):
    blank = Compaction(number, Entity(TableName("hive", "d", "t")), STATES[state], CompactionType(kind), {}, None, None,
                       None, None, None, None, None, None, enqueued_at=NOW - DAY)
    return replace(blank, **fields)


def history(codes, kind="minor", **fields):
    """``fsa``: the newest is the first."""
    return [request(code, kind, number=len(codes) - place, **fields) for place, code in enumerate(codes)]


@pytest.mark.parametrize(("state", "code", "display"), [
    ("initiated", "i", "initiated"), ("working", "w", "working"),
    ("ready_for_cleaning", "r", "ready for cleaning"), ("failed", "f", "failed"), ("succeeded", "s", "succeeded"),
    ("did_not_initiate", "a", "did not initiate"), ("refused", "c", "refused"), ("aborted", "x", "aborted")])
def test_states_in_hives_letters_and_words(state, code, display):
    found = CompactionState(state)

    assert (found.code, found.display) == (code, display)
    assert {CompactionState.parse(text) for text in (code, display.upper(), state)} == {found}


def test_unknown_states_and_types_are_refused():
    with pytest.raises(InvalidRequestError, match="use one of initiated"):
        CompactionState.parse("done")
    with pytest.raises(InvalidRequestError, match="type 5"):
        CompactionType.of_number(5)


@pytest.mark.parametrize(("number", "kind"), [(1, "minor"), (2, "major"), (3, "rebalance"), (4, "abort_txn_cleanup")])
def test_types_have_the_wires_numbers(number, kind):
    assert CompactionType.of_number(number) == kind
    assert CompactionType(kind).number == number


# COMP-T1 to COMP-T17; "-" is "not there yet". "ws": a remote Worker that has nothing to do.
ARROWS = {"-i", "-r", "-a", "-c", "iw", "ix", "wi", "ww", "wr", "ws", "wf", "wc", "rr", "rs", "rf", "rc"}


def test_exactly_the_specified_arrows_exist():
    letters = {None: "-", **{state: state.code for state in CompactionState}}
    found = {letters[before] + after.code for before in letters for after in CompactionState if may_become(before, after)}

    assert found == ARROWS
    assert set(TRANSITIONS) - {None} == {CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY_FOR_CLEANING}


@pytest.mark.parametrize(("existing", "duplicate"), [
    (request("i"), True), (request("w"), True),
    (request("r", "major", highest_write_id=7), True), (request("r", "major", highest_write_id=6), False),
    (request("r", "abort_txn_cleanup", highest_write_id=7), False), (request("s", highest_write_id=7), False)])
def test_a_request_repeats_another_one(existing, duplicate):
    """COMP-Q02, COMP-Q03: write id 7 is the newest that a compaction could reach."""
    assert is_active_duplicate(existing, CompactionType.MAJOR, 7) is duplicate
    assert is_active_duplicate(existing, CompactionType.REBALANCE, 7) is (existing.state in ACTIVE)
    assert is_active_duplicate(existing, CompactionType.MINOR, 7) is duplicate


def test_a_major_compaction_has_something_to_do_behind_a_minor_one():
    """COMP-Q03, other than Hive: its cleaning may wait for days, since the table keeps its past."""
    waiting = request("r", "minor", highest_write_id=7)
    assert is_active_duplicate(waiting, CompactionType.MINOR, 7)
    assert not is_active_duplicate(waiting, CompactionType.MAJOR, 7)
    assert is_active_duplicate(request("i", "minor"), CompactionType.MAJOR, 7)


@pytest.mark.parametrize(("codes", "age", "retry", "stopped"), [
    ("", DAY, DAY * 7, False),
    ("f", DAY, DAY * 7, False),
    ("ff", DAY, DAY * 7, True),            # COMP-I23
    ("ff", DAY * 8, DAY * 7, False),       # COMP-I23, COMP-Q22: old enough to be tried again
    ("fsf", DAY, DAY * 7, False),          # COMP-I24
    ("ff", DAY * 900, DAY * 0, True),      # COMP-I24: zero is never
    ("aff", DAY, DAY * 7, True),           # only succeeded and failed count
    ("cfxf", DAY, DAY * 7, True),
    ("sff", DAY, DAY * 7, False),          # COMP-I25
])
def test_failure_stop(codes, age, retry, stopped):
    rows = history(codes, enqueued_at=NOW - age)

    assert is_stopped_by_failures(rows, 2, retry, NOW) is stopped


MINUTE = timedelta(minutes=1)
DISK_FULL = ("The compaction job ended with status 1: Py4JJavaError: An error occurred while calling o81.save. "
             "java.io.IOException: No space left on device (its log: /tmp/failed-compaction-7/job.log)")  # fmt: skip
FORBIDDEN = ("The compaction job ended with status 1: Py4JJavaError: An error occurred while calling o277.save. java.io.IOException: Mkdirs failed to "
             "create file:/w/t/.compaction_6_0/tasks/_temporary/0 (exists=false, cwd=file:/) (its log: /tmp/failed-compaction-7/job.log)")  # fmt: skip
CORRUPT = ("The compaction job ended with status 1: Py4JJavaError: An error occurred while calling o81.save. "
           "java.io.IOException: Problem opening stripe 0 footer in file:/w/t/base_0000001/bucket_00000.")  # fmt: skip


@pytest.mark.parametrize(("message", "cause"), [
    (DISK_FULL, "no space left on device"),
    (FORBIDDEN, "mkdirs failed to create"),
    ("OSError: The file system refuses to rename file:/w/t/.compaction_6_0/out to file:/w/t/base_0000001_v0000006", "the file system refuses to"),
    ("OSError: [Errno 28] No space left on device", "no space left on device"),
    ("Lost task 0.3 in stage 1.0 (TID 5) (h executor 3): ExecutorLostFailure (executor 3 exited)", "executorlostfailure"),
    ("All masters are unresponsive! Giving up.", "all masters are unresponsive"),
    ("java.net.ConnectException: Call From a to nn:8020 failed: Connection refused", "connection refused"),
    ("org.apache.hadoop.security.AccessControlException: Permission denied: user=m", "permission denied"),
    ("s3a://b/x: com.amazonaws.AmazonS3Exception: Access Denied (Status Code: 403)", "access denied"),
    ("s3://b: s3 did not answer within 60 s", "did not answer within"),
    (CORRUPT, None), ("UnprovenError: bucket 0: 10 rows went in, 9 came out", None), ("", None), (None, None)])
def test_a_cause_that_lies_outside_of_the_table(message, cause):
    assert outside_cause(message) == cause


@pytest.mark.parametrize(("failed", "until"), [
    ([], None),
    ([(0, CORRUPT)], None),
    ([(0, DISK_FULL)], MINUTE * 5),
    ([(0, DISK_FULL), (-1, DISK_FULL)], MINUTE * 5),
    ([(0, DISK_FULL), (-10, DISK_FULL)], MINUTE * 20),
    ([(0, DISK_FULL), (-10, CORRUPT)], MINUTE * 5),
    ([(0, CORRUPT), (-10, DISK_FULL)], None),
    ([(0, DISK_FULL), (-60 * 24, DISK_FULL)], MINUTE * 360)])
def test_the_pause_after_a_failure_from_outside_doubles(failed, until):
    rows = [request("f", number=9 - place, ended_at=NOW + MINUTE * at, error_message=message)
            for place, (at, message) in enumerate(failed)]
    assert put_off(rows) == (until and (NOW + until, "no space left on device"))


@pytest.mark.parametrize(("messages", "stopped"), [
    ([DISK_FULL] * 3, False), ([CORRUPT] * 2, True), ([DISK_FULL, CORRUPT], False), ([CORRUPT, DISK_FULL, CORRUPT], True)])
def test_a_failure_from_outside_is_not_counted(messages, stopped):
    rows = [request("f", number=9 - place, error_message=message) for place, message in enumerate(messages)]
    assert is_stopped_by_failures(rows, 2, DAY * 7, NOW) is stopped


@pytest.mark.parametrize(("fields", "txn_state", "why"), [
    ({"heartbeat_at": NOW - MINUTE}, "open", None),
    ({"heartbeat_at": NOW - MINUTE * 2}, "open", None),
    ({"heartbeat_at": NOW - MINUTE * 3}, "open", "no sign of life for 180 s"),
    ({"txn_id": 5}, "open", None),                                           # Hive's worker: no lease
    ({"txn_id": 5}, "aborted", "transaction 5"),
    ({"txn_id": None}, "aborted", None),
    ({"txn_id": 5}, None, None),
    ({"started_at": NOW - DAY - MINUTE}, "open", "at it for"),               # COMP-I03
])
def test_when_a_claim_is_dead(fields, txn_state, why):
    claimed = request("w", **{"worker_id": "w-1", "started_at": NOW - MINUTE, **fields})
    reason = is_claim_dead(claimed, NOW, MINUTE * 2, DAY, txn_state)

    assert (reason is None) if why is None else why in reason


def test_cleaner_retries_double_and_end():
    """COMP-C19: 100, 200, 400 ms with three attempts; COMP-C21: none with zero."""
    first = timedelta(milliseconds=100)

    assert [cleaner_retry_delay(failures, first) / first for failures in (1, 2, 3)] == [1, 2, 4]
    assert [is_final_failure(failures, 3) for failures in (1, 2, 3, 4)] == [False, False, False, True]
    assert is_final_failure(1, 0)


KEEP_TWO = Retention(2, 2, 2, 2, DAY * 7)


def kept(rows, retention=KEEP_TWO):
    gone = set(expendable(rows, retention, NOW))
    return "".join(row.state.code for row in rows if row.id not in gone)


@pytest.mark.parametrize(("codes", "left"), [
    ("sssfffaaaccc", "ssffaacc"),          # COMP-Q17
    ("ffff", "ff"),
    ("xxx", "xx"),                         # Hive never purges these
    ("", "")])
def test_enough_newer_ones_of_its_state(codes, left):
    assert kept(history(codes)) == left


OLD = {"started_at": NOW - DAY * 8}


@pytest.mark.parametrize(("newer", "older", "left"), [
    (history("s", "minor"), history("fac", "minor", **OLD), "s"),            # COMP-Q18
    (history("s", "major"), history("fac", "minor", **OLD), "s"),            # COMP-Q19
    (history("s", "minor"), history("fac", "major", **OLD), "sfac"),         # COMP-Q20
    (history("s", "major"), history("fac", "major", **OLD), "s"),
    (history("s", "rebalance"), history("fac", "major", **OLD), "sfac"),     # rebalance counts as non-major
    (history("f", "major"), history("ac", "major", **OLD), "fac"),           # nothing succeeded
    (history("s", "major"), history("s", "major", **OLD), "ss"),             # successes do not time out
    (history("s", "major"), history("f", "minor"), "sf"),                    # not old enough
])
def test_timed_out_rows_go_once_something_newer_succeeded(newer, older, left):
    rows = [replace(row, id=100 - place) for place, row in enumerate([*newer, *older])]

    assert kept(rows) == left


def test_what_alone_tells_how_far_files_were_removed_stays():
    def cleaned(state, number, up_to, began=NOW):
        return request(state, "major", number, highest_write_id=up_to, cleaner_started_at=began)

    rows = [*history("fff", highest_write_id=90), cleaned("f", -1, 50), cleaned("s", -2, 40), cleaned("s", -3, 30),
            cleaned("s", -4, 60), cleaned("f", -5, 70, None)]

    assert kept(rows) == "fffsss", "besides two of each state those that tell of 50 and of 60"


def test_an_older_success_covers_nothing():
    rows = [replace(row, id=10 - place) for place, row in enumerate([*history("f", **OLD), *history("s", "major")])]

    assert kept(rows) == "fs"


@pytest.mark.parametrize(("parameters", "on"), [
    ({"NO_CLEANUP": "true"}, True), ({"no_cleanup": "True "}, True), ({"no_cleanup": "false"}, False), ({}, False)])
def test_switches_are_found_in_any_case(parameters, on):
    assert is_switched_on(parameters, "no_cleanup") is on


@pytest.mark.parametrize(("partition", "text"), [("", "d.t"), ("p=1", "d.t/p=1")])
def test_an_entity_reads_as_hive_writes_it(partition, text):
    assert str(Entity(TableName("hive", "d", "t"), partition)) == text


@pytest.mark.parametrize(("place", "left"), [
    (None, False), (("file", "w", "t"), True), (("file", "w", "t.v7"), True), (("file", "w", "t.v"), False), (("file", "w", "u"), False)])
def test_a_place_that_a_dropped_object_may_have_left(place, left):
    assert is_left_by(place, [("file", "w", "t"), None]) is left
