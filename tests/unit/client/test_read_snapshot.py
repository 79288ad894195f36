"""A snapshot for who says what it reads: by the call for that, or where a metastore lacks it by the two of before."""

import pytest
from thrift.Thrift import TApplicationException

from metastore.acid.snapshots import ValidTxnList
from metastore.client import txn_calls
from metastore.errors import MetaError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.operators.ttypes import ReadSnapshot

LISTS = [ttypes.TableValidWriteIds("d.t", 4, [3], 3, b"\0")]


class Metastore:
    """Notes what is called. ``refusal``: its answer to the new call."""

    def __init__(self, refusal=None):
        self.calls, self._refusal = [], refusal

    def metastore_read_snapshot(self, request):
        self.calls.append((request.txnid, request.fullTableNames, request.validTxnList))
        if self._refusal is not None:
            raise self._refusal
        return ReadSnapshot("7:5:5:", LISTS)

    def get_open_txns_req(self, _request):
        self.calls.append("txns")
        return ttypes.GetOpenTxnsResponse(9, [5], 5, b"")

    def get_valid_write_ids(self, request):
        self.calls.append(("lists", request.validTxnList))
        return ttypes.GetValidWriteIdsResponse(LISTS)


def unknown():
    return TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'metastore_read_snapshot'")


def test_one_call():
    metastore = Metastore()
    txns, lists, has_said = txn_calls.read_snapshot(metastore, 7, ["d.t"])

    assert (txns.format(), lists["d.t"].invalid, has_said) == ("7:5:5:", (3,), True)
    assert txn_calls.read_snapshot(metastore, 7, ["d.t"], txns)[0] == txns
    assert metastore.calls == [(7, ["d.t"], None), (7, ["d.t"], "7:5:5:")]


@pytest.mark.parametrize(("taken", "calls"), [(None, ["txns", ("lists", "7:5:5:")]), ("6:5:5:", [("lists", "6:5:5:")])])
def test_a_release_that_has_no_such_call(taken, calls):
    metastore = Metastore(unknown())
    txns, lists, has_said = txn_calls.read_snapshot(metastore, 7, ["d.t"], taken and ValidTxnList.parse(taken))

    assert (txns.format(), lists["d.t"].high_watermark, has_said) == (taken or "7:5:5:", 4, False)
    assert metastore.calls[1:] == calls


def test_who_has_said_it_reads_nothing_more_from_a_release_that_cannot_be_told():
    """A server of this release cleans d.u without waiting for a transaction that has named d.t alone."""
    metastore = Metastore(unknown())
    with pytest.raises(MetaError, match="cannot be told that it reads d.t, d.u now"):
        txn_calls.read_snapshot(metastore, 7, ["d.t", "d.u"], ValidTxnList.parse("7:5:5:"), has_said=True)
    assert len(metastore.calls) == 1


def test_a_refusal_is_no_older_release():
    metastore = Metastore(ttypes.MetaException("had said what it reads"))
    with pytest.raises(MetaError, match="had said"):
        txn_calls.read_snapshot(metastore, 7, ["d.t"])
    assert len(metastore.calls) == 1
