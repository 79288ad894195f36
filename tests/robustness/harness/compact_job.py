"""What stands in for the Spark of a Worker: ``python -m ...compact_job``, which does one job after another.

It takes its inputs as the real job does, copies the names of their elements into one directory, asks before it gives
that its name, and writes down which base it has published. One in three is frozen between the question and the name,
for longer than anybody keeps its claim, and so is the guard that would end it with its server: it publishes in any case.
"""

import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from random import Random
from time import monotonic

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import acid_state
from metastore.client import MetastoreClient
from metastore.client.compactions import require_claim
from metastore.compaction.working.job_specification import CompactionJobResult, CompactionJobSpec
from metastore.files import Files
from tests.robustness.harness.deltas import elements

PUBLISHED = "published.log"
"""The file beside the tables that names the bases."""


def one_after_another() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        main(line.strip())
        print(0, file=answers)


def main(path: str) -> None:
    spec = CompactionJobSpec.from_json(Path(path).read_text())
    rng = Random(f"{spec.compaction_id}/{spec.attempt}")
    is_frozen = rng.random() < 1 / 3
    if is_frozen:
        os.kill(os.getppid(), signal.SIGSTOP)
    try:
        name = compacted(spec, lambda: publishing(spec, rng, is_frozen=is_frozen))
        Path(spec.result_path).write_text(CompactionJobResult((name,) if name else ()).to_json())
    finally:
        if is_frozen:  # or the Worker would wait for the guard for ever, and keep the claim
            os.kill(os.getppid(), signal.SIGCONT)


def publishing(spec: CompactionJobSpec, rng: Random, *, is_frozen: bool) -> None:
    """Require the job's claim before its complete result gets its name; then wait some time if ``is_frozen``."""
    with MetastoreClient(spec.metastore_uri) as client:
        require_claim(client, spec.compaction_id, spec.txn_id)
    if is_frozen:
        threading.Event().wait(rng.uniform(0.5, 5.0))


def compacted(spec: CompactionJobSpec, publish) -> str:
    """Compact a directory of the job and return the published directory's name; "" if there was nothing to compact."""
    location = Path(spec.location.removeprefix("file://").removeprefix("file:"))
    valid = ValidWriteIdList.parse(spec.write_ids).for_compactor()
    txns = ValidTxnList.parse(spec.txns)
    hidden = ValidTxnList(txns.high_watermark, txns.min_open_txn, tuple(sorted({*txns.exceptions, spec.txn_id})), txns.aborted)
    state = acid_state(Files().listing(str(location)), valid, hidden, lambda _path: "{}")
    if spec.kind == "major":
        name = str(BaseName(spec.highest_write_id, spec.txn_id))
        inputs = [*([state.base] if state.base else []), *state.deltas]
    elif state.deltas:
        lowest = min(delta.name.min_write_id for delta in state.deltas)
        name = str(DeltaName(lowest, spec.highest_write_id, None, spec.txn_id))
        inputs = list(state.deltas)
    else:
        return ""
    staging = location / f".compaction_{spec.txn_id}"
    for leftover in (staging, location / name):
        shutil.rmtree(leftover, ignore_errors=True)
    staging.mkdir()
    for directory in inputs:
        for element in elements(directory, valid):
            if valid.is_valid(int(element.partition(".")[0])):
                (staging / element).touch(exist_ok=False)
    publish()
    staging.rename(location / name)
    if spec.kind == "major":
        root = next(parent for parent in location.parents if parent.name == "deltas")
        line = {"base": str(location.relative_to(root)), "write_id": spec.highest_write_id, "txn": spec.txn_id, "at": monotonic()}
        log = os.open(root.parent / PUBLISHED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(log, (json.dumps(line) + "\n").encode())
    return name


if __name__ == "__main__":
    one_after_another()
