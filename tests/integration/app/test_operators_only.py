"""What cannot be undone is refused to any client, over the wire, and done for the server's own user."""

import pytest

from metastore.client import MetastoreClient
from metastore.client.client import ActingFor
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.auth import local_user

MANY = 2**62
FORGED = {
    "seed_txn_id": lambda c: c.seed_txn_id(T.SeedTxnIdRequest(MANY)),
    "seed_write_id": lambda c: c.seed_write_id(T.SeedTableWriteIdsRequest("d", "t", MANY)),
    "repl_tbl_writeid_state": lambda c: c.repl_tbl_writeid_state(T.ReplTblWriteIdStateRequest("d.t:5:5:1:", "u", "h", "d", "t")),
    "open_txns": lambda c: c.open_txns(T.OpenTxnRequest(1, "u", "h", replPolicy="d.*", replSrcTxnIds=[7], txn_type=T.TxnType.REPL_CREATED)),
    "allocate": lambda c: c.allocate_table_write_ids(
        T.AllocateTableWriteIdsRequest("d", "t", replPolicy="d.*", srcTxnToWriteIdList=[T.TxnToWriteId(7, MANY)])),
    "commit_txn": lambda c: c.commit_txn(T.CommitTxnRequest(7, "d.*")),
    "abort_txn": lambda c: c.abort_txn(T.AbortTxnRequest(7, "d.*")),
    "a position": lambda c: c.commit_txn(T.CommitTxnRequest(1, replLastIdInfo=T.ReplLastIdInfo("d", MANY))),
    "find_next_compact": lambda c: c.find_next_compact("w"),
    "find_next_compact2": lambda c: c.find_next_compact2(T.FindNextCompactRequest("w", "4")),
    "mark_compacted": lambda c: c.mark_compacted(T.CompactionInfoStruct(id=1, dbname="d", tablename="t", type=2, workerId="w")),
    "act_for": lambda c: c.metastore_act_for("root", "10.0.0.1:1"),
}  # fmt: skip


def refused(client):
    said = {}
    for name, call in FORGED.items():
        try:
            call(client)
        except Exception as error:  # noqa: BLE001 - of which kind it is tells the method
            said[name] = str(error)
    return {name for name, text in said.items() if "only operators may" in text}


def test_any_client_is_refused_and_the_servers_user_is_not(client, monkeypatch):
    me = local_user.os.geteuid()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(local_user.os, "geteuid", lambda: me + 1)
        assert refused(client) == FORGED.keys()
        assert client.open_txns(T.OpenTxnRequest(1, "u", "h")).txn_ids == [1]
    client.seed_txn_id(T.SeedTxnIdRequest(77))
    assert refused(client) == set()


@pytest.fixture
def server_settings():
    return {"metastore.limit.open.txns": "2", "metastore.limit.exempt": ""}


def test_a_planners_caller_has_limits_of_its_own(server):
    asked = T.OpenTxnRequest(2, "u", "h")
    with MetastoreClient(server.thrift_uri, acting_for=ActingFor(None, "203.0.113.7:0")) as planner:
        planner.open_txns(asked)
        with pytest.raises(Exception, match=r"203\.0\.113\.7 has 2"):
            planner.open_txns(asked)
    with MetastoreClient(server.thrift_uri, acting_for=ActingFor(None, "203.0.113.8:0")) as other:
        other.open_txns(asked)
    with MetastoreClient(server.thrift_uri) as direct:
        direct.open_txns(asked)


def test_a_planner_that_is_not_believed_acts_for_nobody_with_a_proven_name(server, monkeypatch):
    me = local_user.os.geteuid()
    monkeypatch.setattr(local_user.os, "geteuid", lambda: me + 1)
    with MetastoreClient(server.thrift_uri, acting_for=ActingFor("bob", "203.0.113.7:0")) as planner:
        for _ in range(2):
            with pytest.raises(Exception, match="metastore_act_for is refused"):
                planner.get_all_databases()
    with MetastoreClient(server.thrift_uri, acting_for=ActingFor(None, "203.0.113.7:0")) as planner:
        assert planner.get_all_databases() == ["default"]
