"""Who is in a circle, and who dies for it: a table of cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.locks.deadlocks.rules import find, party
from metastore.locks.rules import Lock, LockObject, LockQueue, LockState, LockType

LETTERS = {"S": LockType.SHARED_READ, "W": LockType.SHARED_WRITE, "E": LockType.EXCL_WRITE, "X": LockType.EXCLUSIVE}
STATES = {"has": LockState.ACQUIRED, "wants": LockState.WAITING}


def story(*lines):
    """``7 has X a``: transaction 7 has an exclusive lock on table a; 0 is nobody. One request a line, in order."""
    locks = []
    for ext_id, line in enumerate(lines, 1):
        txn_id, state, *wanted = line.split()
        locks += [Lock(ext_id, int_id, int(txn_id), LockObject("hive", "db", name), LETTERS[letter], STATES[state],
                       f"user{txn_id}", "h")
                  for int_id, (letter, name) in enumerate(zip(wanted[::2], wanted[1::2], strict=True), 1)]
    return locks


def told(found):
    return None if found is None else (found.victim, [(party(wanted), party(blocker)) for wanted, blocker in found.waits])


@pytest.mark.parametrize(("lines", "txn_id", "expected"), [
    pytest.param(["1 has X a", "2 has X b", "1 wants X b", "2 wants X a"], 2, (2, [(2, 1), (1, 2)]), id="two cross"),
    pytest.param(["2 has X a", "1 has X b", "2 wants X b", "1 wants X a"], 1, (2, [(1, 2), (2, 1)]),
                 id="the youngest dies, not who asked last"),
    pytest.param(["1 has S a", "2 has S a", "1 wants X a", "2 wants X a"], 2, (2, [(2, 1), (1, 2)]), id="two upgrades"),
    pytest.param(["1 has X a", "2 has X b", "3 has X c", "1 wants X b", "2 wants X c", "3 wants X a"], 3,
                 (3, [(3, 1), (1, 2), (2, 3)]), id="three in a ring"),
    pytest.param(["1 has X a", "2 has X b", "1 wants X b"], 1, None, id="a wait is no deadlock"),
    pytest.param(["1 has X a", "2 wants X a", "3 wants X a"], 3, None, id="a queue is no deadlock"),
    pytest.param(["1 has X a", "1 wants X b", "2 has S c"], 1, None, id="waits for nobody"),
    pytest.param(["1 has X a", "1 has X b", "2 wants X b"], 1, None, id="a txn does not wait for itself"),
    pytest.param(["1 has X a", "0 wants X a", "1 wants X a"], 1, (1, [(1, -2), (-2, 1)]),
                 id="behind somebody who waits for what it holds already"),
    pytest.param(["1 has X a", "2 has X b", "1 wants X b", "2 wants X a", "3 has S c", "3 wants X a"], 3, None,
                 id="a mere waiter outside of the circle"),
    pytest.param(["1 has X a", "2 wants X a X b", "1 wants X b"], 1, (1, [(1, 2), (2, 1)]),
                 id="a waiting request blocks too; who made a single request does not die"),
    pytest.param(["1 has X a", "0 wants X a X b", "1 wants X b"], 1, (1, [(1, -2), (-2, 1)]),
                 id="through a request without a transaction, which does not die"),
    pytest.param(["1 has X a", "2 has X b", "0 wants X b X c", "1 wants X c", "2 wants X a"], 2,
                 (2, [(2, 1), (1, -3), (-3, 2)]), id="without a transaction in the middle"),
    pytest.param(["1 has S a", "2 has S b", "1 wants S b", "2 wants S a"], 2, None, id="shared reads get on"),
    pytest.param(["1 has W a", "2 has W b", "1 wants E b", "2 wants E a"], 2, (2, [(2, 1), (1, 2)]), id="writes"),
    pytest.param(["1 has X a", "2 has X b", "3 has X c", "1 wants X b X c", "3 wants X a", "2 wants X a"], 2,
                 (2, [(2, 1), (1, 2)]), id="the circle through who asks, of two"),
])
def test_circles(lines, txn_id, expected):
    assert told(find(txn_id, story(*lines))) == expected


def test_the_message_prints_the_whole_circle():
    found = find(7, story("5 has X a", "7 has E b", "5 wants X b", "7 wants S a"))

    assert found.victim_lock_ids == (2, 4)
    assert found.message == (
        "Transaction txnid:7 was aborted to end a deadlock, as the youngest of it: "
        "txnid:7 (user7@h) wants SHARED_READ on db/a (lockid:4.1) and waits for EXCLUSIVE on db/a (lockid:1.1) of "
        "txnid:5 (user5@h); "
        "txnid:5 (user5@h) wants EXCLUSIVE on db/b (lockid:3.1) and waits for EXCL_WRITE on db/b (lockid:2.1) of "
        "txnid:7 (user7@h)")


def test_the_message_begins_with_the_victim():
    assert "of it: txnid:2 (user2@h) wants" in find(1, story("2 has X a", "1 has X b", "2 wants X b", "1 wants X a")).message


@st.composite
def queues(draw):
    """Draw requests in order, each granted if and only if nothing is in its way."""
    locks = []
    for ext_id in range(1, draw(st.integers(2, 9)) + 1):
        names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True))
        txn_id = draw(st.integers(0, 4))
        request = [Lock(ext_id, int_id, txn_id, LockObject("hive", "db", name), draw(st.sampled_from(LockType)))
                   for int_id, name in enumerate(names, 1)]
        state = LockState.WAITING if LockQueue(locks).blocked(request) else LockState.ACQUIRED
        locks += [lock._replace(state=state) for lock in request]
    return locks


@given(queues())
def test_a_circle_is_found_if_and_only_if_it_is_there(locks):
    """Compared with the transitive closure of the waits, worked out the slow way."""
    queue = LockQueue(locks)
    edges = {(party(lock), party(blocker)) for lock in locks if lock.state is LockState.WAITING
             for blocker in queue.blockers(lock)}
    reaches = set(edges)
    while more := {(a, d) for a, b in reaches for c, d in edges if b == c} - reaches:
        reaches |= more

    for txn_id in {lock.txn_id for lock in locks} - {0}:
        found = find(txn_id, locks)

        assert (found is not None) == ((txn_id, txn_id) in reaches)
        if found is not None:
            steps = [(party(wanted), party(blocker)) for wanted, blocker in found.waits]
            assert set(steps) <= edges
            assert [blocker for _, blocker in steps] == [waiter for waiter, _ in (*steps[1:], steps[0])]
            assert steps[0][0] == txn_id
            assert len({lock.ext_id for lock in locks if lock.txn_id == found.victim}) > 1
