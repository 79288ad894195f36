"""The commands of the pages on running it anywhere are such as the programs take (`make cluster-check` runs helm's)."""

import json
import re
import shlex

import click
import pytest
import yaml

from metastore.cli.main import cli
from tests.deploy.test_manifests import CHART, DEPLOY, objects, of_kind
from tests.support import how_to

PAGES = ["kubernetes.md", "sidecar.md", "machines.md"]
ROOT = DEPLOY.parent


def blocks(page):
    return "".join(re.findall(r"^```sh\n(.*?)^```", (how_to.PAGES / page).read_text(), re.MULTILINE | re.DOTALL)).replace("\\\n", " ")


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page):
    named = {word for word in shlex.split(blocks(page), comments=True) if word.startswith("deploy/")}
    assert named
    assert [word for word in sorted(named) if not (ROOT / word).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_values_that_are_set_are_of_the_chart(page):
    schema = json.loads((CHART / "values.schema.json").read_text())
    for words in how_to.commands(page, "helm"):
        assert (words[1], words[3]) in {("install", "deploy/helm/transaction-metastore"), ("upgrade", "deploy/helm/transaction-metastore")}
        for value in (words[number + 1] for number, word in enumerate(words) if word == "--set"):
            place, path = schema, re.split(r"(?<!\\)\.", value.partition("=")[0])
            for name in path:
                place = place.get("properties", {}).get(name) or place.get("additionalProperties")
                assert place, value


@pytest.mark.parametrize("page", PAGES)
def test_our_command_line_takes_the_commands(page):
    for _, name, *words in how_to.commands(page):
        command = cli.get_command(click.Context(cli), name)
        command.make_context(name, words, help_option_names=["-h", "--help"])


def test_units_of_the_page_are_there():
    there = {path.name for path in (DEPLOY / "systemd").iterdir()}
    assert set(re.findall(r"[\w-]+\.service", blocks("machines.md"))) == there


def test_what_operators_are_told_is_what_the_chart_makes():
    """The address and the ConfigMap; `metastore` in `lake` is what deploy/k8s is rendered for."""
    texts = re.findall(r"^```yaml\n(.*?)^```", (how_to.PAGES / "under-an-operator.md").read_text(), re.MULTILINE | re.DOTALL)
    hive, trino = map(yaml.safe_load, texts)
    discovery = of_kind("production", "ConfigMap", "metastore-discovery")
    assert (hive["apiVersion"], hive["kind"]) == ("hive.apache.org/v1", "HiveCluster")
    assert hive["spec"]["metastore"]["enabled"] is False
    assert hive["spec"]["metastore"]["externalUri"] == discovery["data"]["HIVE"]
    assert (trino["apiVersion"], trino["kind"]) == ("trino.stackable.tech/v1alpha1", "TrinoCatalog")
    assert trino["spec"]["connector"]["hive"]["metastore"]["configMap"] == discovery["metadata"]["name"]


def test_the_chart_brings_what_rings_and_what_is_looked_at():
    """Check that the page's values are the production's, and that each file of rules and dashboards is in what they render to."""
    [text] = re.findall(r"^```yaml\n(.*?)^```", (how_to.PAGES / "alerts.md").read_text(), re.MULTILINE | re.DOTALL)
    assert yaml.safe_load(text).items() <= yaml.safe_load((CHART / "ci" / "production.yaml").read_text()).items()
    [rule] = [found for found in objects(CHART.parents[1] / "k8s" / "production.yaml") if found["kind"] == "PrometheusRule"]
    given = [group for path in sorted((CHART / "rules").glob("*.yaml")) for group in yaml.safe_load(path.read_text())["groups"]]
    assert rule["spec"]["groups"] == given
    for path in (CHART / "dashboards").glob("*.json"):
        found = of_kind("production", "ConfigMap", f"metastore-dashboard-{path.stem}")
        assert json.loads(found["data"][path.name]) == json.loads(path.read_text())
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
