"""Who may import whom: every contract of pyproject.toml refuses what it is for, also in a room that did not exist when it was written."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONTRACTS = [one["name"] for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]]

# For each contract: the new modules that break it, and what the linter says of them.
PLANTED = {
    "A request goes down the layers, never up": (
        {"locks/planted_climber/store.py": "import metastore.catalog.store.tables", "planted_utils.py": ""},
        ["metastore.locks is not allowed to import metastore.catalog", "planted_utils"]),
    "No package imports another that imports it": (
        {"web/planted_one.py": "import metastore.web.planted_two", "web/planted_two.py": "import metastore.web.planted_one"},
        ["metastore.web", ".planted_"]),
    "Inside a room: service, then store, then rules": (
        {"locks/planted_room/rules.py": "import metastore.locks.planted_room.store", "locks/planted_room/store.py": ""},
        ["metastore.locks.planted_room.rules is not allowed to import metastore.locks.planted_room.store"]),
    "Rules and the ACID format are pure": (
        {"txns/planted_clock/rules.py": "import time", "acid/planted_io.py": "import metastore.files"},
        ["metastore.txns.planted_clock.rules is not allowed to import time", "metastore.acid is not allowed to import metastore.files"]),
    "Only the database package and the stores speak SQL": (
        {"txns/planted_sql/service.py": "import psycopg2", "planted_room_of_sql.py": "import sqlalchemy"},
        ["metastore.txns.planted_sql.service", "metastore.planted_room_of_sql"]),
    "A store never calls a service": (
        {"txns/planted_call/store.py": "import metastore.txns.core.service"},
        ["metastore.txns.planted_call.store is not allowed to import metastore.txns.core.service"]),
    "Services do not call each other": (
        {"txns/planted_caller/service.py": "import metastore.txns.commit.service"},
        ["metastore.txns.planted_caller.service is not allowed to import metastore.txns.commit.service"]),
    "Generated Thrift types stop at the edge": (
        {"loops/planted_types.py": "import metastore.thrift_gen.hive_metastore.ttypes"},
        ["metastore.loops.planted_types"]),
    "Spark code and the client open no database": (
        {"spark/planted_pool.py": "import metastore.db.pool", "client/planted_store.py": "import metastore.txns.core.store"},
        ["metastore.spark is not allowed to import metastore.db", "metastore.client is not allowed to import metastore.txns.core.store"]),
    "A planner is a client, and works where there is no Spark": (
        {"planner/planted_spark.py": "import metastore.spark.session"},
        ["metastore.planner is not allowed to import metastore.spark"]),
    "Spark: rooms by the steps of a statement, none looks up": (
        {"spark/read/planted_writer.py": "import metastore.spark.write.acid_writer", "spark/planted_floor/planted.py": ""},
        ["metastore.spark.read is not allowed to import metastore.spark.write", "planted_floor"]),
    "Thrift server: rooms by the way of a message, none looks up": (
        {"thrift_server/loop/planted_call.py": "import metastore.thrift_server.dispatch.call", "thrift_server/planted_flat.py": ""},
        ["metastore.thrift_server.loop is not allowed to import metastore.thrift_server.dispatch", "planted_flat"]),
    "Rules of tables and their files are pure": (
        {"acid_tables/serde_storage.py": "import fsspec"},
        ["metastore.acid_tables.serde_storage is not allowed to import fsspec"]),
    "Streaming works where there is no Spark": (
        {"streaming/planted_frames.py": "import pyspark"},
        ["metastore.streaming is not allowed to import pyspark"]),
}


def linted(place: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"],
                          cwd=place, env={**os.environ, "PYTHONPATH": str(place), "NO_COLOR": "1", "COLUMNS": "300"}, capture_output=True, text=True, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, re.sub(r"\x1b\[[0-9;]*m", "", done.stdout), done.stderr)


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("layers")
    shutil.copy(ROOT / "pyproject.toml", place)
    shutil.copytree(ROOT / "metastore", place / "metastore", ignore=lambda _, names: [
        name for name in names if name == "__pycache__" or Path(name).suffix not in {"", ".py"}])
    return place


@pytest.fixture(scope="module")
def said(copied) -> dict[str, str]:
    """Break each contract, and return the linter's report of each."""
    for modules, _ in PLANTED.values():
        for name, line in modules.items():
            path = copied / "metastore" / name
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8") as module:
                module.write(f"\n{line}\n")
            (path.parent / "__init__.py").touch()
    report = linted(copied)
    assert report.returncode == 1, report.stdout + report.stderr
    *_, broken = report.stdout.partition("Broken contracts\n")
    parts = re.split(r"^(.+)\n-+\n", broken, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_contract_has_a_plant():
    assert sorted(PLANTED) == sorted(CONTRACTS)


@pytest.mark.parametrize("name", PLANTED)
def test_a_forbidden_import_breaks_the_contract(said, name):
    _, words = PLANTED[name]
    assert [one for one in words if one not in said.get(name, "")] == [], said.get(name)
