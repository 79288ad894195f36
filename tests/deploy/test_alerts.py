"""The alerts ask for metrics that there are, and each has a section that says what to do."""

import re
from pathlib import Path

import yaml

from metastore.telemetry.compactions import GAUGES, CompactionCollector
from metastore.telemetry.locks import LockStats
from metastore.telemetry.metrics import Metrics
from metastore.telemetry.txns import TxnStats

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "alerts.md"
RULES = [rule for group in yaml.safe_load((ROOT / "deploy" / "alerts" / "compaction.yaml").read_text())["groups"] for rule in group["rules"]]


def test_every_alert_asks_for_metrics_that_are_printed():
    metrics = Metrics("1")
    metrics.add(CompactionCollector(lambda: [("compactions", "failed", 1.0)]))
    printed = {name for family in metrics.registry.collect() for name in (family.name, f"{family.name}_total")}

    assert {name for rule in RULES for name in re.findall(r"metastore_\w+", rule["expr"])} <= printed


def test_every_alert_has_a_runbook_and_every_section_an_alert():
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE)

    assert sections == list(dict.fromkeys(rule["alert"] for rule in RULES))
    assert [rule["alert"] for rule in RULES if rule["annotations"]["runbook"] != f"docs/how-to/alerts.md#{rule['alert'].lower()}"] == []
    assert {rule["labels"]["severity"] for rule in RULES} == {"warning", "critical"}


def test_the_page_of_metrics_names_metrics_that_are_printed_and_all_that_are_measured():
    metrics, page = Metrics("1"), (ROOT / "docs" / "reference" / "metrics.md").read_text()
    for collector in (CompactionCollector(lambda: [("compactions", "failed", 1.0)]), LockStats(), TxnStats()):
        metrics.add(collector)
    printed = {name for family in metrics.registry.collect() for name in (family.name, f"{family.name}_total")}
    named = set(re.findall(r"`(metastore_\w+)", page))

    assert named <= printed
    assert {gauge.name for gauge in GAUGES.values()} <= named


def test_states_of_which_there_are_none_are_zero():
    collector = CompactionCollector(lambda: [("compactions", "failed", 2.0), ("pool_waiting", "etl", 3.0), ("locks", "", 4.0)])
    printed = {(sample.name, *sample.labels.values()): sample.value for family in collector.collect() for sample in family.samples}

    assert printed["metastore_compactions", "failed"] == 2
    assert printed["metastore_compactions", "succeeded"] == 0
    assert (printed["metastore_compaction_pool_waiting", "etl"], printed["metastore_locks",]) == (3, 4)
    assert ("metastore_aborted_txns",) not in printed  # not measured: not told
    assert list(CompactionCollector(list).collect()) == []
