"""When a transaction may say what it reads."""

import pytest

from metastore.errors import MetaError, NoSuchTxnError, TxnAbortedError
from metastore.txns.core.rules import TxnState
from metastore.txns.reading.rules import refusal


@pytest.mark.parametrize(("state", "waived", "kind", "text"), [
    (TxnState.OPEN, [], type(None), "None"),
    (TxnState.OPEN, ["d.u", "d.t"], MetaError, "txnid:7 had said what it reads, without d.t, d.u"),
    (TxnState.ABORTED, [], TxnAbortedError, "txnid:7 already aborted"),
    (TxnState.COMMITTED, [], NoSuchTxnError, "txnid:7 is already committed"),
    (None, [], NoSuchTxnError, "txnid:7")])
def test_refusal(state, waived, kind, text):
    found = refusal(7, state, waived)

    assert type(found) is kind
    assert text in str(found)
