"""Jobs of compactions that outlive their claims: whatever they publish, whenever, no reader sees a row twice or again.

The invariant: an aborted compaction leaves the lists only when nothing that appears under it later could be read.
Stories by seed: writers, compactions, claims that are taken back while a job goes on, results of such jobs that appear
at any later time, cleaning and house-keeping; after each step what a new reader and the held ones see is compared.
"""

import json
from datetime import timedelta
from random import Random

import pytest

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import acid_state
from metastore.loops.job_runner import JobOutcome
from metastore.txns.core.rules import reader_snapshot

STEPS = 30


class DeadServerError(BaseException):
    """The process is gone; its job is not."""


class Story:
    """A table whose rows are the write ids of the transactions that inserted them."""

    def __init__(self, lake, clock, seed):
        self.lake, self.clock, self.random = lake, clock, Random(seed)
        self.committed = []
        self.late = []
        self.readers = []
        lake.table()

    # ------------------------------------------------------------------------------------------------ the job
    def unavailable(self):
        return None

    ends_with_us = True
    orphaned = False

    def run(self, spec, pulse):
        results = self.results(spec)
        if self.orphaned:
            self.late.append(results)
            raise DeadServerError
        self.publish(results)
        return JobOutcome(succeeded=True)

    def results(self, spec):
        """{directory: rows}, read at once as a job reads it."""
        write_ids = ValidWriteIdList.parse(spec.write_ids).for_compactor()
        state = self.state(write_ids, ValidTxnList.parse(spec.txns))
        chosen = [*state.insert_deltas, *([state.base] if state.base and spec.kind == "major" else [])]
        rows = sorted(row for one in chosen for row in self.rows_in(one.path) if row not in write_ids.aborted)
        if spec.kind == "major":
            return {str(BaseName(spec.highest_write_id, spec.txn_id)): rows}
        low = min(delta.name.min_write_id for delta in state.deltas)
        return {str(DeltaName(low, spec.highest_write_id, None, spec.txn_id)): rows}

    def publish(self, results):
        for directory, rows in results.items():
            if not (self.lake.path("t") / directory).exists():
                self.lake.put("d.t", directory)
                (self.lake.path("t") / directory / "bucket_00000").write_text(json.dumps(rows))

    # ---------------------------------------------------------------------------------------------- the readers
    def snapshot(self):
        return reader_snapshot(self.lake.t.txns.get_open_txns())

    def state(self, write_ids, txns):
        location = f"file://{self.lake.path('t')}"
        return acid_state(self.lake.files.listing(location), write_ids, txns, lambda path: "{}")

    def rows_in(self, directory):
        return json.loads((self.lake.path("t") / directory / "bucket_00000").read_text())

    def seen(self, write_ids, txns):
        state = self.state(write_ids, txns)
        chosen = [*state.insert_deltas, *([state.base] if state.base else [])]
        return sorted(row for one in chosen for row in self.rows_in(one.path) if write_ids.is_valid(row))

    def check(self):
        txns = self.snapshot()
        assert self.seen(self.lake.t.reads("d.t", txns.format()), txns) == self.committed
        for _, lists, expected in self.readers:
            assert self.seen(*lists) == expected

    # ------------------------------------------------------------------------------------------------ the steps
    def insert(self, *, commits=True):
        txn_id, write_id = self.lake.begin()
        (self.lake.path("t") / str(DeltaName(write_id, write_id, 0)) / "bucket_00000").write_text(f"[{write_id}]")
        if commits:
            self.lake.t.commit(txn_id)
            self.committed.append(write_id)
        else:
            self.lake.t.abort(txn_id)

    def abort(self):
        self.insert(commits=False)

    def compact(self):
        self.lake.request(self.random.choice(["major", "minor"]))
        self.lake.worker(self).tick()

    def orphan(self):
        """Kill the server while the job runs; another server takes the claim back."""
        self.lake.request(self.random.choice(["major", "minor"]))
        self.orphaned = True
        try:
            self.lake.worker(self).tick()
        except DeadServerError:
            for txn_id, *_ in self.readers:
                self.lake.t.heartbeat(txn_id)
            self.clock.advance(timedelta(minutes=3))
            assert len(self.lake.initiator().compactions.revoke_dead_claims()) == 1
        finally:
            self.orphaned = False

    def appear(self):
        """Give the results of an orphaned job their final name."""
        if self.late:
            self.publish(self.late.pop(self.random.randrange(len(self.late))))

    def clean(self):
        self.lake.cleaner().tick()
        self.lake.t.reaper.tick()

    def hold(self):
        """Begin a reader, or end one."""
        if self.readers and self.random.random() < 0.6:
            self.lake.t.commit(self.readers.pop()[0])
        else:
            txn_id = self.lake.t.open()
            txns = reader_snapshot(self.lake.t.txns.get_open_txns(), txn_id)
            self.readers.append((txn_id, (self.lake.t.reads("d.t", txns.format()), txns), list(self.committed)))

    def tell(self):
        steps = [self.insert, self.insert, self.abort, self.compact, self.orphan, self.appear, self.clean, self.clean,
                 self.hold]
        for _ in range(STEPS):
            self.random.choice(steps)()
            self.check()
        for txn_id, *_ in self.readers:
            self.lake.t.commit(txn_id)
        self.readers = []
        while self.late:
            self.appear()
            self.check()
            self.clean()
            self.check()


@pytest.mark.parametrize("seed", range(5))
def test_stories(new_lake, test_clock, seed):
    Story(new_lake(aborted_txn_threshold=0), test_clock, seed).tell()


def test_an_aborted_compaction_is_remembered_until_a_base_covers_it(new_lake, test_clock):
    lake = new_lake(aborted_txn_threshold=0)
    story = Story(lake, test_clock, 0)
    for _ in range(3):
        story.insert()
    story.random.choice = lambda kinds: kinds[-1]  # minor
    story.orphan()
    [(orphan,)] = lake.t.rows("SELECT txn_id FROM txn_components WHERE operation = 'c'")

    def remembered():
        story.clean()
        return orphan in story.snapshot().aborted

    assert remembered()
    story.compact()  # the same once more, by another Worker
    assert remembered()
    story.appear()
    story.check()
    assert remembered()
    story.random.choice = lambda kinds: kinds[0]  # major
    story.insert()
    story.compact()
    assert not remembered()
    story.check()
    assert lake.directories() == [f"base_0000004_v{lake.shown(state='succeeded')[0].txn_id:07d}"]
