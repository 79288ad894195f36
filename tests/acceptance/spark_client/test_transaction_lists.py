"""The transaction answers as the client inside Spark (Hive 2.3.10) reads them: its own classes, in Spark's own JVM."""

import pytest

from metastore.acid.snapshots import ValidTxnList
from metastore.thrift_gen.hive_metastore import ttypes as types


@pytest.fixture
def java_client(spark, lakehouse):
    hive = spark._jvm.org.apache.hadoop.hive
    conf = hive.conf.HiveConf()
    conf.set("hive.metastore.uris", lakehouse.uri)
    client = hive.metastore.HiveMetaStoreClient(conf)
    yield client
    client.close()


def test_a_list_with_many_in_a_row(spark, java_client, hive):
    """Seven open and six aborted ones without a gap, which later clients write as ranges."""
    ids = hive.open_txns(types.OpenTxnRequest(num_txns=14, user="ann", hostname="h1")).txn_ids
    first, aborted, committed = ids[0], ids[7:13], ids[13]
    for txn_id in aborted:
        hive.add_dynamic_partitions(types.AddDynamicPartitions(
            txn_id, 1, "lists", "t", ["p=1"], types.DataOperationType.INSERT))
        hive.abort_txn(types.AbortTxnRequest(txnid=txn_id))
    hive.commit_txn(types.CommitTxnRequest(txnid=committed))
    try:
        found, mine = java_client.getValidTxns(), java_client.getValidTxns(first)
        again = spark._jvm.org.apache.hadoop.hive.common.ValidReadTxnList(found.writeToString())
        ours = ValidTxnList.parse(found.writeToString())

        for one in (found, again, ours):
            is_valid = one.is_valid if one is ours else one.isTxnValid
            assert [txn_id for txn_id in ids if is_valid(txn_id)] == [committed]
        assert list(again.getInvalidTransactions()) == list(found.getInvalidTransactions())
        assert set(ids[:13]) <= set(ours.exceptions)
        assert mine.isTxnValid(first)
        states = {one.getId(): str(one.getState()) for one in java_client.showTxns().getOpen_txns()}
        assert [states.get(txn_id) for txn_id in ids] == ["OPEN"] * 7 + ["ABORTED"] * 6 + [None]
        beat = java_client.heartbeatTxnRange(first, committed)
        assert (set(beat.getAborted()), set(beat.getNosuch())) == (set(aborted), {committed})
    finally:
        hive.abort_txns(types.AbortTxnsRequest(ids[:7]))
