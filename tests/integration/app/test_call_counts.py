"""What each call costs in round trips, statements, waits for the disk and bytes: ``benchmarks/call_counts.txt``."""


import pytest

from benchmarks.call_counts import PATIENCE, Counts, expected, measured
from metastore.client import MetastoreClient
from tests.support.tapped_database import *  # noqa: F403

AGAIN = "If that is meant, write the table anew: python -m benchmarks.call_counts --write"


@pytest.fixture
def server_settings():
    return {"metastore.lock.check.wait": PATIENCE}


def test_a_call_costs_what_is_written_down(server, tap, tmp_path):
    with MetastoreClient(server.thrift_uri) as client:
        counted = measured(client, tap, tmp_path)
    kept = expected()

    assert counted.keys() == kept.keys(), AGAIN
    different = {name: (kept[name], now) for name, now in counted.items() if now.differs(kept[name])}
    assert not different, AGAIN


@pytest.mark.parametrize("now", [Counts(2, 1, 1, 500, 500), Counts(1, 2, 1, 500, 500), Counts(1, 1, 2, 500, 500),
                                 Counts(1, 1, 1, 800, 500), Counts(1, 1, 1, 500, 800), Counts(0, 1, 1, 500, 500),
                                 Counts(1, 1, 1, 300, 500), Counts(1, 1, 1, 500, 300)])
def test_what_differs(now):
    assert now.differs(Counts(1, 1, 1, 500, 500))


def test_ids_may_have_more_digits():
    assert not Counts(1, 1, 1, 560, 620).differs(Counts(1, 1, 1, 500, 500))
