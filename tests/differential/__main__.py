"""The run itself: ``make differential``."""

import argparse
import collections
import json
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.differential import metastores, recording
from tests.differential.codec import FACTS
from tests.differential.known import KNOWN, judged
from tests.differential.run import LEFT_OUT, Run
from tests.support.postgres import TestPostgres


def main():
    words = argparse.ArgumentParser(prog="make differential", description=__doc__)
    words.add_argument("--most", type=int, default=100, help="calls of a method")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--only", default=".*", help="a pattern of methods")
    words.add_argument("--versions", default="2.3.10,4.0.1")
    words.add_argument("--record", action="store_true", help="write the answers that tests/differential/test_recorded.py replays")
    words.add_argument("--report", type=Path, help="write all differences there, as JSON lines")
    asked = words.parse_args()
    began = time.monotonic()
    with ExitStack() as running:
        postgres = TestPostgres()
        running.callback(postgres.close)
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="differential-")))
        servers = []
        if "2.3.10" in asked.versions:
            servers.append(running.enter_context(metastores.real_2_3(work / "hive-2-3", postgres.postgres.tcp_url)))
        if "4.0.1" in asked.versions:
            servers.append(running.enter_context(metastores.real_4_0(work / "hive-4-0", postgres.postgres.tcp_url)))
        servers.append(running.enter_context(metastores.ours(work / "ours", running.enter_context(postgres.cloned()))))
        print(f"started in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        run = Run(servers)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):  # what was found until then is shown
            run.all(asked.most, asked.seed, asked.only)
    if asked.report:
        asked.report.write_text("".join(json.dumps(found._asdict(), ensure_ascii=False) + "\n" for found in run.found))
    if asked.record:
        recording.write(run.log)
    unknown, names = judged(run.found)
    for text, count in sorted(collections.Counter(found.text for found in unknown).items()):
        print(f"{count:5} {text}")
    gone = [known.name for known in KNOWN if known.name not in names] if asked.only == ".*" else []
    for name in gone:
        print(f"did not occur any more: {name}")
    missed = {method for method in FACTS["methods"] if asked.only == ".*"} - run.called - run.unknown - set(LEFT_OUT)
    print(f"{run.asked} calls of {len(run.called)} methods; {len(run.found)} differences by {len(names)} names, {len(unknown)} unknown; 2.3.10 differs from "
          f"4.0.1 and ours is as 4.0.1: {run.as_hive_4}; not built: {len(run.unknown)}; never called: {sorted(missed)}; {time.monotonic() - began:.0f} s")
    return 1 if unknown or gone or missed else 0


if __name__ == "__main__":
    sys.exit(main())
