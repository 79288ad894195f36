"""How a soak must end: rows as the ledgers say, each request with an end and a reason, no file that nobody needs.

Functions judge what they are given; ``Verdict`` brings it and waits. What a driver sees while it works it judges itself.
"""

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from thrift.Thrift import TException

from metastore.acid.state import AcidState, acid_state
from metastore.client import DomainClient, MetastoreClient, txn_calls
from metastore.client.scans import scan
from metastore.compaction.queue.rules.requests import CompactionState
from metastore.errors import MetastoreError
from metastore.files import Files, local_path
from tests.robustness.harness.processes import wait_for
from tests.robustness.soak.ledger import Ledger, Rows
from tests.robustness.soak.stage import Stage
from tests.robustness.soak.tables import WRITERS, wrong_accounts

_SETTLED_S, _STUCK_S, _CLEANED_S = 15.0, 240.0, 120.0
_GOING_ON = {CompactionState.INITIATED.display, CompactionState.WORKING.display, CompactionState.READY_FOR_CLEANING.display}
_NEEDS_REASON = {CompactionState.FAILED.display, CompactionState.REFUSED.display}
_UNPROVEN = "did not write what it read"
_HIDDEN_OF_READERS = ("_orc_acid_version",)


def without_an_end(rows: Iterable[Any]) -> list[Any]:
    """Compactions that are not over."""
    return [row for row in rows if row.state in _GOING_ON]


def wrong_compactions(rows: Sequence[Any], accepted: Collection[int]) -> list[str]:
    """Return the faults of ``rows``, all compactions that are listed. ``accepted``: ids that a requester was given."""
    wrong = [f"compaction {row.id} of {row.tablename} {row.partitionname} is still {row.state}: {row.errorMessage}" for row in without_an_end(rows)]
    wrong += [f"compaction {row.id} of {row.tablename} is {row.state}, and nobody says why"
              for row in rows if row.state in _NEEDS_REASON and not row.errorMessage]
    wrong += [f"compaction {row.id} of {row.tablename}: {row.errorMessage}" for row in rows if _UNPROVEN in (row.errorMessage or "")]
    wrong += [f"compaction {number} was accepted, and nobody knows of it"
              for number in sorted(set(accepted) - {row.id for row in rows})]
    broken = [row for row in rows if row.tablename == "broken"]
    if not broken or any(row.state != CompactionState.FAILED.display or "/broken/" not in (row.errorMessage or "") for row in broken):
        wrong.append(f"the compaction of a broken file: {[(row.state, row.errorMessage) for row in broken]}")
    return wrong


def wrong_rows(table: str, role: str, seen: Iterable[tuple[int, int, str]], ledger: Rows) -> list[str]:
    """How the rows of a writer differ from its ledger."""
    there, written = Counter(seen), Counter((key, *row) for key, row in ledger.items())
    if there == written:
        return []
    lost, more = (sorted((left - right).elements())[:5] for left, right in ((written, there), (there, written)))
    return [f"{table} of {role} has {there.total()} rows, and the ledger {written.total()}: lost {lost}, more {more}"]


def wrong_moves(seen: int, lines: Sequence[str]) -> list[str]:
    """Each acknowledged transfer is two moves; those whose end was never known may be there. ``lines``: the writers' counts."""
    begun, made, not_made = (2 * lines.count(what) for what in ("transfers begun", "transfers", "transfers not made"))
    return [] if made <= seen <= begun - not_made else [f"{seen} moves; {made} were acknowledged, {begun - not_made} may be there"]


def unneeded(state: AcidState, names: Iterable[str]) -> list[str]:
    """Return the entries of an ACID directory that no reader needs. ``names``: its children."""
    hidden = [name for name in names if name.startswith((".", "_")) and name not in _HIDDEN_OF_READERS]
    return [*(f"obsolete {name}" for name in state.obsolete), *(f"aborted {name}" for name in state.aborted),
            *(f"left behind {name}" for name in hidden)]


class Verdict:
    """What is wrong once nobody does harm, or writes."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.files = stage, Files()

    def anomalies(self) -> list[str]:
        """One line each. Waits until the queue has been empty for a while."""
        for process in (*self.stage.servers, *self.stage.workers):
            wait_for(lambda process=process: process.ready, f"{process.name} to be up again")
        rows = self._settled()
        states = Counter(row.state for row in rows)
        print("compactions that are still listed:", dict(sorted(states.items())), flush=True)
        with DomainClient(self.stage.uris) as client:
            tables = client.get_all_tables("soak")
            wrong = [*wrong_compactions(rows, self.stage.accepted()), *self._rows()]
            ends_at = monotonic() + _CLEANED_S
            return [*wrong, *(text for table in tables for text in self._directories(client, table, ends_at))]

    def _settled(self) -> list[Any]:
        """All compactions, once none goes on; or once those that go on have not changed for very long."""
        last: list[tuple[Any, ...]] = []
        changed_at = monotonic()
        while True:
            rows = self._compactions()
            going_on = [(row.id, row.state, row.workerid, row.start) for row in without_an_end(rows)]
            if going_on != last or not rows:
                last, changed_at = going_on, monotonic()
            if monotonic() - changed_at > (_STUCK_S if going_on or not rows else _SETTLED_S):
                return rows
            threading.Event().wait(1)

    def _compactions(self) -> list[Any]:
        try:
            with MetastoreClient(self.stage.uris) as client:
                return list(client.show_compact(client.types.ShowCompactRequest(dbName="soak", limit=-1)).compacts)
        except (MetastoreError, TException, OSError):
            return []

    def _rows(self) -> list[str]:
        """Read without Spark, by other code than the drivers'."""
        wrong = []
        for table in ("facts", "flat"):
            rows = scan(f"soak.{table}", uri=self.stage.uris).to_arrow().to_pylist()
            for number, role in enumerate(WRITERS):
                seen = [(row["id"], row["v"], row["note"]) for row in rows if row["w"] == number]
                wrong += wrong_rows(table, role, seen, Ledger(self.stage.directory / f"{role}.{table}.ledger").rows)
        accounts = scan("soak.accounts", uri=self.stage.uris).to_arrow().to_pylist()
        lines = [line for role in WRITERS for line in (self.stage.directory / f"{role}.counts").read_text().splitlines()]
        return [*wrong, *wrong_accounts([row["balance"] for row in accounts]), *wrong_moves(sum(row["moves"] for row in accounts), lines)]

    def _directories(self, client: DomainClient, table: str, ends_at: float) -> list[str]:
        """Return the entries of a table's ACID directories that no reader needs; the Cleaner has time until ``ends_at``."""
        described = client.get_table("soak", table)
        if (described.parameters or {}).get("transactional") != "true" or table == "broken":
            return []
        places = [described.sd.location]
        if described.partitionKeys:
            places = [partition.sd.location for partition in client.get_partitions("soak", table, -1)]
        while True:
            txns = txn_calls.valid_txns(client, 0)
            [ids] = txn_calls.valid_write_ids(client, txns, [f"soak.{table}"]).values()
            wrong = [f"{place}: {what}" for place in places for what in self._unneeded(place, ids, txns)]
            if not wrong or monotonic() > ends_at:
                return wrong
            threading.Event().wait(2)

    def _unneeded(self, place: str, ids: Any, txns: Any) -> list[str]:
        state = acid_state(self.files.listing(place), ids, txns, lambda path: self.files.read(f"{place}/{path}"))
        return unneeded(state, [child.name for child in Path(local_path(place)).iterdir()])
