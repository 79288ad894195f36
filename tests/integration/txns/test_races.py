"""Opening, committing and reading at the same time: no snapshot is ever contradicted later (TXN-25)."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

import pytest

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.errors import TxnAbortedError
from metastore.txns.commit.service import CommitRequest
from metastore.txns.core.rules import Operation, reader_snapshot
from metastore.txns.core.service import Heartbeat, OpenRequest

THREADS = 6


def opened_by(pool, t):
    return pool.submit(t.open)


@pytest.mark.parametrize("outcome", ["COMMIT", "ROLLBACK"])
def test_w26_an_opener_that_stalls_holds_back_later_ids(t, database_url, outcome):
    """A has its id and stalls: B gets no id, and hence no snapshot, before A's is visible or given back."""
    import psycopg2

    stalled = psycopg2.connect(database_url)
    cursor = stalled.cursor()
    t.open()
    cursor.execute("""
        UPDATE txn_counter SET next_txn_id = next_txn_id + 1;
        INSERT INTO txns (id, state, "user", host, started_at, last_heartbeat_at)
        VALUES (2, 'open', 'a', 'h', now(), now())""")
    before = t.txns.get_open_txns()
    with ThreadPoolExecutor(1) as pool:
        second = opened_by(pool, t)
        assert wait([second], timeout=0.3).not_done
        cursor.execute(outcome)
        second_id = second.result(timeout=60)
    stalled.close()
    snapshot = t.txns.get_open_txns()

    assert before.high_watermark == 1
    assert second_id == (3 if outcome == "COMMIT" else 2)
    assert snapshot.open_txns == list(range(1, second_id + 1))


def test_c28_a_commit_that_returned_is_seen_by_whoever_opens_next(t):
    """And the writer's commit point lies below every id given out after it."""
    done = [0]
    stop = []
    rounds = 150

    def commits():
        for _ in range(rounds):
            txn_id = t.write("db.t")
            t.commit(txn_id)
            done[0] = txn_id
        stop.append(True)

    def opens():
        seen = []
        while not stop:
            committed = done[0]
            txn_id = t.open()
            seen.append((committed, txn_id, reader_snapshot(t.txns.get_open_txns(), txn_id)))
        return seen

    with ThreadPoolExecutor(THREADS) as pool:
        readers = [pool.submit(opens) for _ in range(3)]
        pool.submit(commits).result()
        seen = [one for reader in readers for one in reader.result()]
    points = dict(t.rows("SELECT id, commit_id FROM txns WHERE commit_id IS NOT NULL"))

    assert len(points) == rounds
    assert len(seen) > rounds
    assert all(committed == 0 or snapshot.is_valid(committed) for committed, _, snapshot in seen)
    assert all(committed == 0 or points[committed] < txn_id for committed, txn_id, _ in seen)


class Told(NamedTuple):
    """What one client saw of its transaction, with instants of one logical clock."""

    txn_id: int
    open_called: int
    snapshot_returned: int
    commit_called: int
    ended: int
    committed: bool
    partition: str
    txns: ValidTxnList
    write_ids: ValidWriteIdList


def live(t, clock, chance, told):
    """One transaction's life: open, read, write, end."""
    open_called = next(clock)
    txn_id = t.open()
    txns = reader_snapshot(t.txns.get_open_txns(), txn_id)
    snapshot_returned = next(clock)
    write_ids = t.reads("db.t", txns.format())
    partition = chance.choice(["p=1", "p=2", ""])
    if partition:
        t.allocate("db.t", txn_id)
        t.partitions(txn_id, "db.t", partition, operation=chance.choice([Operation.UPDATE, Operation.DELETE]))
    commit_called, committed = next(clock), chance.random() < 0.8
    try:
        t.commit(txn_id) if committed else t.abort(txn_id)
    except TxnAbortedError:
        committed = False
    told.append(Told(txn_id, open_called, snapshot_returned, commit_called, next(clock), committed, partition, txns,
                     write_ids))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_four_properties_of_snapshots(t, seed):
    clock, told = itertools.count(), []

    def work(number):
        chance = random.Random(f"{seed}.{number}")
        for _ in range(25):
            live(t, clock, chance, told)
            if chance.random() < 0.1:
                assert not t.reaper.tick().failed

    with ThreadPoolExecutor(THREADS) as pool:
        for worker in [pool.submit(work, number) for number in range(THREADS)]:
            worker.result()

    assert seen_later_than_it_should(told) == []
    assert seen_before_it_happened(told) == []
    assert overlapping_winners(told, dict(t.rows("SELECT id, commit_id FROM txns"))) == []
    assert len({one.txn_id for one in told}) == len(told)


def seen_later_than_it_should(told):
    """Return pairs (writer, reader) that contradict (a): committed before the reader opened, yet not valid."""
    return [(writer.txn_id, reader.txn_id) for writer in told for reader in told
            if writer.committed and writer.ended < reader.open_called and not reader.txns.is_valid(writer.txn_id)]


def seen_before_it_happened(told):
    """(b) valid, yet the commit was asked for after the snapshot; or it never committed and wrote something."""
    return [(writer.txn_id, reader.txn_id) for writer in told for reader in told
            if writer is not reader and reader.txns.is_valid(writer.txn_id)
            and (writer.commit_called > reader.snapshot_returned or (writer.partition and not writer.committed))]


def overlapping_winners(told, commit_ids):
    """(c) two committed writers of one partition whose intervals [id, commit point] meet."""
    winners = [(one.partition, one.txn_id, commit_ids[one.txn_id]) for one in told if one.committed and one.partition]
    return [(first, second) for first, second in itertools.combinations(sorted(winners), 2)
            if first[0] == second[0] and first[1] <= second[2] and second[1] <= first[2]]


def test_property_d_a_write_id_is_as_valid_as_its_owner(t):
    """While nothing is purged: for every reader and every write id of the table."""
    told, clock = [], itertools.count()

    def work(number):
        chance = random.Random(number)
        for _ in range(25):
            live(t, clock, chance, told)

    with ThreadPoolExecutor(THREADS) as pool:
        for worker in [pool.submit(work, number) for number in range(THREADS)]:
            worker.result()
    owners = dict(t.rows("SELECT write_id, txn_id FROM txn_write_ids"))

    assert len(owners) > 20
    for reader in told:
        for write_id, txn_id in owners.items():
            if txn_id == reader.txn_id:   # given after it had read
                continue
            assert reader.write_ids.is_valid(write_id) is reader.txns.is_valid(txn_id)
            assert not reader.write_ids.is_aborted(write_id) or reader.txns.is_aborted(txn_id)


def test_batches_of_several_processes_do_not_wait_in_a_circle(t):
    """Heartbeats, commits, aborts and openings of the same transactions, in opposite orders."""
    from metastore.txns.core.service import AbortRequest, Heartbeat

    for _ in range(15):
        ids = t.open(40)
        for txn_id in ids[::4]:
            t.write("db.t", Operation.INSERT, txn_id)
        backwards = ids[::-1]
        calls = [lambda ids=ids: t.txns.heartbeat([Heartbeat(one) for one in ids]),
                 lambda ids=backwards: t.txns.heartbeat([Heartbeat(one) for one in ids]),
                 lambda ids=ids: t.commits.commit_txn([CommitRequest(one) for one in ids]),
                 lambda ids=backwards: t.commits.commit_txn([CommitRequest(one) for one in ids]),
                 lambda ids=backwards: t.txns.abort_txns([[AbortRequest(one) for one in ids[::2]]]),
                 lambda: t.txns.open_txns([OpenRequest(5, "a", "h")])]
        with ThreadPoolExecutor(len(calls)) as pool:
            for result in [pool.submit(call) for call in calls]:
                result.result()
        states = dict(t.rows("SELECT id, state FROM txns WHERE id = ANY(%s)", ids))
        assert set(states.values()) <= {"committed", "aborted"}


def test_heartbeats_take_their_rows_in_the_order_of_ids(t, database_url):
    """Two batches that share transactions then never wait for each other in a circle."""
    import psycopg2

    first, held, last = t.open(3)
    holder, looker = psycopg2.connect(database_url), psycopg2.connect(database_url)
    holder.cursor().execute("SELECT FROM txns WHERE id = %s FOR UPDATE", (held,))
    cursor = looker.cursor()

    def free():
        cursor.execute("SELECT id FROM txns ORDER BY id FOR UPDATE SKIP LOCKED")
        found = [txn_id for txn_id, in cursor.fetchall()]
        looker.rollback()
        return found

    with ThreadPoolExecutor(1) as pool:
        beating = pool.submit(t.txns.heartbeat, [Heartbeat(last), Heartbeat(held), Heartbeat(first)])
        while free() != [last]:
            assert not beating.done()
        holder.rollback()
        assert beating.result(timeout=60) == [None] * 3
    holder.close()
    looker.close()
