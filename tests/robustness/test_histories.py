"""A few histories with faults, whatever else is tested; ``make robustness`` runs as many as wanted."""

import pytest

from tests.robustness.harness.run import Cluster

# In both PostgreSQL is killed, and twice a server loses it while commits run; in one a client is paused besides.
SEEDS = (14, 154)


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as started:
        yield started


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_histories_with_faults_break_no_rule(cluster, seed):
    outcome = cluster.run(seed, 8)

    assert not outcome.anomalies, "\n".join(map(str, [outcome, *outcome.anomalies, f"make robustness SEED={seed}"]))
    assert outcome.counts["reads"] > 0
    assert outcome.counts["committed"] > 0
    assert outcome.faults
