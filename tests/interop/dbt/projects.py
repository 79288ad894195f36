"""A dbt project on ACID tables, by dbt-spark in a session of its own; `make dbt-check`, not part of `make test`.

The project has the file of macros that docs/how-to/dbt.md names, and a profile as that page has it. What dbt leaves is read without Spark.
"""

import json
import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from metastore.client import scan
from tests.interop.spark_clients.conftest import environment, metastore
from tests.support.able import AbleClient
from tests.support.spark_sessions import connector

__all__ = ["metastore"]

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

HERE = Path(__file__).parent
MACROS = HERE.parents[2] / "deploy" / "dbt" / "acid_tables.sql"
SMALL = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g",
         "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.sql.session.timeZone": "UTC"}
LATER_ORDERS = """id,state,amount,day,changed_at
1,paid,10.50,2024-05-01,2024-05-03 07:00:00
2,paid,20.00,2024-05-01,2024-05-01 09:00:00
3,sent,5.25,2024-05-02,2024-05-03 08:00:00
5,new,9.99,2024-05-03,2024-05-03 09:00:00
"""
MAY_1, MAY_2, MAY_3 = (date(2024, 5, day) for day in (1, 2, 3))


@pytest.fixture(scope="module")
def project(metastore, tmp_path_factory):
    """``dbt(*words)``: what it said; ``rows(table, *columns)``; ``place``."""
    place = tmp_path_factory.mktemp("dbt") / "shop"
    shutil.copytree(HERE / "shop", place)
    (place / "macros").mkdir()
    shutil.copy(MACROS, place / "macros")
    (place / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in SMALL.items()))
    known = {**environment(), "ACID_JAR": connector(), "METASTORE_URI": metastore.uri, "WAREHOUSE": metastore.warehouse,
             "SPARK_CONF_DIR": str(place), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}

    def dbt(*words):
        done = subprocess.run([sys.executable, "-c", "from dbt.cli.main import cli; cli()", *words, "--no-use-colors", "--profiles-dir", place], cwd=place, env=known, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        assert not done.returncode, done.stdout[-6000:]
        return done.stdout

    def rows(table, *columns):
        read = scan(f"shop.{table}", columns=list(columns), uri=metastore.uri).to_arrow().select(columns).to_pydict()
        return sorted(zip(*read.values(), strict=True), key=str)

    return SimpleNamespace(dbt=dbt, rows=rows, place=place, uri=metastore.uri)


def test_first_build_then_with_changes_then_anew(project):
    project.dbt("build")

    assert project.rows("orders", "id", "state") == [(1, "new"), (2, "paid"), (3, "new"), (4, "new")]
    assert project.rows("order_facts", "id", "state", "day") == [
        (1, "new", MAY_1), (2, "paid", MAY_1), (3, "new", MAY_2), (4, "new", MAY_2)]
    assert project.rows("days", "day", "orders", "amount") == [(MAY_1, 2, Decimal("30.50")), (MAY_2, 2, Decimal("12.25"))]
    assert [row[1:] for row in project.rows("order_history", "id", "state", "dbt_valid_to")] == [
        ("new", None), ("paid", None), ("new", None), ("new", None)]
    with AbleClient(project.uri) as client:
        of_kind = {name: client.get_table("shop", name).parameters.get("transactional") for name in client.get_all_tables("shop")}
        before = client.get_table("shop", "order_facts").createTime
    assert of_kind.pop("open_orders") is None  # a view
    assert set(of_kind.values()) == {"true"}, of_kind

    (project.place / "seeds" / "orders.csv").write_text(LATER_ORDERS)
    project.dbt("build", "--vars", "{with_state: true}")

    assert project.rows("order_facts", "id", "state", "day") == [
        (1, "paid", MAY_1), (2, "paid", MAY_1), (3, "sent", MAY_2), (4, "new", MAY_2), (5, "new", MAY_3)]
    assert project.rows("days", "day", "orders") == [(MAY_1, 2), (MAY_2, 2), (MAY_3, 1)]
    assert project.rows("arrivals", "id", "state") == [(1, "paid"), (1, None), (2, None), (3, "sent"), (3, None), (4, None), (5, "new")]
    assert project.rows("last_days", "id", "day") == [(1, MAY_1), (2, MAY_1), (3, MAY_2), (5, MAY_3)]
    history = project.rows("order_history", "id", "state", "dbt_valid_to")
    assert [(number, state, until is None) for number, state, until in history] == [
        (1, "new", False), (1, "paid", True), (2, "paid", True), (3, "new", False), (3, "sent", True), (4, "new", False), (5, "new", True)]
    with AbleClient(project.uri) as client:
        assert client.get_table("shop", "order_facts").createTime == before

    project.dbt("build", "--full-refresh")

    assert project.rows("order_facts", "id") == [(1,), (2,), (3,), (5,)]
    assert len(project.rows("order_history", "id")) == len(history)  # dbt keeps snapshots


def test_the_documentation_lists_tables_with_their_columns(project):
    project.dbt("seed")
    project.dbt("docs", "generate")

    catalog = json.loads((project.place / "target" / "catalog.json").read_text())["nodes"]
    assert list(catalog["seed.shop.orders"]["columns"]) == ["id", "state", "amount", "day", "changed_at"]
