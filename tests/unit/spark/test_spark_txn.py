"""Which files of a transaction are removed when it ends: none that might be committed. No Spark."""

from types import SimpleNamespace

import pytest

from metastore.client import AnswerLostError
from metastore.errors import AlreadyExistsError, MetaError, NoSuchTxnError, TxnAbortedError
from metastore.spark.txn.spark_txn import Work
from metastore.spark.write.acid_writer import WrittenDirectory

PATH = "/t/delta_0000001_0000001_0000"


class _Transaction:
    """Its commit fails as told; ``is_void``: what an abort finds."""

    def __init__(self, failure, *, is_void):
        self.failure, self.is_void, self.aborts = failure, is_void, 0

    def commit(self):
        raise self.failure

    def abort_quietly(self):
        self.aborts += 1
        return self.is_void


def _ended(failure, *, is_void):
    """What is removed, and how many aborts there were."""
    removed, txn = [], _Transaction(failure, is_void=is_void)
    hadoop = SimpleNamespace(delete=removed.append)   # who wrote it removes it; the files that are listed, None, change nothing
    work = Work(None, None, None, hadoop, txn, published=[WrittenDirectory("/t", PATH, ())])
    with pytest.raises(type(failure)):
        work.commit()
    return removed, txn.aborts


@pytest.mark.parametrize("failure", [AnswerLostError("who knows"), NoSuchTxnError("No such transaction txnid:1")])
def test_what_may_be_committed_stays(failure):
    assert _ended(failure, is_void=True) == ([], 0)


def test_what_is_aborted_is_removed():
    assert _ended(TxnAbortedError("write conflict"), is_void=True) == ([PATH], 0)


@pytest.mark.parametrize("failure", [AlreadyExistsError("another run was quicker"), MetaError("refused")])
def test_what_was_refused_is_removed_if_the_abort_met_no_commit(failure):
    assert _ended(failure, is_void=True) == ([PATH], 1)
    assert _ended(failure, is_void=False) == ([], 1)
