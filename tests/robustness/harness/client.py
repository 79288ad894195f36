"""A client process: takes jobs as lines of JSON, works on each with several threads, says when it is done."""

import json
import os
import sys
import threading
from pathlib import Path
from random import Random
from time import monotonic

from tests.robustness.harness.deltas import Deltas
from tests.robustness.harness.recording import Log, RecordingClient
from tests.robustness.harness.workload import Worker

LONGEST_S = 60.0


def work(job: dict) -> None:
    """One history's share of this process."""
    log = Log(Path(job["log"]))
    ticks = os.open(job["ticks"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    until = monotonic() + LONGEST_S

    def done() -> None:
        os.write(ticks, b".")

    threads = []
    for number in range(job["threads"]):
        name = f"c{job['process']}.{number}"
        rng = Random(f"{job['seed']}/{name}")
        uris = rng.sample(job["uris"], len(job["uris"]))
        client = RecordingClient(",".join(uris), log, user=name, timeout_s=4.0, connect_timeout_s=2.0)
        worker = Worker(client, log, Deltas(Path(job["deltas"])), job["db"], name, rng)
        threads.append(threading.Thread(target=worker.run, args=(job["actions"], until, done), name=name))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(ticks)
    log.close()


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr   # whatever else is printed must not look like an answer
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        work(json.loads(line))
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
