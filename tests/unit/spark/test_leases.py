"""Read transactions end with the last frame of theirs, and never behind the session that has their connection."""

import gc
import threading
from types import SimpleNamespace

import pytest

from metastore.spark import leases


@pytest.fixture(autouse=True)
def frames(monkeypatch):
    monkeypatch.setattr(leases, "DataFrame", lambda java, session: SimpleNamespace(java=java, session=session))


def frame():
    return SimpleNamespace(_jdf=None, sparkSession=SimpleNamespace())


def test_a_table_is_locked_while_a_frame_of_it_is_there():
    reads = leases.ReadLeases()
    rows = reads.protect(frame(), lambda: None, [("db", "t")])
    assert reads.keep_locked(("db", "t"))
    assert not reads.keep_locked(("db", "u"))

    others = reads.protect(frame(), lambda: None, [("db", "u")])
    del rows  # frames that were alive together end together
    assert reads.keep_locked(("db", "t"))
    assert reads.keep_locked(("db", "u"))

    others.itself = others
    del others
    assert not reads.keep_locked(("db", "t"))
    assert not reads.keep_locked(("db", "u"))
    reads.close()


def test_closing_waits_for_transactions_that_are_ending():
    may_end, order = threading.Event(), []
    reads = leases.ReadLeases()

    def end():
        may_end.wait(60)
        order.append("ended")

    rows = reads.protect(frame(), end)
    del rows
    gc.collect()  # nothing is left of it: a thread ends its transaction
    threading.Timer(0.05, may_end.set).start()
    reads.close()
    order.append("closed")

    assert order == ["ended", "closed"]
