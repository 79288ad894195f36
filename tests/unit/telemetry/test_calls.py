import threading

from prometheus_client import CollectorRegistry, generate_latest

from metastore.telemetry.calls import CallStats


def test_calls_of_all_threads_are_counted():
    stats = CallStats()

    def work():
        for _ in range(1000):
            stats.record("lock", "ok", 0.0007)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats.record("lock", "TxnAbortedException", 40.0)
    assert stats.counts() == {"lock": 4001}


def test_what_prometheus_gets():
    stats, registry = CallStats(), CollectorRegistry()
    registry.register(stats)
    stats.record("lock", "ok", 0.0007)
    stats.record("lock", "ok", 0.001)
    stats.record("lock", "NoSuchTxnException", 40.0)
    text = generate_latest(registry).decode()
    assert 'metastore_calls_total{method="lock",outcome="ok"} 2.0' in text
    assert 'metastore_calls_total{method="lock",outcome="NoSuchTxnException"} 1.0' in text
    assert 'metastore_call_seconds_bucket{le="0.0005",method="lock"} 0.0' in text
    assert 'metastore_call_seconds_bucket{le="0.001",method="lock"} 2.0' in text
    assert 'metastore_call_seconds_bucket{le="+Inf",method="lock"} 3.0' in text
    assert 'metastore_call_seconds_count{method="lock"} 3.0' in text
