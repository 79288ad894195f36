"""What reads foreign input, in a process of its own with bounded memory: nothing but the declared errors, no stall, no growth.

``make fuzz FUZZ_INPUT=7:orc:123`` tries one input again; a failure names it.
"""

import json
import os
import signal
import subprocess
import sys

import pytest

SECONDS = float(os.environ.get("FUZZ_SECONDS", "2"))
SEED = os.environ.get("FUZZ_SEED", "1")
AGAIN = os.environ.get("FUZZ_INPUT", "")
GROWTH_KB = 64 << 10


def test_readers_of_foreign_input():
    if ":message:" in AGAIN:
        pytest.skip("the input to try again is a message")
    seed, *one = AGAIN.split(":") if AGAIN else [SEED]
    command = [sys.executable, "-m", "tests.fuzz.targets", seed, str(SECONDS), *one]
    # Addresses are what is bounded: Arrow's own allocator would reserve 1 GB of them, and glibc 64 MB for each thread.
    env = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS * 3 + 60, env=env)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    failed = [f"FUZZ_INPUT={one['failed']}  {one['input']}\n{one['traceback']}" for one in lines if "failed" in one]
    done = [one for one in lines if "target" in one]
    for one in done:
        print(f"seed {seed}: {one}")
    assert failed == [], "\n".join(failed)
    if run.returncode:
        at = next((one["trying"] for one in reversed(lines) if "trying" in one), "nothing yet")
        how = signal.Signals(-run.returncode).name if run.returncode < 0 else run.returncode
        pytest.fail(f"the process ended with {how} at FUZZ_INPUT={at}\n{run.stderr[-3000:]}")
    assert [one for one in done if one["grown_kb"] > GROWTH_KB] == []
    assert done
    assert all(one["inputs"] for one in done)
