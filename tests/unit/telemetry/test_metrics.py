from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from metastore.compaction.queue.rules.requests import Entity
from metastore.ids import TableName
from metastore.loops.cleaner import Cleaned, CleanOutcome
from metastore.loops.worker import WorkOutcome, WorkReport
from metastore.telemetry.metrics import Metrics


def test_every_metric_is_printed_with_help():
    metrics = Metrics("1.2.3")
    metrics.loops.ticked("reaper", 0.5, None, failed=False)
    metrics.watch_pool(lambda: 3, 20)

    content_type, body = metrics.text("text/plain")
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}

    assert content_type.startswith("text/plain")
    assert all(family.documentation for family in families.values())
    assert families["metastore_build_info"].samples[0].labels == {"version": "1.2.3"}
    assert families["metastore_loop_ticks"].samples[0].value == 1
    assert families["metastore_database_connections_in_use"].samples[0].value == 3
    assert "process_resident_memory_bytes" in families


@dataclass
class Report:
    removed: int = 0
    victims: tuple[int, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    open: int = field(default=0, metadata={"gauge": True})


def test_what_a_loop_did_and_when():
    metrics = Metrics("1")
    metrics.watch_open_txns(lambda: 7)
    metrics.watch_backlog(lambda: 4, lambda: 2, lambda: 3)
    metrics.loops.ticked("reaper", 0.5, Report(3, (8, 9)), failed=False)
    metrics.loops.ticked("reaper", 0.5, Report(2, failed={"expired_locks": "no database"}, open=5), failed=False)
    metrics.loops.ticked("reaper", 0.5, None, failed=True)
    body = metrics.text("text/plain")[1].decode()
    found = {(one.name, *sorted(one.labels.values())): one.value for family in text_string_to_metric_families(body)
             for one in family.samples}

    assert [found["metastore_loop_ticks_total", *sorted(("reaper", how))] for how in ("done", "partly", "failed")] == [1] * 3
    assert found["metastore_loop_tick_seconds_sum", "reaper"] == 1.5
    assert (found["metastore_loop_done_total", "reaper", "removed"], found["metastore_loop_done_total", "reaper", "victims"]) == (
        5, 2)
    assert found["metastore_loop_step_failures_total", "expired_locks", "reaper"] == 1
    assert found["metastore_loop_last_tick_timestamp_seconds", "reaper"] > 1_600_000_000
    assert found["metastore_open_txns",] == 7
    assert (found["metastore_compactions_waiting",], found["metastore_compactions_working",]) == (4, 2)
    assert ("metastore_loop_done_total", "open", "reaper") not in found


def test_a_failed_compaction_counts_as_failed():
    metrics = Metrics("1")
    compacted, failed = WorkReport(WorkOutcome.COMPACTED, 1), WorkReport(WorkOutcome.FAILED, 2, "no space")
    cleaned, stuck = (Cleaned(1, Entity(TableName("hive", "d", "t")), outcome)
                      for outcome in (CleanOutcome.CLEANED, CleanOutcome.FAILED))
    for loop, report in (("worker-0", compacted), ("worker-0", failed), ("cleaner", [cleaned, stuck]), ("cleaner", [])):
        metrics.loops.ticked(loop, 0.5, report, failed=False)
    body = metrics.text("text/plain")[1].decode()
    found = {(one.name, *(one.labels.values())): one.value for family in text_string_to_metric_families(body)
             for one in family.samples}

    assert [found["metastore_loop_ticks_total", *labels] for labels in (
        ("worker-0", "done"), ("worker-0", "failed"), ("cleaner", "partly"), ("cleaner", "done"))] == [1] * 4
    assert found["metastore_loop_step_failures_total", "worker-0", "compaction"] == 1
    assert found["metastore_loop_step_failures_total", "cleaner", "cleaning"] == 1


def test_two_processes_parts_do_not_share_a_registry():
    Metrics("1")
    Metrics("1")


def test_openmetrics_for_those_who_ask():
    content_type, body = Metrics("1").text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
