"""Ids never come back, whatever the database forgets when it crashes (ADR 0003)."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import psycopg2
import pytest

from metastore.config import TxnSettings
from metastore.db import migrate
from metastore.db.embedded import EmbeddedPostgres
from metastore.db.engine import Database
from metastore.errors import MetaError
from metastore.locks.rules import LockType
from metastore.txns.core.rules import Operation
from metastore.txns.core.service import AbortRequest
from metastore.txns.core.store import ID_BLOCK
from metastore.txns.history.rules import Outcome
from metastore.txns.history.service import HistoryService
from tests.support.transactions import Transactions, named

# Without fsync a killed PostgreSQL loses exactly what it had not yet handed to the kernel: what commits without waiting.
FORGETFUL = {"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB", "fsync": "off", "autovacuum": "off"}


@pytest.fixture
def postgres():
    directory = Path(tempfile.mkdtemp(prefix="metastore-crash-"))
    directory.chmod(0o711)   # PostgreSQL may run as somebody else
    server = EmbeddedPostgres(directory, settings=FORGETFUL, max_connections=20, ends_with_us=True)
    server.start()
    migrate.upgrade(server.url)
    yield server
    server.stop()
    shutil.rmtree(directory)


@pytest.fixture
def t(postgres):
    database = Database(postgres.url, pool_size=2)
    yield Transactions(database)
    database.close()


def crash(postgres):
    """Kill one backend the hard way: the postmaster throws the shared memory away and recovers from the log.

    Until the last backend is gone: one that lives a moment longer would answer with what is lost.
    """
    victim, witness = psycopg2.connect(postgres.url), psycopg2.connect(postgres.url)
    with witness.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
        backends = [pid for (pid,) in cursor]
    os.kill(victim.get_backend_pid(), signal.SIGKILL)
    with pytest.raises(psycopg2.DatabaseError):   # which subclass depends on how far the postmaster is
        witness.cursor().execute("SELECT pg_sleep(30)")
    for backend in backends:
        again(gone, backend)
    victim.close()
    witness.close()


def gone(process):
    """Raise a DatabaseError while the process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return
    raise psycopg2.OperationalError(f"{process} is still there")


def again(call, *arguments, tries=1200):
    """Repeat a call that the crash may disturb, until it succeeds or ``tries`` are over."""
    from threading import Event

    for _ in range(tries):
        try:
            return call(*arguments)
        except (MetaError, psycopg2.DatabaseError):
            Event().wait(0.1)
    raise AssertionError("PostgreSQL does not come back")


def outcomes(t, txn_ids):
    history = HistoryService(t.db, TxnSettings())
    return {again(history.outcome, txn_id).outcome for txn_id in txn_ids}


def test_ids_that_a_client_saw_never_come_back(t, postgres):
    reserved = t.open(3)
    crashes, handed_out, lost = 3, set(reserved), 0
    for _ in range(crashes):
        seen = [txn_id for _ in range(5) for txn_id in t.open(20)]
        handed_out.update(seen)
        crash(postgres)

        recorded = {row[0] for row in again(t.rows, "SELECT id FROM txns")}
        before = outcomes(t, set(seen) - recorded)
        fresh = again(t.open, 2)

        lost += len(set(seen) - recorded)
        assert before | outcomes(t, set(seen) - recorded) <= {Outcome.NEVER_OPENED}
        assert outcomes(t, recorded | set(fresh)) == {Outcome.OPEN}
        assert handed_out.isdisjoint(fresh)
        assert min(fresh) > max(handed_out)
        handed_out.update(fresh)
    assert lost > 0, "nothing was lost: the test proves nothing"
    assert max(handed_out) < (crashes + 2) * (ID_BLOCK + 200)


def test_a_writer_that_was_told_so_stays_committed_and_its_snapshot_holds(t, postgres):
    t.open(5)
    writer = t.write("db.t")
    t.commit(writer)
    lost = t.open(50)
    crash(postgres)

    assert again(t.state, writer) == "committed"
    assert again(t.reads, "db.t").is_valid(1)
    reader = again(t.open)
    assert reader > lost[-1]
    assert t.txns.get_open_txns().high_watermark == reader
    for txn_id in (writer, reader):
        t.commit(txn_id)


def test_a_transaction_that_somebody_else_aborted_stays_aborted(t, postgres):
    t.open()   # reserves ids durably
    txn_id = t.open()
    t.txns.abort_txns([[AbortRequest(txn_id)]])
    crash(postgres)

    assert again(t.state, txn_id) == "aborted"


def test_a_lock_without_a_transaction_keeps_the_heartbeat_that_its_holder_relies_on(t, postgres):
    lock_id = t.lock(0, "db.t", Operation.UPDATE, LockType.EXCLUSIVE)
    granted_at = t.rows("SELECT last_heartbeat_at FROM locks")
    t.heartbeat(lock_id=lock_id)
    alive_at = t.rows("SELECT last_heartbeat_at FROM locks")
    crash(postgres)

    assert granted_at < alive_at == again(t.rows, "SELECT last_heartbeat_at FROM locks")


def test_what_a_transaction_reads_is_lost_as_a_whole_or_not_at_all(t, postgres):
    """Without a word of it the Cleaner waits for it with everything; with half of it, it would not with the other."""
    first = "SELECT \"table\" FROM min_history WHERE txn_id = %s ORDER BY 1"
    reader, of_hive = t.open(2)
    t.commit(t.write("db.t"))  # on disk with everything before
    t.reads_only(reader, "db.t")
    crash(postgres)
    assert again(t.state, reader) == "open"
    assert t.db.once(first, [reader]) == []

    t.reads_only(reader, "db.t")
    t.reads_only(reader, "db.t", "db.u")
    crash(postgres)
    assert again(t.db.once, first, [reader]) == [("t",), ("u",)]
    t.write_ids.add_write_ids_to_min_history(of_hive, {named("db.t"): 1})
    crash(postgres)
    assert again(t.db.once, first, [of_hive]) == [("t",)]


def test_a_clean_stop_skips_nothing(t, postgres):
    t.open(5)
    t.db.close()
    postgres.stop()
    postgres.start()
    database = Database(postgres.url, pool_size=2)

    assert Transactions(database).open() == 6
    database.close()
