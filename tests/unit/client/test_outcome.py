"""A commit whose answer gets lost in every way that it can: it is done once, and nobody is told what is not so."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient, MetastoreUnreachableError, outcome
from metastore.client.client import AnswerLostError
from metastore.errors import MetaError, NoSuchTxnError, TxnAbortedError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.operators import ttypes as operators
from metastore.txns.history.rules import Outcome
from tests.unit.client.fake_server import FakeServer, Hangup

REQUEST = ttypes.CommitTxnRequest(5)


class Metastore:
    """Commits as told: each turn of ``script`` is one commit. ``told``: what it says became of the transaction."""

    def __init__(self, *script, told="open"):
        self.script, self.told = list(script), told

    def commit_txn(self, request):
        turn = self.script.pop(0)
        if isinstance(turn, Exception):
            raise turn
        done, answers = turn
        if done:
            self.told = "committed"
        if not answers:
            raise Hangup

    def abort_txns(self, request):
        pass

    def abort_txn(self, request):
        self.told = "aborted"

    def metastore_txn_outcome(self, txn_id):
        if isinstance(self.told, Exception):
            raise self.told
        return operators.TxnOutcome(txn_id, self.told, f"it is {self.told}")


@pytest.fixture
def committing():
    """Commit on such a metastore; the calls that it got."""
    def commit(metastore):
        with FakeServer(metastore) as server, MetastoreClient(server.uri) as client:
            try:
                outcome.commit(client, REQUEST)
            finally:
                commit.calls = [name for name in server.calls if name != "shutdown"]
        return commit.calls
    return commit


DONE, LOST, NEVER_ARRIVED = (True, True), (True, False), (False, False)
INTERNAL = TApplicationException(TApplicationException.INTERNAL_ERROR, "the database connection was lost")
COMMIT, ASK, ABORT = "commit_txn", "metastore_txn_outcome", ("abort_txns", "abort_txn")


def test_an_answer_that_arrives_needs_no_question(committing):
    assert committing(Metastore(DONE)) == [COMMIT]


def test_a_commit_that_was_done_is_not_repeated(committing):
    assert committing(Metastore(LOST)) == [COMMIT, ASK]


def test_a_commit_that_never_arrived_is_sent_again(committing):
    assert committing(Metastore(NEVER_ARRIVED, DONE)) == [COMMIT, ASK, COMMIT]


def test_lost_answers_one_after_the_other(committing):
    assert committing(Metastore(NEVER_ARRIVED, LOST)) == [COMMIT, ASK, COMMIT, ASK]
    assert committing(Metastore(NEVER_ARRIVED, NEVER_ARRIVED, DONE)) == [COMMIT, ASK, COMMIT, ASK, COMMIT]


def test_one_that_is_always_open_is_aborted_in_the_end(committing, monkeypatch):
    """Never left as it is: a commit that comes late must find it aborted."""
    monkeypatch.setattr(outcome, "_QUESTIONS", 2)
    with pytest.raises(AnswerLostError):
        committing(Metastore(NEVER_ARRIVED, NEVER_ARRIVED))
    assert committing.calls == [COMMIT, ASK, COMMIT, ASK, *ABORT]


def test_the_last_abort_meets_the_commit(committing, monkeypatch):
    """What seemed to be refused was on its way: it is done, and that is what the caller is told."""
    class Late(Metastore):
        def abort_txn(self, request):
            self.told = "committed"
            raise ttypes.NoSuchTxnException("Transaction txnid:5 is already committed.")

    assert committing(Late(INTERNAL, INTERNAL)) == [COMMIT, ASK, COMMIT, ASK, *ABORT, ASK]


def test_the_last_abort_gets_no_answer(committing):
    class Down(Metastore):
        def abort_txn(self, request):
            raise ttypes.MetaException("the database is busy")

    with pytest.raises(AnswerLostError, match="may or may not have been committed"):
        committing(Down(INTERNAL, INTERNAL))


def test_the_last_abort_meets_what_nobody_remembers(committing):
    class Forgotten(Metastore):
        def abort_txn(self, request):
            self.told = "unknown"
            raise ttypes.NoSuchTxnException("No such transaction txnid:5")

    with pytest.raises(NoSuchTxnError):
        committing(Forgotten(INTERNAL, INTERNAL))


def test_one_that_was_aborted_meanwhile_is_told_so(committing):
    with pytest.raises(TxnAbortedError, match="txnid:5 already aborted: it is aborted"):
        committing(Metastore(NEVER_ARRIVED, told="aborted"))
    assert committing.calls == [COMMIT, ASK]


def test_the_first_is_done_while_the_second_is_on_its_way(committing):
    """Between the question and the second commit the first one is carried out, and its record is removed."""
    class Slow(Metastore):
        def commit_txn(self, request):
            if not self.script:
                self.told = "committed"
                raise ttypes.NoSuchTxnException("No such transaction txnid:5")
            super().commit_txn(request)

    assert committing(Slow(NEVER_ARRIVED)) == [COMMIT, ASK, COMMIT, ASK]


def test_an_outcome_that_the_server_lost_itself_is_asked_for(committing):
    assert committing(Metastore(INTERNAL, told="committed")) == [COMMIT, ASK]
    assert committing(Metastore(INTERNAL, DONE)) == [COMMIT, ASK, COMMIT]
    with pytest.raises(MetaError, match="the database connection was lost"):
        committing(Metastore(INTERNAL, INTERNAL))
    assert committing.calls == [COMMIT, ASK, COMMIT, ASK, *ABORT]
    with pytest.raises(TxnAbortedError):
        committing(Metastore(INTERNAL, told="aborted"))


def test_what_is_not_known_is_not_a_success(committing):
    for told in ("unknown", "never_opened"):
        with pytest.raises(NoSuchTxnError, match="No such transaction"):
            committing(Metastore(ttypes.NoSuchTxnException("No such transaction txnid:5"), told=told))
    assert committing(Metastore(ttypes.NoSuchTxnException("No such transaction txnid:5"), told="committed")) == [COMMIT, ASK]


def test_refusals_are_what_they_are(committing):
    with pytest.raises(TxnAbortedError, match="write conflict"):
        committing(Metastore(ttypes.TxnAbortedException("Aborting due to a write conflict"), told="aborted"))
    assert committing.calls == [COMMIT]


def test_hives_own_metastore_cannot_be_asked(committing):
    """There a commit is repeated, as Hive's client does."""
    unknown = TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'metastore_txn_outcome'")
    assert committing(Metastore(NEVER_ARRIVED, DONE, told=unknown)) == [COMMIT, ASK, COMMIT]


def test_nobody_can_be_asked_any_more(monkeypatch):
    monkeypatch.setattr(outcome, "_QUESTIONS", 2)
    server = FakeServer(None)

    class Dying(Metastore):
        def commit_txn(self, request):
            server.stop()
            raise Hangup

    server.handler = Dying()
    with MetastoreClient(server.uri) as client:
        with pytest.raises(AnswerLostError, match="`metastore txn outcome 5` tells"):
            outcome.commit(client, REQUEST)
        with pytest.raises(MetastoreUnreachableError):
            outcome.outcome_of(client, 5)


def test_asking():
    with FakeServer(Metastore(told="never_opened")) as server, MetastoreClient(server.uri) as client:
        assert outcome.outcome_of(client, 7) == (Outcome.NEVER_OPENED, "it is never_opened", None)
