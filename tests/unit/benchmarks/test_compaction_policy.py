"""The simulator of compaction policies: what it counts, and that our order is no worse than Hive's."""

import pytest

from benchmarks.compaction_policy import GB, LOADS, MB, OPENING, POLICIES, Load, Simulation, Table, recorded
from benchmarks.recorded_load import Record, Written

HIVES, OURS = POLICIES


def result(load, policy, days):
    return Simulation(load, policy).run(days)


def test_a_table_of_one_base_costs_what_it_is_worth():
    load = Load("x", "", lambda: iter([Table("d.t", GB, MB, 10**9, reads=10, first_s=10**9)]), 1)

    assert result(load, OURS, 1)[:3] == (1.0, 0.0, 0)


def test_a_delta_costs_its_opening():
    load = Load("x", "", lambda: iter([Table("d.t", GB, MB, 10**9, reads=10)]), 1)

    assert result(load, OURS, 1).amplification == pytest.approx((GB + MB + 2 * OPENING) / (GB + MB + OPENING))


def test_eleven_deltas_become_one():
    load = Load("x", "", lambda: iter([Table("d.t", GB, MB, 100, reads=10)]), 1, start_s=0)

    assert result(load, HIVES, 1300 / 86400)[1:3] == (12 * MB, 1)  # 12 were there when the Initiator came by


def test_recorded_writes_are_played_when_they_were_made():
    """Twelve in twenty minutes and none after: one minor compaction of twelve, whatever is simulated after that."""
    moments = tuple(90.0 * number for number in range(1, 13))
    load = recorded(Record((Written("d.t", moments, MB, GB, 10, deletes=False),), workers=1))

    assert (load.about, load.workers) == ("1 tables and partitions, 12 writes in 0.0 days", 1)
    assert result(load, OURS, 2)[1:3] == (12 * MB, 1)


@pytest.mark.parametrize("load", LOADS, ids=[load.name for load in LOADS])
def test_ours_is_no_worse(load):
    """A third of the tables and of the Workers, so that these have about as much to do."""
    load = load._replace(workers=load.workers // 3, tables=lambda tables=load.tables: list(tables())[::3])
    hives, ours = result(load, HIVES, 3), result(load, OURS, 3)

    assert ours.amplification <= hives.amplification
    assert ours.rewritten <= hives.rewritten + MB  # sums of floats
