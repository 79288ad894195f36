"""PostgreSQL fails over: a streaming standby is promoted, and judged is what was acknowledged."""

import threading
from functools import partial

import pytest
from thrift.Thrift import TApplicationException

from metastore.app import App
from metastore.cli.main import main
from metastore.client import MetastoreClient
from metastore.config.settings import SettingsSource, build
from metastore.errors import MetastoreError
from tests.robustness.harness.processes import remove, scratch, wait_for
from tests.robustness.harness.run import PROCESSES, THREADS, Cluster
from tests.robustness.harness.standby import Pair

pytestmark = [pytest.mark.robustness, pytest.mark.timeout(1200)]
ACTIONS, SEED = 12, 31


def test_with_synchronous_replication_nothing_acknowledged_is_lost():
    with Cluster(postgres=partial(Pair, synchronous=True)) as cluster:
        ticks = cluster.directory / f"history-{SEED}" / "ticks"
        half = ACTIONS * THREADS * PROCESSES // 2

        def promoted():
            wait_for(lambda: ticks.exists() and ticks.stat().st_size >= half, "half of the work to be done")
            cluster.postgres.fail_over()

        thread = threading.Thread(target=promoted)
        thread.start()
        try:
            outcome = cluster.run(SEED, ACTIONS, faults=False)
        finally:
            thread.join()
            cluster.postgres.process.poll()
        on_the_new_one = cluster.postgres.ask("SELECT timeline, is_synchronous FROM database_origin", standby=True)
        cluster.postgres.stop()

    assert not outcome.anomalies, "\n".join(map(str, [outcome, *outcome.anomalies]))
    assert outcome.counts["committed"] > 0
    assert on_the_new_one == [(2, False)]


def test_without_it_nothing_is_served_until_ids_go_on(capsys):
    place = scratch()
    pair = Pair(place / "pg", synchronous=False)
    settings = build([SettingsSource("test", {
        "metastore.database.url": pair.url, "hive.metastore.port": "0", "metastore.http.port": "0",
        "hive.metastore.warehouse.dir": (place / "warehouse").as_uri()})])
    try:
        first = App(settings, loops=False)
        first.start()
        with MetastoreClient(first.thrift_uri, timeout_s=60) as client:
            [before] = client.open_txns(client.types.OpenTxnRequest(num_txns=1, user="ann", hostname="here")).txn_ids
            pair.fail_over()
            told = []

            def refused():
                try:
                    client.get_open_txns()
                except (client.types.MetaException, TApplicationException, MetastoreError) as error:
                    told.append(str(error))
                return told and "not the one that was served before" in told[-1]

            wait_for(refused, "the refusal")
        first.stop()
        main(["db", "restored", "--database-url", pair.url])
        second = App(settings, loops=False)
        second.start()
        with MetastoreClient(second.thrift_uri) as client:
            [after] = client.open_txns(client.types.OpenTxnRequest(num_txns=1, user="ann", hostname="here")).txn_ids
        second.stop()
    finally:
        pair.stop()
        remove(place)

    assert "ids would be given out twice, so nothing is served" in told[-1]
    assert after > before + 1_000_000
