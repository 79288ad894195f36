"""Read transactions end with the last frame of theirs, and never behind the session that has their connection."""

import gc
import threading
from types import SimpleNamespace

from metastore.spark import leases


def test_closing_waits_for_transactions_that_are_ending(monkeypatch):
    monkeypatch.setattr(leases, "DataFrame", lambda java, session: SimpleNamespace(java=java, session=session))
    may_end, order = threading.Event(), []
    reads = leases.ReadLeases()

    def end():
        may_end.wait(60)
        order.append("ended")

    frame = reads.protect(SimpleNamespace(_jdf=None, sparkSession=SimpleNamespace()), end)
    del frame
    gc.collect()  # nothing is left of it: a thread ends its transaction
    threading.Timer(0.05, may_end.set).start()
    reads.close()
    order.append("closed")

    assert order == ["ended", "closed"]
