"""What happens around a call, without a socket."""

from types import SimpleNamespace

import pytest
import structlog
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TMemoryBuffer

from metastore.errors import ConflictRetryError, MetaError, NoSuchObjectError, OutcomeUnknownError, UnavailableError
from metastore.telemetry.calls import CallStats
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call, coalesced
from metastore.thrift_server.dispatch.middleware import Middleware
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.dispatch.workers import Seats
from metastore.thrift_server.wire.interface import METHODS
from metastore.thrift_server.wire.protocol import BinaryProtocol

CLIENT = SimpleNamespace(peer="10.0.0.1:1", user="ann", groups=(), closed=False)


def middleware(handlers, slow=3600.0):
    return Middleware(handlers_of(handlers), BinaryProtocol(), CallStats(), slow, Seats(1))


def call(method, *args):
    return Call(method, args, CLIENT, (5).to_bytes(4), 0.0)


def answer(done):
    """Return the answer as Thrift's own client would read it."""
    reader = TBinaryProtocol(TMemoryBuffer(done.reply))
    name, kind, seqid = reader.readMessageBegin()
    assert (name, seqid) == (done.method, 5)
    if kind == 3:
        error = TApplicationException()
        error.read(reader)
        return error
    result = getattr(METHODS[name], f"{name}_result")()
    reader.readStruct(result, result.thrift_spec)
    return result


class Handler:
    def __init__(self, outcomes):
        self.outcomes, self.runs, self.batches = list(outcomes), 0, []

    def get_all_tables(self, call, db):
        self.runs += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @coalesced("locks")
    def unlock(self, calls):
        self.batches.append([call.args[0] for call in calls])
        outcome = self.outcomes.pop(0) if self.outcomes else [None] * len(calls)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def ran(*outcomes):
    handler = Handler(outcomes)
    done = call("get_all_tables", "db")
    middleware(handler).run(done)
    return done, handler


def test_a_result():
    done, _ = ran(["a", "b"])
    assert answer(done).success == ["a", "b"]
    assert done.outcome == "ok"


def test_a_conflict_is_tried_three_times():
    done, handler = ran(ConflictRetryError("a"), ConflictRetryError("b"), ["t"])
    assert answer(done).success == ["t"]
    assert handler.runs == 3
    done, handler = ran(*[ConflictRetryError("again")] * 5)
    assert answer(done).o1 == ttypes.MetaException("again")
    assert handler.runs == 3


@pytest.mark.parametrize("error", [MetaError("m"), UnavailableError("u"), OutcomeUnknownError("o"), NoSuchObjectError("n")])
def test_other_errors_are_not_tried_again(error):
    done, handler = ran(error, ["t"])
    assert answer(done).o1 == ttypes.MetaException(str(error))
    assert handler.runs == 1


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        (None, "returned nothing"),
        (["\ud800"], "surrogates"),
        ([None], "Internal error"),
        (7, "Internal error"),
        ([5], "Internal error"),
    ],
)
def test_an_answer_that_cannot_be_written_is_an_internal_error(result, cause):
    done, _ = ran(result)
    error = answer(done)
    assert error.type == TApplicationException.INTERNAL_ERROR
    assert cause in error.message


def test_an_integer_that_does_not_fit_is_an_internal_error():
    class Wide:
        def get_num_partitions_by_filter(self, call, *args):
            return 1 << 40

    done = call("get_num_partitions_by_filter", "a", "b", "c")
    middleware(Wide()).run(done)
    assert answer(done).type == TApplicationException.INTERNAL_ERROR


@pytest.mark.parametrize("error", [MetaError("odd \ud800"), KeyError("odd \ud800")])
def test_a_message_that_cannot_be_written(error):
    done, _ = ran(error)
    assert "\\ud800" in answer(done).message


def test_an_unforeseen_error_is_logged_with_its_stack_and_answered_with_its_cause():
    with structlog.testing.capture_logs() as lines:
        done, _ = ran(ZeroDivisionError("by zero"))
    assert answer(done).message == "Internal error processing get_all_tables: ZeroDivisionError: by zero"
    (line,) = lines
    assert (line["event"], line["method"], line["user"]) == ("call_failed", "get_all_tables", "ann")
    assert isinstance(line["exc_info"], ZeroDivisionError)


def test_a_slow_call_is_logged_with_what_its_handler_noted():
    class Noting:
        def get_all_tables(self, call, db):
            call.log(db=db)
            call.log(tables=0)
            return []

    with structlog.testing.capture_logs() as lines:
        middleware(Noting(), slow=0.0).run(call("get_all_tables", "sales"))
    (line,) = lines
    assert (line["event"], line["db"], line["tables"]) == ("call_slow", "sales", 0)


def batch(handler, count):
    calls = [call("unlock", i) for i in range(count)]
    middleware(handler).run_batch(calls)
    return calls


def test_a_batch_is_one_run():
    handler = Handler([])
    calls = batch(handler, 3)
    assert handler.batches == [[0, 1, 2]]
    assert [done.outcome for done in calls] == ["ok"] * 3


def test_each_call_of_a_batch_has_its_own_outcome():
    calls = batch(Handler([[None, ttypes.NoSuchLockException("1"), None]]), 3)
    assert [done.outcome for done in calls] == ["ok", "NoSuchLockException", "ok"]


def test_calls_of_a_failed_batch_run_alone():
    handler = Handler([ValueError("one is bad"), [None], ValueError("bad"), [None]])
    calls = batch(handler, 3)
    assert handler.batches == [[0, 1, 2], [0], [1], [2]]
    assert [done.outcome for done in calls] == ["ok", "INTERNAL_ERROR", "ok"]


@pytest.mark.parametrize("error", [OutcomeUnknownError("lost"), UnavailableError("down")])
def test_what_failed_because_of_the_database_is_not_run_again(error):
    """Above all not a commit whose outcome is unknown."""
    handler = Handler([error])
    calls = batch(handler, 3)
    assert handler.batches == [[0, 1, 2]]
    assert {answer(done).message for done in calls} == {str(error)}


def test_a_batch_undone_by_a_conflict_is_run_again_as_a_whole():
    handler = Handler([ConflictRetryError("deadlock")])
    calls = batch(handler, 2)
    assert handler.batches == [[0, 1], [0, 1]]
    assert [done.outcome for done in calls] == ["ok", "ok"]


def test_a_batch_that_answers_too_few_is_run_alone():
    handler = Handler([[None]])
    calls = batch(handler, 2)
    assert handler.batches == [[0, 1], [0], [1]]
    assert [done.outcome for done in calls] == ["ok", "ok"]


def test_methods_that_share_a_lane_run_one_after_the_other():
    class Two(Handler):
        @coalesced("locks")
        def check_lock(self, calls):
            self.batches.append("check")
            return [ttypes.LockResponse(1, 1) for _ in calls]

    handler = Two([])
    calls = [call("unlock", 1), call("check_lock", 2), call("unlock", 3)]
    middleware(handler).run_batch(calls)
    assert handler.batches == [[1, 3], "check"]
    assert all(done.outcome == "ok" for done in calls)


def test_a_result_that_a_whole_batch_shares_is_encoded_once(monkeypatch):
    class Snapshots:
        @coalesced("snapshots")
        def get_open_txns(self, calls):
            one, other = (ttypes.GetOpenTxnsResponse(mark, [], 0, b"") for mark in (7, 8))
            return [one, one, MetaError("no"), one, other, other][:len(calls)]

    encoded = []
    plain = BinaryProtocol.body
    monkeypatch.setattr(BinaryProtocol, "body", lambda self, *args: encoded.append(args) or plain(self, *args))
    calls = [Call("get_open_txns", (), CLIENT, place.to_bytes(4), 0.0) for place in range(6)]
    middleware(Snapshots()).run_batch(calls)
    assert len(encoded) == 3
    assert [one.outcome for one in calls] == ["ok", "ok", "INTERNAL_ERROR", "ok", "ok", "ok"]
    readers = [TBinaryProtocol(TMemoryBuffer(one.reply)) for one in calls]
    assert [reader.readMessageBegin()[2] for reader in readers] == list(range(6))
    marks = []
    for reader in readers:
        result = METHODS["get_open_txns"].get_open_txns_result()
        result.read(reader)
        marks.append(result.success and result.success.txn_high_water_mark)
    assert marks == [7, 7, None, 7, 8, 8]
