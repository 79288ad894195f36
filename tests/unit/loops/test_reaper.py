"""The house-keeping of transactions: each step runs whatever became of the others."""

from types import SimpleNamespace

import pytest

from metastore.errors import UnavailableError
from metastore.loops.reaper import TXN_RECORDS, Reaper


@pytest.mark.parametrize("error", [UnavailableError("busy"), RuntimeError("what nobody thought of")])
def test_a_step_that_fails_stops_no_other(error):
    def fails():
        raise error

    done = SimpleNamespace(empty_aborted=fails, purge_ended=lambda: 3)
    others = ("expire_locks", "expire_txns", "purge_write_sets", "purge_write_ids", "purge_times", "purge_duplicates",
              "purge_materialization_locks", "purge_history")
    report = Reaper(SimpleNamespace(**vars(done), **dict.fromkeys(others)), TXN_RECORDS).tick()

    assert (report.ended_txns, list(report.failed)) == (3, ["emptied_txns"])
