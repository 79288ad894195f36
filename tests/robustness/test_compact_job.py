"""The stand-in for a compaction's job."""

import os
import signal

import pytest

from tests.robustness.harness import compact_job
from tests.unit.loops.test_job_runner import SPEC


def test_a_job_that_fails_lets_its_guard_go_on(monkeypatch, tmp_path):
    """Or the compaction is in work for ever, and so is its lock."""
    class Frozen:
        def __init__(self, _seed):
            pass

        def random(self):
            return 0.0

    signals = []
    monkeypatch.setattr(compact_job, "Random", Frozen)
    monkeypatch.setattr(os, "kill", lambda pid, number: signals.append((pid, number)))
    monkeypatch.setattr(compact_job, "compacted", lambda *_: 1 / 0)
    spec = tmp_path / "spec.json"
    spec.write_text(SPEC.to_json())

    with pytest.raises(ZeroDivisionError):
        compact_job.main(str(spec))

    assert signals == [(os.getppid(), signal.SIGSTOP), (os.getppid(), signal.SIGCONT)]
