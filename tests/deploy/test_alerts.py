"""The alerts ask for metrics that there are, and each has a section that says what to do."""

import re
from pathlib import Path

import yaml

from metastore.client import MetastoreClient
from metastore.loops.reaper import ReaperReport
from metastore.telemetry.compactions import GAUGES, STATES, CompactionCollector
from metastore.telemetry.locks import LockStats
from metastore.telemetry.metrics import Metrics
from metastore.telemetry.txns import TxnStats
from metastore.thrift_server.wire.codec import CODECS
from tests.docs import dashboards

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "alerts.md"
CHART = ROOT / "deploy" / "helm" / "transaction-metastore"


def rules(name):
    return [rule for group in yaml.safe_load((CHART / "rules" / f"{name}.yaml").read_text())["groups"] for rule in group["rules"]]


RULES = rules("alerts")


def queries():
    """Yield each query of the alerts, the recording rules and the panels, and where it stands."""
    for name in ("alerts", "hive-names"):
        yield from ((rule.get("alert", rule.get("record")), rule["expr"]) for rule in rules(name))
    for board in dashboards.boards():
        yield from ((f"{board['title']}: {panel['title']} {legend}", asked) for row in board["rows"] for panel in row for legend, asked in panel["of"].items())


def printed(metrics):
    """Return the names of all metrics, also of counters that have counted nothing yet."""
    return {name for family in metrics.registry.collect() for name in (family.name, f"{family.name}_total")}


def test_what_is_asked_for_is_printed(server):
    with MetastoreClient(server.thrift_uri) as client:
        client.get_all_databases()
    server.metrics.add(CompactionCollector(lambda: [("compactions", "failed", 1.0)]))
    names = printed(server.metrics) | {sample.name for family in server.metrics.registry.collect() for sample in family.samples}
    asked = {(where, name) for where, query in queries() for name in re.findall(r"\b(?:metastore|process)_\w+", query)}

    assert {(where, name) for where, name in asked if name not in names} == set()


def test_words_of_labels_are_those_that_are_printed():
    metrics = Metrics("1")
    for failed in (True, False):
        metrics.loops.ticked("reaper", 0.1, ReaperReport(), failed=failed)
    known = {name: {sample.labels[name] for family in metrics.registry.collect() for sample in family.samples if name in sample.labels} for name in ("outcome", "what")}
    known["outcome"] |= {"ok", "INTERNAL_ERROR"}  # of calls
    known |= {"state": STATES, "kind": next(gauge.always for gauge in GAUGES.values() if gauge.label == "kind"), "method": CODECS}
    for where, query in queries():
        for label, words in re.findall(r'(\w+)!?=~?"([^"]+)"', query):
            assert set(words.split("|")) <= set(known.get(label, words.split("|"))), where


def test_a_legend_shows_a_label_that_its_query_keeps():
    """Check that a legend names labels of `by (x)`, which keeps x alone; without it Prometheus adds the process's address."""
    for where, query in queries():
        for shown in re.findall(r"{{(\w+)}}", where):
            kept = re.findall(r"\bby \(([\w, ]+)\)", query)
            labels = set(re.split(", ?", kept[0])) if kept else {"instance"}
            assert shown in labels, where


def test_every_alert_has_a_runbook_and_every_section_an_alert():
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE)

    assert sections == list(dict.fromkeys(rule["alert"] for rule in RULES))
    assert [rule["alert"] for rule in RULES if rule["annotations"]["runbook"] != f"docs/how-to/alerts.md#{rule['alert'].lower()}"] == []
    assert {rule["labels"]["severity"] for rule in RULES} == {"warning", "critical"}


def test_the_page_of_metrics_names_metrics_that_are_printed_and_all_that_are_measured():
    metrics, page = Metrics("1"), (ROOT / "docs" / "reference" / "metrics.md").read_text()
    for collector in (CompactionCollector(lambda: [("compactions", "failed", 1.0)]), LockStats(), TxnStats()):
        metrics.add(collector)
    named = set(re.findall(r"`(metastore_\w+)", page))

    assert named <= printed(metrics)
    assert {gauge.name for gauge in GAUGES.values()} <= named


def test_states_of_which_there_are_none_are_zero():
    collector = CompactionCollector(lambda: [("compactions", "failed", 2.0), ("pool_waiting", "etl", 3.0), ("locks", "", 4.0)])
    printed = {(sample.name, *sample.labels.values()): sample.value for family in collector.collect() for sample in family.samples}

    assert printed["metastore_compactions", "failed"] == 2
    assert printed["metastore_compactions", "succeeded"] == 0
    assert (printed["metastore_compaction_pool_waiting", "etl"], printed["metastore_locks",]) == (3, 4)
    assert ("metastore_aborted_txns",) not in printed  # not measured: not told
    assert list(CompactionCollector(list).collect()) == []


def test_names_of_hives_are_each_given_once():
    records = [rule["record"] for rule in rules("hive-names")]

    assert len(records) == len(set(records))
    assert {record.rsplit("_", 1)[1] for record in records} == {"Count", "Value"}
