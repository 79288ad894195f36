"""Stories about transactions and locks as text files, told to a pure model and to a server alike.

A script is blocks: commands, a line of dashes, what they answer. Names stand for numbers, one fact is one line, ``#``
starts a comment. Adding one needs no test code: write the commands, run ``python -m tests.support.scripts`` to record the
answers (of the model), and read them.

    open t1 [read_only]                     begin transactions
    lock l1 [txn=t1] [op=insert] [dynamic] [zero_wait] [ctas] TYPE OBJECT, TYPE OBJECT
    check l1, unlock l1                     OBJECT: db, db.table or db.table/key=value
    write t1 db.table                       get a write id
    partitions t1 db.table [op=update] p=1 p=2
    commit t1, abort t1, heartbeat t1, heartbeat l1
    snapshot t1                             what it sees of the other transactions
    reads t1 db.table                       which write ids it may read
    locks                                   who holds and who waits
    advance 301s, reap                      let time pass, run the house-keeper
"""

import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.errors import MetastoreError, NoSuchLockError, NoSuchTxnError, TxnAbortedError, TxnOpenError
from metastore.locks.rules import Lock, LockObject, LockRequest, LockType, Operation, WantedLock

SCRIPTS = Path(__file__).parents[1] / "scripts"
DASHES = "----"
UNKNOWN = 10**12


class Driver(Protocol):
    """What plays a script: ids are numbers, errors are metastore.errors."""

    def open(self, *, read_only: bool) -> int: ...
    def lock(self, request: LockRequest) -> tuple[int, str]: ...
    def check(self, lock_id: int) -> str: ...
    def unlock(self, lock_id: int) -> None: ...
    def locks(self) -> list[tuple[Lock, int | None]]: ...
    def write(self, txn_id: int, table: str) -> int: ...
    def partitions(self, txn_id: int, table: str, names: list[str], operation: Operation) -> None: ...
    def commit(self, txn_id: int) -> None: ...
    def abort(self, txn_id: int) -> None: ...
    def heartbeat(self, txn_id: int, lock_id: int) -> None: ...
    def snapshot(self, txn_id: int) -> ValidTxnList: ...
    def reads(self, txn_id: int, table: str) -> ValidWriteIdList: ...
    def open_txns(self) -> set[int]: ...
    def advance(self, delta: timedelta) -> None: ...
    def reap(self) -> None: ...


def blocks(text: str) -> list[tuple[list[str], str]]:
    """The (lines before the dashes, recorded answer) of a script."""
    found = []
    commands: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line == DASHES:
            answer = []
            for answered in lines:
                if not answered:
                    break
                answer.append(answered)
            found.append((commands, "\n".join(answer)))
            commands = []
        else:
            commands.append(line)
    return found


def play(text: str, driver: Driver) -> str:
    """The script with the answers of this driver."""
    story = Story(driver)
    played = []
    for commands, _ in blocks(text):
        answers = [answer for line in commands for answer in story.tell(line)]
        played.append("\n".join([*commands, DASHES, *answers]))
    return "\n\n".join(played) + "\n"


class Story:
    """The names of one script, and its commands."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.txns: dict[str, int] = {}
        self.requests: dict[str, int] = {}
        self.write_ids: dict[str, int] = {}

    def tell(self, line: str) -> list[str]:
        """What a command answers, line by line."""
        words = line.partition("#")[0].split()
        if not words:
            return []
        command, *arguments = words
        return getattr(self, f"_{command}")(arguments)

    def _open(self, names: list[str]) -> list[str]:
        wanted = [name for name in names if name != "read_only"]
        for name in wanted:
            self.txns[name] = self.driver.open(read_only="read_only" in names)
        return [f"{name}: open" for name in wanted]

    def _lock(self, arguments: list[str]) -> list[str]:
        name, *rest = arguments
        options = {word for word in rest if word in {"dynamic", "zero_wait", "ctas"}}
        given = dict(word.split("=", 1) for word in rest if word.startswith(("txn=", "op=")))
        wanted = " ".join(word for word in rest if word not in options and not word.startswith(("txn=", "op=")))
        operation = Operation(given.get("op", "select"))
        request = LockRequest(
            components=tuple(WantedLock(LockType(kind), _object(place), operation, is_transactional=True,
                                        is_dynamic_partition_write="dynamic" in options)
                             for kind, place in (one.split() for one in wanted.split(","))),
            txn_id=self.txns.get(given.get("txn", ""), UNKNOWN if "txn" in given else 0), user="u", host="h",
            zero_wait_read="zero_wait" in options, exclusive_ctas="ctas" in options)
        return self._said(name, lambda: self._asked(name, request))

    def _asked(self, name: str, request: LockRequest) -> str:
        self.requests[name], state = self.driver.lock(request)
        return self._state(name, state)

    def _check(self, names: list[str]) -> list[str]:
        return [line for name in names
                for line in self._said(name, lambda name=name: self._state(name, self.driver.check(self._id(name))))]

    def _unlock(self, names: list[str]) -> list[str]:
        return [line for name in names
                for line in self._said(name, lambda name=name: self.driver.unlock(self._id(name)) or "released")]

    def _commit(self, names: list[str]) -> list[str]:
        return [line for name in names
                for line in self._said(name, lambda name=name: self.driver.commit(self._id(name)) or "committed")]

    def _abort(self, names: list[str]) -> list[str]:
        return [line for name in names
                for line in self._said(name, lambda name=name: self.driver.abort(self._id(name)) or "aborted")]

    def _heartbeat(self, names: list[str]) -> list[str]:
        return [line for name in names for line in self._said(name, lambda name=name: self.driver.heartbeat(
            self.txns.get(name, 0), self.requests.get(name, 0)) or "alive")]

    def _write(self, arguments: list[str]) -> list[str]:
        name, table = arguments

        def allocated() -> str:
            write_id = self.driver.write(self._id(name), table)
            self.write_ids[table] = max(write_id, self.write_ids.get(table, 0))
            return f"write id {write_id} of {table}"
        return self._said(name, allocated)

    def _partitions(self, arguments: list[str]) -> list[str]:
        name, table, *names = arguments
        operation = next((Operation(word[3:]) for word in names if word.startswith("op=")), Operation.UPDATE)
        names = [word for word in names if not word.startswith("op=")]
        return self._said(name, lambda: self.driver.partitions(self._id(name), table, names, operation)
                          or f"wrote {table} {' '.join(names) or 'nowhere'}")

    def _snapshot(self, arguments: list[str]) -> list[str]:
        [name] = arguments
        seen = self.driver.snapshot(self.txns[name])
        kinds = {other: "valid" if seen.is_valid(txn_id) else "aborted" if seen.is_aborted(txn_id) else "open"
                 for other, txn_id in self.txns.items()}
        return [f"{name} sees: " + ", ".join(f"{other} {kind}" for other, kind in kinds.items())]

    def _reads(self, arguments: list[str]) -> list[str]:
        name, table = arguments
        seen = self.driver.reads(self.txns[name], table)
        ids = range(1, self.write_ids.get(table, 0) + 1)
        valid = " ".join(str(write_id) for write_id in ids if seen.is_valid(write_id))
        return [f"{name} reads {table}: {valid or 'none'} of {len(ids)}"]

    def _locks(self, _: list[str]) -> list[str]:
        names = {number: name for name, number in self.requests.items()}
        txns = {number: name for name, number in self.txns.items()}
        return [f"{names[lock.ext_id]}: {lock.state} {lock.type} {lock.object}"
                + (f" for {txns[lock.txn_id]}" if lock.txn_id else "")
                + (f", waits for {names[blocker]}" if blocker else "")
                for lock, blocker in sorted(self.driver.locks())] or ["no locks"]

    def _advance(self, arguments: list[str]) -> list[str]:
        [text] = arguments
        self.driver.advance(timedelta(seconds=int(text.removesuffix("s"))))
        return []

    def _reap(self, _: list[str]) -> list[str]:
        txns, locks = self.driver.open_txns(), {lock.ext_id for lock, _ in self.driver.locks()}
        self.driver.reap()
        txns -= self.driver.open_txns()
        locks -= {lock.ext_id for lock, _ in self.driver.locks()}
        return [*(f"{name}: aborted, timed out" for name, txn_id in self.txns.items() if txn_id in txns),
                *(f"{name}: gone" for name, lock_id in self.requests.items() if lock_id in locks)] or ["nothing to do"]

    def _id(self, name: str) -> int:
        return self.txns[name] if name in self.txns else self.requests.get(name, UNKNOWN)

    def _state(self, name: str, state: str) -> str:
        if state != "waiting":
            return state.replace("_", " ")
        names = {number: other for other, number in self.requests.items()}
        blocker = next((blocker for lock, blocker in self.driver.locks()
                        if lock.ext_id == self.requests[name] and blocker), 0)
        return f"waiting for {names[blocker]}"

    def _said(self, name: str, command: Any) -> list[str]:
        try:
            return [f"{name}: {command()}"]
        except MetastoreError as error:
            return [f"{name}: {self._refused(error)}"]

    def _refused(self, error: MetastoreError) -> str:
        conflict = re.search(r"conflict on (\S+) committed by \[txnid:(\d+),\d+\] (\S+)", str(error))
        if conflict:
            names = {txn_id: name for name, txn_id in self.txns.items()}
            return f"aborted, {names[int(conflict[2])]} changed {conflict[1]} first ({conflict[3]})"
        if isinstance(error, NoSuchTxnError):
            return "committed already" if "already committed" in str(error) else "no such transaction"
        return {TxnAbortedError: "aborted already", NoSuchLockError: "no such lock",
                TxnOpenError: "held by an open transaction"}.get(type(error), str(error))


def _object(text: str) -> LockObject:
    table, _, partition = text.partition("/")
    db, _, table = table.partition(".")
    return LockObject("hive", db, table, partition)


def all_scripts() -> list[Path]:
    """Every script of the tree."""
    return sorted(path for path in SCRIPTS.rglob("*") if path.is_file() and path.suffix == "")


def record() -> None:
    """Write the model's answers into the scripts."""
    from tests.support.script_model import Model

    for path in all_scripts():
        played = play(path.read_text(encoding="utf-8"), Model())
        if played != path.read_text(encoding="utf-8"):
            path.write_text(played, encoding="utf-8")
            sys.stdout.write(f"recorded {path.relative_to(SCRIPTS)}\n")


if __name__ == "__main__":
    record()
