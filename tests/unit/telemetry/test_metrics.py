from prometheus_client.parser import text_string_to_metric_families

from metastore.telemetry.metrics import Metrics


def test_every_metric_is_printed_with_help():
    metrics = Metrics("1.2.3")
    metrics.loop_ticks.labels("reaper", "done").inc()
    metrics.watch_pool(lambda: 3, 20)

    content_type, body = metrics.text("text/plain")
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}

    assert content_type.startswith("text/plain")
    assert all(family.documentation for family in families.values())
    assert families["metastore_build_info"].samples[0].labels == {"version": "1.2.3"}
    assert families["metastore_loop_ticks"].samples[0].value == 1
    assert families["metastore_database_connections_in_use"].samples[0].value == 3
    assert "process_resident_memory_bytes" in families


def test_two_processes_parts_do_not_share_a_registry():
    Metrics("1")
    Metrics("1")


def test_openmetrics_for_those_who_ask():
    content_type, body = Metrics("1").text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
