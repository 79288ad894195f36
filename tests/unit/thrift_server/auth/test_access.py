"""Who may do what nobody can undo: the server's own user on its machine, and whom a certificate names on a list."""

import os
import socket

import pytest

from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.auth import local_user
from metastore.thrift_server.auth.access import (
    OPERATORS_ONLY,
    REPLICATION,
    Everybody,
    Guarded,
    Identified,
    is_operators,
)
from metastore.thrift_server.auth.identity import NOBODY, Identity, IdentityProof
from metastore.thrift_server.wire.interface import METHODS

ROOT = Identity("root", IdentityProof.CERTIFICATE, "10.0.0.1:1")
REPLAYED = {
    "open_txns": ttypes.OpenTxnRequest(1, "ann", "h", replPolicy="p", replSrcTxnIds=[5]),
    "allocate_table_write_ids": ttypes.AllocateTableWriteIdsRequest("d", "t", replPolicy="p"),
    "commit_txn": ttypes.CommitTxnRequest(1, replLastIdInfo=ttypes.ReplLastIdInfo("d", 5)),
    "abort_txn": ttypes.AbortTxnRequest(1, replPolicy=""),
}  # fmt: skip
PLAIN = {
    "open_txns": ttypes.OpenTxnRequest(1, "ann", "h"),
    "allocate_table_write_ids": ttypes.AllocateTableWriteIdsRequest("d", "t", txnIds=[1]),
    "commit_txn": ttypes.CommitTxnRequest(1),
    "abort_txn": ttypes.AbortTxnRequest(1),
}  # fmt: skip


def test_the_methods_are_there():
    assert METHODS.keys() >= OPERATORS_ONLY | REPLICATION
    assert REPLAYED.keys() == PLAIN.keys() == REPLICATION


@pytest.mark.parametrize("others", [Everybody(), Identified()])
def test_who_is_an_operator(others):
    access = Guarded(others, ["root"], {"10.0.0.9:1"}.__contains__)
    for method, arguments in [*((name, ()) for name in OPERATORS_ONLY), *((name, (sent,)) for name, sent in REPLAYED.items())]:
        assert is_operators(method, arguments)
        assert access.refusal(ROOT, method, arguments) is None
        assert access.refusal(NOBODY._replace(address="10.0.0.9:1"), method, arguments) is None
        for stranger in (NOBODY, NOBODY._replace(address="10.0.0.9:2"), ROOT._replace(user="ann"), Identity("", IdentityProof.CERTIFICATE),
                         Identity(None, IdentityProof.PLANNER, "10.0.0.9:1")):
            assert f"{method} is refused" in access.refusal(stranger, method, arguments)
    for method, sent in PLAIN.items():
        assert access.refusal(ROOT, method, (sent,)) is None
        assert (access.refusal(NOBODY, method, (sent,)) is None) is isinstance(others, Everybody)


def test_an_empty_list_names_nobody():
    assert Guarded(Everybody(), (), lambda _: False).refusal(Identity("", IdentityProof.CERTIFICATE), "seed_txn_id") is not None


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_kernel_says_whose_a_connection_is(family, monkeypatch):
    with socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family) as listener:
        with socket.socket(family) as client:
            client.connect(listener.getsockname()[:2])
            host, port = client.getsockname()[:2]
            assert local_user.is_own_user_at(f"{host}:{port}")
            assert not local_user.is_own_user_at(f"10.1.2.3:{port}")
            me = os.geteuid()
            monkeypatch.setattr(local_user.os, "geteuid", lambda: me + 1)
            assert not local_user.is_own_user_at(f"{host}:{port}")
            monkeypatch.undo()
        assert not local_user.is_own_user_at(f"{host}:{port}")
    assert not any(map(local_user.is_own_user_at, ("", "localhost:1", "127.0.0.1:x", "/tmp/socket", "127.0.0.1:0")))
