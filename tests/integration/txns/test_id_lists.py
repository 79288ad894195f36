"""Transaction lists in the forms that clients send them, over Thrift."""

import pytest

from metastore.acid.snapshots import MOST_IN_RANGES
from metastore.thrift_gen.hive_metastore import ttypes as types


@pytest.fixture
def ten(client):
    """Transactions 1 to 10, each with a write id of its own of db.t; 1 to 6 are open, 7 is committed, 8 to 10 are aborted."""
    ids = client.open_txns(types.OpenTxnRequest(num_txns=10, user="ann", hostname="h1")).txn_ids
    client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(dbName="db", tableName="t", txnIds=ids))
    client.add_dynamic_partitions(types.AddDynamicPartitions(8, 8, "db", "t", ["p=1"], types.DataOperationType.INSERT))
    client.commit_txn(types.CommitTxnRequest(txnid=7))
    for txn_id in (8, 9, 10):
        client.abort_txn(types.AbortTxnRequest(txnid=txn_id))
    return ids


@pytest.mark.parametrize("text", ["10:1:1-6:8-10", "10:1:1-6:8,9,10", "10:1:1,2,3,4,5,6:8,9,10", "10:1:1,2,3,4,5,6,8,9,10"])
def test_every_form_hides_the_same(client, ten, text):
    [told] = client.get_valid_write_ids(types.GetValidWriteIdsRequest(["db.t"], text)).tblValidWriteIds

    assert (told.writeIdHighWaterMark, told.invalidWriteIds) == (10, [1, 2, 3, 4, 5, 6, 8, 9, 10])
    assert told.minOpenWriteId == 1


@pytest.mark.parametrize("text", ["10:1:1-6-8:", "10:1:6-:", "10:1:1;6:", f"10:1:1-{MOST_IN_RANGES + 1}:", f"10:1:1-{'9' * 5000}:",
                                  "10:1:99999999999999999999:"])
def test_what_is_no_list_is_refused_with_its_text(client, ten, text):
    with pytest.raises(types.MetaException, match="id list '10:1:"):
        client.get_valid_write_ids(types.GetValidWriteIdsRequest(["db.t"], text))
