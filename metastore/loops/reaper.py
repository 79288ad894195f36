"""The AcidHouseKeeper: it ends transactions and locks without heartbeats, and removes rows that are no longer needed.

Each step runs whatever the outcome of the others, and each is safe on any number of replicas at once. Hive runs the
three groups of steps at three intervals.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from metastore.housekeeping.service import PurgeService
from metastore.telemetry.logs import get_logger
from metastore.txns.core.service import TxnService

log = get_logger(__name__)


@dataclass(frozen=True)
class ReaperReport:
    """The results of one pass, by step; ``failed`` names the steps that could not finish, with the reason."""

    expired_locks: int = 0
    expired_txns: int = 0
    write_sets: int = 0
    write_ids: int = 0
    commit_times: int = 0
    duplicates: int = 0
    emptied_txns: int = 0
    ended_txns: int = 0
    materialization_locks: int = 0
    forgotten_txns: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    spare: timedelta | None = None
    """For how long nothing can expire that was seen; None where nobody looked."""


EXPIRY = ("expired_locks", "expired_txns")
PURGES = ("write_sets", "write_ids", "commit_times", "duplicates", "materialization_locks", "forgotten_txns")
TXN_RECORDS = ("emptied_txns", "ended_txns")


@dataclass(frozen=True)
class Reaper:
    """One pass over some of the steps, named as in the report."""

    purges: PurgeService
    steps: tuple[str, ...] = (*EXPIRY, *PURGES, *TXN_RECORDS)

    def tick(self) -> ReaperReport:
        """Run each step once."""
        expiries = {"expired_locks": self.purges.expire_locks, "expired_txns": self.purges.expire_txns}
        steps = {
            "write_sets": self.purges.purge_write_sets,
            "write_ids": self.purges.purge_write_ids,
            "commit_times": self.purges.purge_times,
            "duplicates": self.purges.purge_duplicates,
            "emptied_txns": self.purges.empty_aborted,
            "ended_txns": self.purges.purge_ended,
            "materialization_locks": self.purges.purge_materialization_locks,
            "forgotten_txns": self.purges.purge_history,
        }
        done: dict[str, int] = {}
        failed: dict[str, str] = {}
        spare = []
        for name in self.steps:
            try:
                if name in expiries:
                    done[name], left = expiries[name]()
                    spare.append(left)
                else:
                    done[name] = steps[name]()
            except Exception as error:  # noqa: BLE001 - each step runs whatever became of the others
                failed[name] = f"{type(error).__name__}: {error}"
                log.warning("reaper_step_failed", step=name, reason=failed[name])
        return ReaperReport(**done, failed=failed, spare=min(spare, default=None))


def until_due(report: object) -> timedelta | None:
    """Return the pause until a house-keeper's next round, for the next expiry. None: the usual time."""
    return report.spare if isinstance(report, ReaperReport) else None


@dataclass(frozen=True)
class CountReport:
    """The number of open transactions."""

    open: int = field(metadata={"gauge": True})


@dataclass(frozen=True)
class OpenTxnsCounter:
    """A counter that keeps this process's number of open transactions fresh, so that open_txns need not count."""

    txns: TxnService

    def tick(self) -> CountReport:
        """Count the open transactions."""
        return CountReport(self.txns.count_open_txns())
