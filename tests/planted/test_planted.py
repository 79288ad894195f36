"""Each planted fault is found by a test of `make test`: in a copy of the code, where it is planted and taken out again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.planted.faults import FAULTS, Fault

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("planted") / "code"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    return place


def outcome(copy: Path, found_by: str) -> int:
    """Run what `make test` runs of ``found_by``; pytest's exit code."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", "-m", "not slow and not long and not robustness", *found_by.split()],
        cwd=copy, env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, check=False).returncode


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.concept for fault in FAULTS])
def test_a_planted_fault_is_found(fault: Fault, copy: Path):
    file = copy / fault.file
    text = file.read_text()
    assert text.count(fault.right) == 1, "the place of this fault is not there any more: name where the rule is now"

    file.write_text(text.replace(fault.right, fault.wrong))
    try:
        planted = outcome(copy, fault.found_by)
    finally:
        file.write_text(text)

    assert planted == pytest.ExitCode.TESTS_FAILED
