"""Hive 2.3's own code, asked from tests: its directory selection, its reader, its writer, its hashes.

The Java source beside this file is compiled against the jars that PySpark ships and runs as one JVM that answers JSON
lines; a test session starts it once.
"""

import json
import shutil
import subprocess
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark

from metastore.acid.snapshots import NO_OPEN, CompactorWriteIdList, ValidWriteIdList

_SOURCE = Path(__file__).with_name("HiveOracle.java")
_JARS = Path(pyspark.__file__).parent / "jars" / "*"
_OPENED = ("java.lang", "java.lang.reflect", "java.net", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")


class OracleError(Exception):
    """Hive's code threw; the text is its message."""


@dataclass(frozen=True)
class HiveRow:
    """A row as Hive read it: ROW__ID and the table's columns."""

    row_id: tuple[int, int, int]
    values: list[Any]


class HiveOracle:
    """A JVM with Hive's classes; a context manager."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._java: subprocess.Popen[str] | None = None
        self._noise: deque[str] = deque(maxlen=200)

    def __enter__(self) -> Self:
        if shutil.which("javac") is None:
            raise OracleError("javac is missing: install a JDK 17 (openjdk-17-jdk-headless)")
        done = subprocess.run(["javac", "-nowarn", "-cp", str(_JARS), "-d", str(self._work), str(_SOURCE)], check=False,
                              capture_output=True, text=True)
        if done.returncode:
            raise OracleError(done.stderr)
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        self._java = subprocess.Popen(
            ["java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", *opened,
             "-cp", f"{self._work}:{_JARS}", "HiveOracle"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            cwd=self._work)
        threading.Thread(target=self._drain, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        java = self._java
        if java is not None:
            assert java.stdin
            assert java.stdout
            assert java.stderr
            java.stdin.close()
            java.wait(20)
            java.stdout.close()
            java.stderr.close()

    def ask(self, question: str, **details: Any) -> Any:
        """Ask a question and return its answer. Raises: OracleError with Hive's message and trace."""
        java = self._java
        assert java
        assert java.stdin
        assert java.stdout
        java.stdin.write(json.dumps({"question": question, **details}) + "\n")
        java.stdin.flush()
        line = java.stdout.readline()
        if not line:
            raise OracleError("The JVM ended:\n" + "".join(self._noise))
        answer = json.loads(line)
        if "error" in answer:
            raise OracleError(f"{answer['error']}\n{answer['trace']}")
        return answer["answer"]

    def state(self, directory: Path, write_ids: ValidWriteIdList) -> dict[str, Any]:
        """AcidUtils.getAcidState."""
        return dict(self.ask("state", directory=str(directory), **_snapshot(write_ids)))

    def rows(self, directory: Path, write_ids: ValidWriteIdList, columns: dict[str, str], *,
             split_size: int | None = None) -> list[HiveRow]:
        """Return the rows that OrcInputFormat reads in an ACID directory; ``split_size`` forces several splits."""
        options = {"split_size": split_size} if split_size else {}
        answer = self.ask("rows", directory=str(directory), snapshot=hive_2_text(write_ids), columns=",".join(columns),
                         types=":".join(columns.values()), **options)
        rows = [HiveRow(tuple(row["id"]), row["row"]) for row in answer["rows"]]
        assert len({row.row_id for row in rows}) == len(rows), "Hive returned a ROW__ID twice"
        return rows

    def events(self, directory: Path, write_ids: ValidWriteIdList, columns: dict[str, str], bucket: int, *,
               base: str | None, deltas: list[str], collapse: bool) -> list[dict[str, Any]]:
        """Hive's compactor's input: the events of one bucket in order; one event per row when collapsed."""
        return list(self.ask("events", directory=str(directory), bucket=bucket, collapse=collapse,
                             base=base and f"{directory}/{base}", deltas=[f"{directory}/{delta}" for delta in deltas],
                             columns=",".join(columns), types=":".join(columns.values()), **_snapshot(write_ids)))

    def write(self, directory: Path, columns: dict[str, str], *, write_id: int, bucket: int = 0, statement: int = 0,
              inserts: list[list[Any]] | None = None, deletes: list[tuple[int, int, int]] | None = None) -> None:
        """Write a delta, a delete delta or both with OrcRecordUpdater."""
        self.ask("write", directory=str(directory), columns=",".join(columns), types=":".join(columns.values()),
                 write_id=write_id, bucket=bucket, statement_id=statement, inserts=inserts or [], deletes=deletes or [])

    def stream(self, directory: Path, columns: dict[str, str], first: int, transactions: list[list[list[Any]]], *,
               last: int, bucket: int = 0, close: bool = False) -> None:
        """Write a batch delta of write ids ``first`` to ``last`` as a streaming client does, a flush after each.

        Without ``close`` it is left as it is while the client goes on: with a side file.
        """
        self.ask("stream", directory=str(directory), columns=",".join(columns), types=":".join(columns.values()),
                 min=first, max=last, bucket=bucket, transactions=transactions, close=close)

    def _drain(self) -> None:
        java = self._java
        assert java
        assert java.stderr
        try:
            self._noise.extend(java.stderr)
        except ValueError:
            return


def hive_2_text(write_ids: ValidWriteIdList) -> str:
    """Hive 2.3's ValidReadTxnList, with write ids in the place of transaction ids."""
    smallest = NO_OPEN if write_ids.min_open_write_id is None else write_ids.min_open_write_id
    return ":".join(map(str, [write_ids.high_watermark, smallest, *(write_ids.invalid or ("",))]))


def _snapshot(write_ids: ValidWriteIdList) -> dict[str, Any]:
    if isinstance(write_ids, CompactorWriteIdList):
        return {"compactor": write_ids.high_watermark, "aborted": list(write_ids.invalid)}
    return {"snapshot": hive_2_text(write_ids)}
