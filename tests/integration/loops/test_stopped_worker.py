"""A Worker that is stopped (SIGSTOP) for longer than its lease, and goes on when somebody else has done its work."""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest


@pytest.mark.parametrize("point", ["job", "commit"])
def test_a_worker_that_was_stopped_for_longer_than_its_lease_changes_nothing(lake, database_url, test_clock, point):
    """COMP-W36, with a process: wherever it wakes up, its results are void and go, and nobody sees a row twice."""
    lake.table()
    lake.insert(times=3)
    asked = lake.request()
    with subprocess.Popen([sys.executable, "-u", "-m", "tests.support.stopping_worker", database_url, point],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert _said(child) == "here"
            stopped = lake.one(asked.id)
            child.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, child.pid, os.WSTOPPED)
            test_clock.advance(timedelta(minutes=3))
            assert len(lake.initiator().compactions.revoke_dead_claims()) == 1
            assert lake.worker().tick().outcome == "compacted"
            base = f"base_0000003_v{lake.one(asked.id).txn_id:07d}"
            assert lake.state_of().base.path == base

            child.send_signal(signal.SIGCONT)
            child.stdin.write("go on\n")
            child.stdin.flush()
            ended = _said(child)
        finally:
            child.kill()

    assert ended == {"job": "LOST", "commit": "FAILED"}[point], "its transaction was aborted with the claim"
    assert lake.t.state(stopped.txn_id) == "aborted"
    assert [name for name in lake.directories() if name.startswith("base")] == [base]
    assert lake.one(asked.id).attempt == 2
    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert lake.directories() == [base]


def _said(child):
    """Return the next line that is no log."""
    for line in child.stdout:
        if line.strip() in ("here", "LOST", "COMPACTED", "FAILED", "RELEASED", "IDLE"):
            return line.strip()
    raise AssertionError("the Worker has ended")
