"""Whether a listing that was kept still tells what there is."""

from datetime import timedelta

import pytest

from metastore.compaction.initiating.rules import Aborts, Thresholds, ruled_out
from metastore.compaction.inventory.rules import Measured, MeasuredListing, StoredInventory
from metastore.compaction.queue.rules.requests import Entity
from metastore.ids import TableName
from tests.unit.compaction.initiating.test_rules import Table
from tests.unit.compaction.queue.test_requests import NOW

T = Entity(TableName("hive", "d", "t"))
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
LISTED_AT = NOW - 10 * MINUTE


@pytest.mark.parametrize(("location", "written", "compacted_at", "age", "holds"), [
    ("file:/t", 0, None, 10 * MINUTE, True),
    ("file:/t", 7, None, 10 * MINUTE, True),
    ("file:/u", 0, None, 10 * MINUTE, False),
    ("file:/t", 8, None, 10 * MINUTE, False),
    ("file:/t", 7, LISTED_AT - 3 * MINUTE, 10 * MINUTE, True),
    ("file:/t", 7, LISTED_AT - MINUTE, 10 * MINUTE, False),  # stamped before the listing, it may have ended after it
    ("file:/t", 7, LISTED_AT + MINUTE, 10 * MINUTE, False),
    ("file:/t", 7, None, DAY, False),
    ("file:/t", 7, None, DAY - MINUTE, True),
    ("file:/t", 7, None, -MINUTE, False),  # the clock was set back: its age is unknown
])
def test_what_was_listed_holds_until_something_is_known_to_have_happened(location, written, compacted_at, age, holds):
    kept = StoredInventory(MeasuredListing(T, "file:/t", LISTED_AT, 7, Measured()), written, compacted_at)

    assert kept.holds(location, LISTED_AT + age, DAY) is holds


FEW, MANY, GROWN = Measured(1000, 10, 3), Measured(1000, 10, 11), Measured(1000, 200, 1)


@pytest.mark.parametrize(("known", "aborts", "properties", "reason"), [
    (FEW, Aborts(), {}, "3 deltas, not more than 10"),
    (FEW, Aborts(), {"compactorthreshold.hive.compactor.delta.num.threshold": "2"}, None),
    (FEW, Aborts(too_many=True), {}, None),
    (FEW, Aborts(too_old=True), {}, None),
    (MANY, Aborts(), {}, None),
    (GROWN, Aborts(), {}, None),
    (None, Aborts(), {}, None),
])
def test_what_is_known_may_only_say_that_nothing_is_due(known, aborts, properties, reason):
    ruled = ruled_out(Table(parameters=properties), aborts, known, Thresholds(10, 0.1))

    assert (ruled and ruled.reason) == reason
