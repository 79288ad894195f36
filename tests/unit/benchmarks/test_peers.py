import sys

import pytest

from benchmarks import peers


def test_the_ready_file_of_a_server_that_was_killed_is_not_taken_for_the_next_ones(tmp_path, monkeypatch):
    """A start was once measured as 0.00 s."""
    program = tmp_path / "metastore"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "ready.json").write_text("{}")

    with pytest.raises(RuntimeError, match="the metastore ended"):
        peers.start_ours(tmp_path / "work")
