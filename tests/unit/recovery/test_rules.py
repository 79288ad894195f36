"""What directories mean that a restored database does not know: tables of cases."""

import pytest

from metastore.acid.names import parse_directory
from metastore.errors import InvalidInputError
from metastore.recovery import rules
from metastore.recovery.rules import Known, RestoredDirectory, Void, VoidResult, verdict

# The database knows write ids up to 7 and transactions up to 99.
NEXT_WRITE_ID, NEXT_TXN = 8, 100


def listed(*names, partition=""):
    return [RestoredDirectory(partition, name, parse_directory(name)) for name in names]


def known(required=(), **more):
    return Known(NEXT_WRITE_ID, NEXT_TXN, required={"": set(required)}, **more)


def paths(found):
    return [one.path for one in found]


@pytest.mark.parametrize(("names", "void", "hidden"), [
    ("delta_0000007_0000007_0000", [], []),
    ("delta_0000008_0000008_0000", [8], ["delta_0000008_0000008_0000"]),
    ("delete_delta_0000009_0000009_0000", [9], ["delete_delta_0000009_0000009_0000"]),
    ("delta_0000006_0000009", [8, 9], ["delta_0000006_0000009"]),
    ("base_0000007", [], []),
    ("base_0000010", [10], ["base_0000010"]),
    ("base_0000005_v0000050", [], []),
], ids=lambda value: value if isinstance(value, str) else "")
def test_writes_that_the_database_does_not_know_are_void(names, void, hidden):
    decided = verdict(listed(*names.split()), known())

    assert sorted(decided.void) == [Void(write_id, "") for write_id in void]
    assert paths(decided.hidden) == hidden
    assert (decided.void_results, decided.finished, decided.kept) == (set(), set(), [])


def test_the_highest_write_id_is_of_any_directory():
    found = listed("delta_0000002_0000002", "base_0000031_v0000200", "delta_0000008_0000030", partition="p=1")

    assert verdict(found, known()).highest == 31
    assert verdict([], known()).highest == 0


def test_what_was_open_is_told_and_needs_no_new_owner():
    decided = verdict(listed("delta_0000006_0000006_0000", "delta_0000005_0000005_0000"), known(in_doubt={6}))

    assert (paths(decided.hidden), decided.void) == (["delta_0000006_0000006_0000"], set())
    assert decided.in_doubt == {Void(6, "")}


def test_a_compaction_whose_sources_are_there_is_void():
    found = listed("delta_0000001_0000001", "delta_0000002_0000002", "base_0000002_v0000200")
    decided = verdict(found, known(required=[1, 2]))

    assert decided.void_results == {VoidResult(200, "", 2)}
    assert (paths(decided.hidden), decided.finished) == (["base_0000002_v0000200"], set())


@pytest.mark.parametrize("required", [[1, 2], []], ids=["told by the database", "told by the listing alone"])
def test_a_compaction_is_the_only_copy_where_its_sources_are_gone(required):
    decided = verdict(listed("base_0000002_v0000200", "delta_0000003_0000003"), known(required=required))

    assert (decided.finished, decided.void_results, decided.kept, decided.hidden) == ({200}, set(), [], [])


def test_one_source_that_is_gone_is_enough():
    decided = verdict(listed("delta_0000002_0000002", "base_0000002_v0000200"), known(required=[1, 2]))

    assert decided.finished == {200}


def test_an_only_copy_with_rows_of_later_is_told():
    decided = verdict(listed("base_0000009_v0000200", "delta_0000009_0000009"), known(required=[5]))

    assert (decided.finished, paths(decided.kept)) == ({200}, ["base_0000009_v0000200"])
    assert paths(decided.hidden) == ["delta_0000009_0000009"]


def test_an_only_copy_is_a_source_of_the_next_compaction():
    """The first one holds what was known, the second one rows of later as well: only that one is void."""
    found = listed("base_0000009_v0000300", "base_0000005_v0000200", "delta_0000009_0000009")
    decided = verdict(found, known(required=[5]))

    assert decided.finished == {200}
    assert decided.void_results == {VoidResult(300, "", 9)}
    assert sorted(paths(decided.hidden)) == ["base_0000009_v0000300", "delta_0000009_0000009"]


def test_a_compaction_that_was_open_is_not_known_either():
    found = listed("delta_0000001_0000001", "base_0000001_v0000050")

    assert verdict(found, known(required=[1], open_txns={50})).void_results == {VoidResult(50, "", 1)}
    assert verdict(found[1:], known(required=[1], open_txns={50})).finished == {50}


def test_what_was_aborted_before_is_nobodys_source():
    decided = verdict(listed("base_0000005_v0000060", "base_0000005_v0000200"), known(required=[5], aborted_txns={60}))

    assert decided.finished == {200}


def test_partitions_have_sources_of_their_own():
    found = [*listed("delta_0000001_0000001", partition="p=1"), *listed("base_0000001_v0000200", partition="p=2")]

    assert verdict(found, known()).finished == {200}


def test_a_directory_that_names_more_ids_than_there_can_be_stops_it():
    with pytest.raises(InvalidInputError, match="delta_0000008_9999999999 names .* Move it away"):
        verdict(listed("delta_0000008_9999999999"), known())


def test_a_result_below_another_source_only_counts_what_it_spans():
    """A minor compaction: what is required lies elsewhere, and a delta inside of it is there."""
    decided = verdict(listed("delta_0000004_0000004", "delta_0000003_0000005_v0000200"), known(required=[1]))

    assert decided.void_results == {VoidResult(200, "", 5)}


def test_gaps_leave_room():
    assert rules.TXN_GAP > 10_000 * 24 * 3600
