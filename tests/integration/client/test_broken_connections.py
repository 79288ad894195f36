"""The client behind a proxy that loses requests and answers: what was done is done once."""

import socket
import threading

import pytest

from metastore.client import MetastoreClient, TxnManager
from metastore.client.lock_plan import Kind, Output, Target, statement_locks
from metastore.errors import TxnAbortedError
from metastore.thrift_gen.hive_metastore import ttypes

TARGET = Target("db", "t", "p=1")


class Proxy:
    """Passes bytes on, until a request names ``method``: then that request is lost, or its answer is."""

    def __init__(self, uri):
        self.server = uri.removeprefix("thrift://").split(":")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self.listener.getsockname()[1]}"
        self.plan = []
        self.seen = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, method, *what):
        """Lose the "request", its "answer", or nothing (""), for each of the next requests of this method."""
        self.method, self.plan = method.encode(), list(what)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                inner, _ = self.listener.accept()
            except OSError:
                return
            outer = socket.create_connection((self.server[0], int(self.server[1])))
            threading.Thread(target=self._pass, args=(inner, outer), daemon=True).start()

    def _pass(self, client, server):
        """One call after the other, as the client makes them."""
        with client, server:
            threading.Thread(target=self._answer, args=(server, client), daemon=True).start()
            while True:
                try:
                    data = client.recv(1 << 20)
                except OSError:
                    return
                if not data:
                    return
                fate = ""
                if self.plan and self.method in data:
                    self.seen += 1
                    fate = self.plan.pop(0)
                if fate == "request":
                    return
                if fate == "answer":
                    client.shutdown(socket.SHUT_RDWR)
                server.sendall(data)
                if fate == "answer":
                    threading.Event().wait(0.5)  # let the server work before its client is seen to be gone
                    return

    @staticmethod
    def _answer(server, client):
        try:
            while data := server.recv(1 << 20):
                client.sendall(data)
        except OSError:
            return


@pytest.fixture
def proxy(server):
    between = Proxy(server.thrift_uri)
    yield between
    between.close()


@pytest.fixture
def manager(proxy):
    with MetastoreClient(proxy.uri) as client:
        yield TxnManager(client)


def written(txn):
    txn.lock(statement_locks(outputs=[Output(TARGET, Kind.UPDATE)]))
    txn.write_id("db", "t")


@pytest.mark.parametrize(("lost", "sent"), [((), 0), (("request",), 1), (("answer",), 1)])
def test_a_commit_is_done_once_whatever_is_lost(server, proxy, manager, lost, sent):
    """And a lost answer is not a second commit: the transaction is asked about."""
    txn = manager.open()
    written(txn)
    proxy.lose("commit_txn", *lost)

    txn.commit()

    assert proxy.seen == sent
    assert server.database.once("SELECT count(*), count(DISTINCT txn_id) FROM completed_txn_components") == [(1, 1)]
    assert server.database.once("SELECT state FROM txns WHERE id = %s", (txn.id,)) == [("committed",)]
    assert server.database.once("SELECT count(*) FROM write_sets WHERE txn_id = %s", (txn.id,)) == [(1,)]


def test_a_commit_that_is_lost_twice_is_sent_until_it_is_done(server, proxy, manager):
    """Open says that it has not been done yet, not that it will not be (ADR 35)."""
    txn = manager.open()
    written(txn)
    proxy.lose("commit_txn", "request", "request")

    txn.commit()

    assert proxy.seen == 2
    assert server.database.once("SELECT state FROM txns WHERE id = %s", (txn.id,)) in ([], [("committed",)])
    assert server.database.once("SELECT count(*) FROM completed_txn_components") == [(1,)]
    txn.commit()  # the caller may: what is committed already is not committed again
    assert server.database.once("SELECT count(*) FROM completed_txn_components") == [(1,)]


def test_a_commit_whose_answer_is_lost_is_not_repeated_over_later_commits(server, proxy, manager):
    first = manager.open()
    written(first)
    proxy.lose("commit_txn", "answer")
    first.commit()
    with manager.transaction() as second:
        written(second)

    assert server.database.once("SELECT count(*) FROM completed_txn_components") == [(2,)]
    assert server.database.once("SELECT count(*) FROM write_sets WHERE txn_id = %s", (first.id,)) <= [(1,)]


def test_a_lost_commit_of_a_transaction_that_was_aborted_meanwhile(server, proxy, manager):
    txn = manager.open()
    written(txn)
    with MetastoreClient(server.thrift_uri) as other:
        other.abort_txn(ttypes.AbortTxnRequest(txn.id))
    proxy.lose("commit_txn", "request")

    with pytest.raises(TxnAbortedError):
        txn.commit()
    assert server.database.once("SELECT count(*) FROM completed_txn_components") == [(0,)]


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_what_only_reads_or_keeps_alive_is_simply_asked_again(proxy, manager, lost):
    txn = manager.open()
    proxy.lose("get_open_txns", lost)

    assert txn.valid_txns().is_valid(txn.id)
    assert proxy.seen == 1
    txn.abort()
