"""Whether ids would go backwards in a cut-over."""

import pytest

from metastore.ids import TableName
from metastore.txns.adoption.rules import Marks, adoption_refusal, release_refusal


def marks(txn_id=1, **write_ids):
    return Marks(txn_id, 1, 1, {TableName("hive", "d", name): next_id for name, next_id in write_ids.items()})


@pytest.mark.parametrize(("here", "there", "compactions", "expected"), [
    (marks(), marks(7, t=3), 0, None),
    (marks(7, t=3), marks(7, t=3), 0, None),
    (marks(), marks(7), 2, "2 compactions"),
    (marks(8), marks(7), 0, "the next transaction is 8 here, 7 there. This"),
    (marks(7, t=4), marks(7, t=3), 0, "the next write id of d.t is 4 here, 3 there. This"),
    (marks(7, a=2, b=2, c=2, d=2, e=2), marks(7), 0, "of d.c is 2 here, 1 there and 2 more. This"),
], ids=["empty", "again", "compacting", "txn", "write_id", "many"])
def test_adoption_refusal(here, there, compactions, expected):
    refusal = adoption_refusal(here, there, compactions)
    assert refusal is None if expected is None else expected in refusal


@pytest.mark.parametrize(("open_txns", "compactions", "expected"), [
    (0, 0, None), (2, 1, "2 transactions are open"), (0, 1, "1 compactions"),
])
def test_release_refusal(open_txns, compactions, expected):
    refusal = release_refusal(open_txns, compactions)
    assert refusal is None if expected is None else expected in refusal
