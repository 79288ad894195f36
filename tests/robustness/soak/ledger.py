"""What a writer's rows must be: it is the only one who changes them, and it writes down each change before it makes it."""

import json
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Rows: TypeAlias = dict[int, tuple[int, str]]


class Change(NamedTuple):
    """A statement that was begun and has not ended: it made these rows, or changed nothing."""

    after: Rows
    statement: str


class Ledger:
    """A file of lines, so that it outlives a driver that is killed."""

    def __init__(self, path: Path) -> None:
        self.rows: Rows = {}
        self.pending: Change | None = None
        for line in path.read_text().splitlines() if path.exists() else ():
            entry = json.loads(line)
            if "begun" in entry:
                self.pending = Change(_rows(entry["after"]), entry["begun"])
            else:
                self._settle(made=entry["made"])
        self._path = path

    def begin(self, statement: str, after: Rows) -> None:
        """Note that a statement is about to run."""
        self._note({"begun": statement, "after": after})
        self.pending = Change(after, statement)

    def end(self, *, made: bool) -> None:
        """Note whether the pending statement was made, once that is certain."""
        self._note({"made": made})
        self._settle(made=made)

    def _note(self, entry: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def _settle(self, *, made: bool) -> None:
        if self.pending is not None and made:
            self.rows = self.pending.after
        self.pending = None


def _rows(sent: dict[str, list]) -> Rows:
    return {int(key): (v, note) for key, (v, note) in sent.items()}


def judged(ledger: Ledger, seen: Rows) -> bool | None:
    """Whether what is pending was made, as the rows say; None: they are neither those from before nor those from after it."""
    if ledger.pending is not None and seen == ledger.pending.after:
        return True
    if seen == ledger.rows:
        return ledger.pending is None
    return None
