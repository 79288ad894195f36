"""Settings of locks."""

from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import key
from metastore.config.values import duration, integer

_S = duration("s")
_POSITIVE = integer(1)


# A row of the table of keys stays together.
# fmt: off


@dataclass(frozen=True)
class LockSettings:
    """Locks."""

    check_wait: timedelta = key(
        duration("ms", timedelta(0), timedelta(seconds=5)), "metastore.lock.check.wait", "3000ms",
        "How long check_lock may hold back the answer that the lock is waiting, to answer the moment it is granted; 0: "
        "not at all. Far below any client's socket time-out, of which the shortest is 10 s. Hive: no such key.")
    max_components: int = key(
        _POSITIVE, "metastore.lock.max.components", "10000",
        "Most components of one lock request: whoever needs more locks the table. Hive: no such key.")
    detect_deadlocks: bool = key(
        values.FLAG, "metastore.txn.deadlock.detector.enabled", "true",
        "End a deadlock when a lock request closes it, by aborting its youngest transaction. Hive 4.2: no such "
        "key.")
    deadlock_interval: timedelta = key(
        _S, "metastore.txn.deadlock.detector.interval", "60s",
        "Pause between searches for deadlocks that were not found then, because a server died at that moment.")
    orphan_timeout: timedelta = key(
        duration("s", timedelta(0)), "metastore.lock.orphan.timeout", "40s",
        "How long a lock without a transaction stays after its client broke off the connection, if no heartbeat was "
        "ever sent for it and nobody asks about it; twice as long if the connection carried nothing else. More than "
        "the time to the first heartbeat of clients that send them (Hudi: 30 s). 0: as all others. Hive: no such key.")
