"""How a soak must end: rows as the ledgers say, each request with an end and a reason, no file that nobody needs."""

import threading
from pathlib import Path
from time import monotonic
from typing import Any

from thrift.Thrift import TException

from metastore.acid.state import acid_state
from metastore.client import DomainClient, MetastoreClient, txn_calls
from metastore.client.scans import scan
from metastore.compaction.queue.rules.requests import CompactionState
from metastore.errors import MetastoreError
from metastore.files import Files, local_path
from tests.robustness.harness.processes import wait_for
from tests.robustness.soak.driver import ACCOUNTS, EACH, WRITERS
from tests.robustness.soak.ledger import Ledger
from tests.robustness.soak.stage import Stage

_SETTLED_S, _PATIENCE_S = 15.0, 420.0
_GOING_ON = {CompactionState.INITIATED.display, CompactionState.WORKING.display, CompactionState.READY_FOR_CLEANING.display}
_NEEDS_REASON = {CompactionState.FAILED.display, CompactionState.REFUSED.display}
_HIDDEN_OF_READERS = ("_orc_acid_version",)


class Verdict:
    """What is wrong once nobody does harm, or writes."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.files = stage, Files()

    def anomalies(self) -> list[str]:
        """One line each. Waits until the queue has been empty for a while."""
        for process in (*self.stage.servers, *self.stage.workers):
            wait_for(lambda process=process: process.ready, f"{process.name} to be up again")
        wrong = self._queue()
        with DomainClient(self.stage.uris) as client:
            tables = client.get_all_tables("soak")
            return wrong + self._rows() + [text for table in tables for text in self._directories(client, table)]

    def _queue(self) -> list[str]:
        quiet_since, ends_at = monotonic(), monotonic() + _PATIENCE_S
        while True:
            rows = self._compactions()
            going_on = [row for row in rows if row.state in _GOING_ON]
            if going_on or not rows:
                quiet_since = monotonic()
            if monotonic() - quiet_since > _SETTLED_S:
                break
            if monotonic() > ends_at:
                return [f"compaction {row.id} of {row.tablename} {row.partitionname} is still {row.state}" for row in going_on]
            threading.Event().wait(1)
        states = [row.state for row in rows]
        print("compactions that are still listed:", {state: states.count(state) for state in sorted(set(states))}, flush=True)
        wrong = [f"compaction {row.id} of {row.tablename} is {row.state}, and nobody says why"
                 for row in rows if row.state in _NEEDS_REASON and not row.errorMessage]
        broken = [row for row in rows if row.tablename == "broken"]
        if not broken or any(row.state != CompactionState.FAILED.display or "/broken/" not in (row.errorMessage or "") for row in broken):
            wrong.append(f"the compaction of a broken file: {[(row.state, row.errorMessage) for row in broken]}")
        return wrong

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
                seen = sorted((row["id"], row["v"], row["note"]) for row in rows if row["w"] == number)
                ledger = Ledger(self.stage.directory / f"{role}.{table}.ledger")
                if seen != sorted((key, *row) for key, row in ledger.rows.items()):
                    wrong.append(f"{table} of {role} has {len(seen)} rows, and the ledger {len(ledger.rows)}: they differ")
        accounts = scan("soak.accounts", uri=self.stage.uris).to_arrow().to_pylist()
        if len(accounts) != ACCOUNTS or sum(row["balance"] for row in accounts) != ACCOUNTS * EACH:
            wrong.append(f"accounts: {len(accounts)} rows with {sum(row['balance'] for row in accounts)}")
        return wrong + self._moves(sum(row["moves"] for row in accounts))

    def _moves(self, seen: int) -> list[str]:
        """Each acknowledged transfer is two moves; those whose end was never known may be there."""
        told = [(self.stage.directory / f"{role}.counts").read_text().splitlines() for role in WRITERS]
        begun, made, not_made = (2 * sum(lines.count(what) for lines in told) for what in ("transfers begun", "transfers", "transfers not made"))
        return [] if made <= seen <= begun - not_made else [f"{seen} moves; {made} were acknowledged, {begun - not_made} may be there"]

    def _directories(self, client: DomainClient, table: str) -> list[str]:
        """What lies about that no reader needs, in each of its ACID directories."""
        described = client.get_table("soak", table)
        if (described.parameters or {}).get("transactional") != "true" or table == "broken":
            return []
        places = [described.sd.location]
        if described.partitionKeys:
            places = [one.sd.location for one in client.get_partitions("soak", table, -1)]
        wrong: list[str] = []
        ends_at = monotonic() + 120
        while True:
            txns = txn_calls.valid_txns(client, 0)
            write_ids = txn_calls.valid_write_ids(client, txns, [f"soak.{table}"])
            [ids] = write_ids.values()
            wrong = [f"{place}: {what}" for place in places for what in self._unneeded(place, ids, txns)]
            if not wrong or monotonic() > ends_at:
                return wrong
            threading.Event().wait(2)

    def _unneeded(self, place: str, ids: Any, txns: Any) -> list[str]:
        state = acid_state(self.files.listing(place), ids, txns, lambda path: self.files.read(f"{place}/{path}"))
        names = [child.name for child in Path(local_path(place)).iterdir()]
        hidden = [name for name in names if name.startswith((".", "_")) and name not in _HIDDEN_OF_READERS]
        return [*(f"obsolete {name}" for name in state.obsolete), *(f"aborted {name}" for name in state.aborted),
                *(f"left behind {name}" for name in hidden)]
