"""What there is beside a base, and what it costs who reads."""

import pytest

from metastore.compaction.measuring.rules import OPEN_COST, Deltas, deltas_of
from tests.unit.compaction.initiating.test_rules import directories


@pytest.mark.parametrize(("names", "expected"), [
    ([], Deltas()),
    (["base_5:10"], Deltas()),
    (["base_5:10", "delta_6_6:1", "delete_delta_7_7:2", "delta_4_4:9", "delete_delta_3_3:1", "base_2:4"],
     Deltas(deltas=2, small_deltas=0, obsolete_deltas=2, files=2, size=300, obsolete_size=1400)),
    (["base_5:200", "delta_6_6:1", "delta_7_7:2", "delta_8_8:3"], Deltas(3, 1, 0, 3, 600)),   # exactly 0.01 is not small
    (["000000_0:200", "delta_6_6:1"], Deltas(1, 1, 0, 1, 100)),
    (["delta_6_6:1", "delta_7_7:1"], Deltas(2, 0, 0, 2, 200))])
def test_counts(names, expected):
    assert deltas_of(directories(*names), 0.01) == expected


def test_the_score_is_in_files():
    assert Deltas(files=3, size=2 * OPEN_COST).score == 5
    assert Deltas(obsolete_deltas=9).score == 0
