"""What every process of the soak that uses tables is: it goes on until it is told to stop, and says what is wrong."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from thrift.Thrift import TApplicationException, TException

from metastore.client import MetastoreClient
from metastore.compaction.queue.rules.requests import CompactionState, outside_cause
from metastore.errors import MetastoreError

PATIENCE_S = 300.0
COMPACTION_S = 90.0
_GOING_ON = {CompactionState.INITIATED.display, CompactionState.WORKING.display}


class Role:
    """Writes into DIRECTORY: ROLE.counts, a line for each thing done; ``anomalies``; ROLE.begun and ROLE.done."""

    def __init__(self, role: str, uris: str, seed: str, directory: str) -> None:
        self.role, self.uris, self.directory = role, uris, Path(directory)
        self.random = Random(f"{seed}/{role}/{time.time_ns()}")
        self.counts: Counter[str] = Counter()
        self.clock = Clock()

    def run(self) -> None:
        """Work until it has to stop. Raises: whatever keeps it from going on; it is started again then."""
        raise NotImplementedError

    def has_to_stop(self) -> bool:
        return (self.directory / "stop").exists()

    def anomaly(self, text: str) -> None:
        with (self.directory / "anomalies").open("a") as file:
            file.write(f"{self.role}: {text}\n")

    def count(self, what: str) -> None:
        """Count an event of this process; the lines of all processes of a role are read at the end."""
        self.counts[what] += 1
        with (self.directory / f"{self.role}.counts").open("a") as file:
            file.write(what + "\n")

    def compacted(self, table: str, partition: str | None = None, *, until_cleaned: bool = False) -> bool:
        """Ask for a major compaction, and wait until its result is there, or will not be: whether it is.

        ``until_cleaned``: and until the Cleaner has removed what it replaced, or has said that it waits for a reader.
        """
        ends_at = time.monotonic() + COMPACTION_S
        number, is_there = 0, False
        while time.monotonic() < ends_at and not self.has_to_stop():
            try:
                with MetastoreClient(self.uris, user="soak-requester") as client:
                    number = number or self._asked_for(client, table, partition)
                    rows = client.show_compact(client.types.ShowCompactRequest(id=number)).compacts
                [state, reason] = [rows[0].state, rows[0].errorMessage or ""] if rows else ["", ""]
                is_there = state in {CompactionState.READY_FOR_CLEANING.display, CompactionState.SUCCEEDED.display}
                is_cleaned = state == CompactionState.SUCCEEDED.display or "waiting for transaction" in reason
                if state not in _GOING_ON and (is_cleaned or not is_there or not until_cleaned):
                    return is_there
            except TApplicationException:  # there is nothing to compact: no such partition yet
                return False
            except (MetastoreError, TException, OSError):
                self.count("servers away")
            pause(0.5)
        return is_there

    def met(self, table: str, partition: str | None = None) -> int:
        """Ask for a major compaction, and wait until a job is at work on it: its number; 0: there is none, or it is over."""
        def is_over(state: str) -> bool:
            return state != CompactionState.INITIATED.display

        number, state, _ = self._followed(lambda client: self._asked_for(client, table, partition), is_over)
        return number if state == CompactionState.WORKING.display else 0

    def end_of(self, number: int) -> str:
        """Return the state of a compaction once no job is at work on it; of a failed one also the outside cause that the service sees, or its message."""
        _, state, message = self._followed(lambda _: number, lambda state: state not in _GOING_ON)
        return f"{state}, for {outside_cause(message) or message}" if state == CompactionState.FAILED.display else state

    def _followed(self, asked_for: Callable[[MetastoreClient], int], is_over: Callable[[str], bool]) -> tuple[int, str, str]:
        """Return a compaction's number, last state and error, once ``is_over`` holds or after very long."""
        ends_at = time.monotonic() + 2 * COMPACTION_S
        number, state, message = 0, "", ""
        while time.monotonic() < ends_at and not self.has_to_stop():
            try:
                with MetastoreClient(self.uris, user="soak-requester") as client:
                    number = number or asked_for(client)
                    rows = client.show_compact(client.types.ShowCompactRequest(id=number)).compacts
                state, message = (rows[0].state, rows[0].errorMessage or "") if rows else ("", "")
                if is_over(state):
                    break
            except TApplicationException:  # there is nothing to compact
                return 0, "", ""
            except (MetastoreError, TException, OSError):
                self.count("servers away")
            pause(0.5)
        return number, state, message

    def _asked_for(self, client: MetastoreClient, table: str, partition: str | None) -> int:
        """Ask for a compaction and return its number, also of one that somebody else has asked for."""
        types: Any = client.types
        answer = client.compact2(types.CompactionRequest(
            dbname="soak", tablename=table, partitionname=partition, type=types.CompactionType.MAJOR))
        if answer.accepted and not table.startswith("churn"):  # whose requests go with them
            note_request(self.directory, answer.id)
        return int(answer.id)

    def begins(self) -> None:
        """Note that this process is ready to work: the soak begins when all are."""
        (self.directory / f"{self.role}.begun").touch()

    def done(self) -> None:
        target = self.directory / f"{self.role}.done"
        partial = target.with_suffix(".part")
        partial.write_text(json.dumps(self.counts))
        partial.rename(target)


class Clock:
    """For how many seconds in all this process was not run: a snapshot may be lost in such a time."""

    def __init__(self) -> None:
        self.silent_s = 0.0
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        last = time.monotonic()
        while True:
            pause(0.2)
            now = time.monotonic()
            if now - last > 2:
                self.silent_s += now - last
            last = now


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def note_request(directory: Path, number: int) -> None:
    """Note an accepted compaction: it must be known, and have an end."""
    with (directory / "accepted").open("a") as file:
        file.write(f"{number}\n")
