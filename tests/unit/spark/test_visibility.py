"""Which events count: the conditions of a reader and of a compaction, for the same directories."""

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, ListedFile, acid_state
from metastore.spark.read.conditions import visible

WRITE_IDS = ValidWriteIdList("db.t", 9, 8, (5, 8), frozenset({5}))  # 5 is aborted, 8 is open


def _state(write_ids: ValidWriteIdList, *directories: str, marked: bool = True) -> AcidState:
    listing = [ListedFile(f"{name}/{file}", 10) for name in directories
               for file in ("bucket_00000", *(["_orc_acid_version"] if marked else []))]
    return acid_state(listing, write_ids, ValidTxnList.everything(), lambda path: b"")


def _conditions(state: AcidState, write_ids: ValidWriteIdList, *, deletes: bool = False) -> list[str]:
    return visible([state], write_ids, deletes=deletes, operation="op", by="by")


def test_names_of_directories_tell_most_of_it() -> None:
    assert _conditions(_state(WRITE_IDS, "base_2", "delta_3_3", "delta_4_4"), WRITE_IDS) == []
    assert _conditions(_state(WRITE_IDS, "delete_delta_3_3"), WRITE_IDS, deletes=True) == ["op = 2"]


def test_only_where_hive_before_3_may_have_written_is_the_operation_asked_for() -> None:
    assert _conditions(_state(WRITE_IDS, "delta_3_3", marked=False), WRITE_IDS) == ["op < 2"]


def test_invisible_write_ids_among_visible_ones_are_left_out() -> None:
    state = _state(WRITE_IDS, "delta_3_9", "delete_delta_3_4")
    assert _conditions(state, WRITE_IDS) == ["by <= 9L", "by NOT IN (5L, 8L)"]
    assert _conditions(state, WRITE_IDS, deletes=True) == ["op = 2"]


def test_a_compaction_leaves_out_what_is_aborted_and_takes_nothing_above_what_is_open() -> None:
    write_ids = WRITE_IDS.for_compactor()
    state = _state(write_ids, "delta_3_7", "delta_9_9", "delete_delta_3_7")
    assert [str(delta.path) for delta in state.deltas] == ["delete_delta_3_7", "delta_3_7"]
    assert _conditions(state, write_ids) == ["by NOT IN (5L)"]
    assert _conditions(state, write_ids, deletes=True) == ["op = 2", "by NOT IN (5L)"]
