"""A Spark driver that reads slowly and quickly, brings in files by a streaming query, and has a disk that fills up."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.robustness.soak.driver import FAILURES, Driver
from tests.robustness.soak.role import PATIENCE_S, pause
from tests.robustness.soak.tables import ACCOUNTS, COMPACTED, EACH

STREAMED = 20


class Reader(Driver):
    """Reads slowly and quickly, and brings in files by a streaming query."""

    def run(self) -> None:
        stream: Any = None
        moves = 0
        while not self.has_to_stop():
            if stream is None or not stream.isActive:
                stream = self.stream()
            self.bring()
            act: Callable[[], None] = self.random.choice((self.slowly, self.again, self.disk_for_statement, self.disk_for_compaction))
            act()
            moves = self.quickly(moves)
        self.drain(stream)
        self.quickly(moves)
        rows = self.rows("SELECT id FROM soak.streamed")
        brought = len(list((self.directory / "incoming").glob("*.json"))) * STREAMED
        if sorted(row.id for row in rows) != list(range(brought)):
            self.anomaly(f"streamed: {len(rows)} rows, {len({row.id for row in rows})} different, {brought} were brought")

    def drain(self, stream: Any) -> None:
        """All files that were brought in are in the table."""
        ends_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                if stream is None or not stream.isActive:
                    stream = self.stream()
                stream.processAllAvailable()
                stream.stop()
                return
            except FAILURES:
                self.count("streams that failed")
                if time.monotonic() > ends_at:
                    raise
                pause(1)

    def slowly(self) -> None:
        """Read a snapshot for many seconds, while its files are compacted and cleaned."""
        silent = self.clock.silent_s
        try:
            self.balance(self._slow_rows())
            self.count("slow reads")
        except FAILURES as error:
            self.judge_read(error, silent)

    def _slow_rows(self) -> Iterator[Any]:
        for at, row in enumerate(self.spark.table("soak.accounts").repartition(6).toLocalIterator()):
            if at % 10 == 0:
                pause(self.random.uniform(0, 3))
            yield row

    def again(self) -> None:
        """Check that a cached frame shows the same rows after its files were compacted and cleaned."""
        silent = self.clock.silent_s
        table, partition = self.random.choice(COMPACTED)
        frame = self.spark.table(f"soak.{table}").cache()
        try:
            first = sorted(map(tuple, frame.collect()))
            is_rewritten = self.compacted(table, partition, until_cleaned=True)
            if sorted(map(tuple, frame.collect())) != first:
                self.anomaly(f"a cached frame of {table} has changed")
            self.count("frames read again when they were rewritten" if is_rewritten else "frames read again")
        except FAILURES as error:
            self.judge_read(error, silent)
        finally:
            frame.unpersist()

    def quickly(self, moves: int) -> int:
        rows = self.rows("SELECT id, balance, moves FROM soak.accounts")
        seen = self.balance(iter(rows))
        if seen < moves:
            self.anomaly(f"{moves} moves were seen, and then {seen}: a transfer was lost")
        self.count("quick reads")
        return seen

    def balance(self, rows: Iterator[Any]) -> int:
        """Check that all accounts are there with their constant sum of money, and return the number of their moves."""
        seen = list(rows)
        if sorted(row.id for row in seen) != list(range(ACCOUNTS)) or sum(row.balance for row in seen) != ACCOUNTS * EACH:
            self.anomaly(f"accounts: {len(seen)} rows with {sum(row.balance for row in seen)}, not {ACCOUNTS} with {ACCOUNTS * EACH}")
        return sum(row.moves for row in seen)

    def disk_for_statement(self) -> None:
        """Check that a statement fails on a disk without room and changes nothing."""
        before = self.on_disk()
        with self.unwritable() as is_so:
            if not is_so:
                return
            try:
                self.spark.sql("INSERT INTO soak.on_disk SELECT id, uuid() FROM range(20000)")
                self.anomaly("a disk without room took rows")
            except FAILURES:
                self.count("statements on such disks")
        if self.on_disk() != before:
            self.anomaly("a statement for which the disk had no room left rows")

    def disk_for_compaction(self) -> None:
        """Check that a compaction whose disk has just become unwritable changes no rows, and count its outcome and reason."""
        try:
            self.spark.sql("INSERT INTO soak.on_disk VALUES (3, 'c')")
        except FAILURES as error:
            self.failed("statements", error)
            return  # it may still be made
        before, number = self.on_disk(), self.met("on_disk")
        if not number:
            return
        with self.unwritable() as is_so:
            if is_so:
                self.count(f"compactions on such disks: {self.end_of(number)}")
        if self.on_disk() != before:
            self.anomaly("a compaction for which the disk had no room changed rows")

    def on_disk(self) -> list[int]:
        return sorted(row.id for row in self.rows("SELECT id FROM soak.on_disk"))

    @contextmanager
    def unwritable(self) -> Iterator[bool]:
        """Whether the disk takes nothing: it is full, or read-only, or its table's directory belongs to somebody else."""
        disk = self.directory / "disk"
        if not disk.is_mount():
            self.count("disks that could not be made")
            yield False
            return
        make, undo = self.random.choice((
            (self._fill, lambda: (disk / "filler").unlink(missing_ok=True)),
            (lambda: self._remount("ro"), lambda: self._remount("rw")),
            (lambda: (disk / "t").chmod(0o500), lambda: (disk / "t").chmod(0o755))))
        try:
            make()
            yield self._is_refused(disk / "t" / ".probe")
        finally:
            undo()

    def _fill(self) -> None:
        with suppress(OSError), (self.directory / "disk" / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)

    def _remount(self, mode: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{mode}", str(self.directory / "disk")], check=True)

    def _is_refused(self, probe: Path) -> bool:
        try:
            with probe.open("wb", buffering=0) as file:
                file.write(b"x" * 4096)
        except OSError as error:
            self.count(f"disks: {error.strerror}")
            return True
        finally:
            with suppress(OSError):
                probe.unlink()
        self.count("disks that take what they should not")
        return False

    def bring(self) -> None:
        incoming = self.directory / "incoming"
        number = len(list(incoming.glob("*.json")))
        partial = incoming / f".{number}.part"
        partial.write_text("".join(json.dumps({"id": number * STREAMED + at}) + "\n" for at in range(STREAMED)))
        partial.rename(incoming / f"{number:06}.json")

    def stream(self) -> Any:
        return (self.spark.readStream.schema("id INT").json(str(self.directory / "incoming"))
                .writeStream.option("checkpointLocation", str(self.directory / "checkpoint"))
                .queryName("incoming").trigger(processingTime="2 seconds").toTable("soak.streamed"))
