"""Faults that are planted to see that `make test` finds them: one per concept, each a change of one place."""

from typing import NamedTuple


class Fault(NamedTuple):
    """A change of one place, and the module of `make test` that has to fail with it."""

    concept: str
    file: str
    right: str
    wrong: str
    found_by: str


FAULTS = (
    Fault("transactions: the first committer wins", "metastore/txns/core/rules.py",
          "and component.txn_id <= written.commit_id", "and component.txn_id < written.commit_id", "tests/unit/txns"),
    Fault("snapshots: a later transaction stays hidden", "metastore/txns/core/rules.py",
          "mark = min(current_txn, snapshot.high_watermark)", "mark = max(current_txn, snapshot.high_watermark)", "tests/unit/txns"),
    Fault("write ids: purged ids are visible", "metastore/write_ids/rules.py",
          "return max(table.mapped, table.purged) if", "return table.mapped if", "tests/unit/write_ids"),
    Fault("locks: a writer waits for an exclusive one", "metastore/locks/rules.py",
          "LockType.SHARED_WRITE: frozenset({LockType.EXCL_WRITE, LockType.EXCLUSIVE})",
          "LockType.SHARED_WRITE: frozenset({LockType.EXCLUSIVE})", "tests/unit/locks"),
    Fault("heartbeats: only silent owners expire", "metastore/housekeeping/store.py",
          "id <= %(last)s AND state = 'open' AND last_heartbeat_at < {_CUTOFF}",
          "id <= %(last)s AND state = 'open'", "tests/integration/txns/test_life.py"),
    Fault("Initiator: what is due", "metastore/compaction/initiating/rules.py",
          "if measured.deltas <= thresholds.delta_num:", "if measured.deltas < thresholds.delta_num:", "tests/unit/compaction"),
    Fault("Worker: a lost claim writes nothing", "metastore/compaction/queue/store/requests.py",
          "worker_id = %s AND attempt = %s", "worker_id = %s AND attempt >= %s", "tests/integration/compaction"),
    Fault("Cleaner: readers of the old files go first", "metastore/compaction/cleaning/rules.py",
          "or txn.id <= request.next_txn_id", "or txn.id < request.next_txn_id", "tests/unit/compaction"),
    Fault("directories: a compaction that is not committed is not read", "metastore/acid/state.py",
          "if not self._is_published(delta):", "if self._is_published(delta) is None:", "tests/unit/acid/test_state.py"),
    Fault("row ids: the codec of buckets", "metastore/acid/bucket.py",
          "1 << _VERSION_SHIFT | writer_id << _WRITER_SHIFT | statement", "1 << _VERSION_SHIFT | writer_id << _WRITER_SHIFT", "tests/unit/acid"),
    Fault("catalog: filters of partitions", "metastore/catalog/rules/partition_predicate.py",
          "Op.LE: operator.le,", "Op.LE: operator.lt,", "tests/unit/catalog"),
    Fault("wire: messages are bounded", "metastore/thrift_server/wire/scanner.py",
          "if size < 0 or self.at > self._limit:", "if size < 0:", "tests/unit/thrift_server"),
    Fault("roots: links do not lead out of the warehouse", "metastore/roots.py",
          "if not any(real.is_relative_to(root)", "if not any(path.is_relative_to(root)", "tests/unit/test_roots.py tests/integration/catalog/test_roots.py"),
    Fault("planner: deleted rows are not read", "metastore/acid_tables/deleted.py",
          "return is_there & (bits & 1 == 1)", "return is_there & (bits & 1 == 0)", "tests/integration/client/test_scan.py"),
)
