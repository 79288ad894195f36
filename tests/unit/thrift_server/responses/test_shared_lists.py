"""Calls that ask for the same at the same time share an answer."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from types import SimpleNamespace

import pytest

from metastore.db.pieces import Pieces
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.compaction import CompactionHandlers
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.thrift_server.handlers.txns import TxnHandlers
from metastore.thrift_server.responses.shared_lists import SharedLists
from metastore.thrift_server.responses.single_flight import SingleFlight
from metastore.txns.core.rules import Snapshot, TxnType


def test_one_snapshot_for_each_set_of_types():
    asked = []

    def snapshot(hidden):
        asked.append(hidden)
        return Snapshot(9, [4], b"", 4)

    types = [None, [5], [], [5, 2], [2, 5, 5]]
    calls = [Call("get_open_txns_req", (ttypes.GetOpenTxnsRequest(excludeTxnTypes=each),), None) for each in types]
    answers = TxnHandlers(SimpleNamespace(get_open_txns=snapshot), None, None).get_open_txns_req(calls)

    assert asked == [frozenset(), {TxnType(5)}, {TxnType(5), TxnType(2)}]
    assert answers[0] is answers[2]
    assert answers[3] is answers[4]
    assert all(answer.open_txns == [4] for answer in answers)


NOTHING = Pieces(0, iter(()), ExitStack())


@pytest.mark.parametrize(("handlers", "method", "arguments", "another"), [
    (LockHandlers(SimpleNamespace(show_locks=lambda *_: NOTHING)), "show_locks",
     [ttypes.ShowLocksRequest(dbname="D")], [ttypes.ShowLocksRequest(dbname="e")]),
    (CompactionHandlers(SimpleNamespace(show_compact=lambda *_, **__: NOTHING), None), "show_compact",
     [ttypes.ShowCompactRequest(dbName="D", order='"CC_STATE"')], [ttypes.ShowCompactRequest(dbName="D")]),
    (TxnHandlers(SimpleNamespace(get_open_txns_info=lambda _: (NOTHING, 0)), None, None), "get_open_txns_info", [], None)])
def test_lists_are_shared_by_those_who_ask_for_the_same(monkeypatch, handlers, method, arguments, another):
    questions = []
    answer = SingleFlight.answer
    monkeypatch.setattr(SingleFlight, "answer", lambda self, question, ask: (questions.append(question), answer(self, question, ask))[1])

    for each in (arguments, arguments, *([another] if another else [])):
        assert getattr(handlers, method)(None, *each).length == 0

    assert len(questions) == 2 + (another is not None)
    assert len(set(questions)) == 1 + (another is not None)


@pytest.mark.parametrize("pieces", [[b""], [b"one"], [b"one", b"three", b"", b"four"]], ids=["none", "one piece", "more"])
def test_several_read_one_list_at_their_own_speed(pieces):
    """A list that was begun for one goes to him as it comes; what others share is read once, and kept in a file."""
    lists, begun, may_go_on, opened = SharedLists(ttypes.TxnInfo), [], Event(), []

    def read():
        begun.append(len(begun))
        number = len(begun)
        if number == 1:
            assert may_go_on.wait(20)
        closing = ExitStack()
        opened.append(number)
        closing.callback(opened.remove, number)
        return (lambda txns: txns), Pieces(number, iter(pieces), closing)

    def client():
        answer = lists.answer("q", read)
        with answer.pieces as coming:
            return answer.length, list(coming)

    with ThreadPoolExecutor(4) as clients:
        first = clients.submit(client)
        while not begun:
            Event().wait(0.001)
        others = [clients.submit(client) for _ in range(3)]
        while lists._readings._questions["q"].waiting < 3:
            Event().wait(0.001)
        may_go_on.set()
        assert first.result(20) == (1, pieces)
        assert [b"".join(answer) for _, answer in (other.result(20) for other in others)] == [b"".join(pieces)] * 3
        assert {other.result()[0] for other in others} == {2}
    assert begun == [0, 1]
    assert opened == []
