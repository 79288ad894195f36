"""Calls that ask for the same at the same time share an answer."""

from types import SimpleNamespace

import pytest

from metastore.errors import InvalidRequestError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.call import Call
from metastore.thrift_server.flights import Flights
from metastore.thrift_server.handlers.compaction import CompactionHandlers
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.thrift_server.handlers.txns import TxnHandlers
from metastore.txns.core.rules import Snapshot, TxnType


def test_one_snapshot_for_each_set_of_types():
    asked = []

    def snapshot(hidden):
        asked.append(hidden)
        return Snapshot(9, [4], b"", 4)

    types = [None, [5], [], [5, 2], [2, 5, 5], [77]]
    calls = [Call("get_open_txns_req", (ttypes.GetOpenTxnsRequest(excludeTxnTypes=each),), None) for each in types]
    answers = TxnHandlers(SimpleNamespace(get_open_txns=snapshot), None, None).get_open_txns_req(calls)

    assert asked == [frozenset(), {TxnType(5)}, {TxnType(5), TxnType(2)}]
    assert answers[0] is answers[2]
    assert answers[3] is answers[4]
    assert isinstance(answers[5], InvalidRequestError)
    assert all(answer.open_txns == [4] for answer in answers[:5])


@pytest.mark.parametrize(("handlers", "method", "arguments", "another"), [
    (LockHandlers(SimpleNamespace(encoded_locks=lambda *_: (0, b""))), "show_locks",
     [ttypes.ShowLocksRequest(dbname="D")], [ttypes.ShowLocksRequest(dbname="e")]),
    (CompactionHandlers(SimpleNamespace(encoded_compactions=lambda *_, **__: (0, b"")), None), "show_compact",
     [ttypes.ShowCompactRequest(dbName="D", order='"CC_STATE"')], [ttypes.ShowCompactRequest(dbName="D")]),
    (TxnHandlers(SimpleNamespace(encoded_txns_info=lambda _: (0, 0, b"")), None, None), "get_open_txns_info", [], None)])
def test_lists_are_shared_by_those_who_ask_for_the_same(monkeypatch, handlers, method, arguments, another):
    questions = []
    answer = Flights.answer
    monkeypatch.setattr(Flights, "answer", lambda self, question, ask: (questions.append(question), answer(self, question, ask))[1])

    for each in (arguments, arguments, *([another] if another else [])):
        assert getattr(handlers, method)(None, *each).length == 0

    assert len(questions) == 2 + (another is not None)
    assert len(set(questions)) == 1 + (another is not None)
