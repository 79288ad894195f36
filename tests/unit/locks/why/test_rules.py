from hypothesis import given
from hypothesis import strategies as st

from metastore.locks.rules import Lock, LockObject, LockQueue, LockState, LockType
from metastore.locks.why.rules import Owner, owner_of, walk

R, X = LockType.SHARED_READ, LockType.EXCLUSIVE
ACQUIRED, WAITING = LockState.ACQUIRED, LockState.WAITING


def lock(ext_id, txn_id, table, kind=X, state=WAITING, int_id=1):
    return Lock(ext_id, int_id, txn_id, LockObject("hive", "db", table), kind, state)


def txn(number):
    return Owner(number, 0)


def about(ext_id):
    return lambda one: one.ext_id == ext_id


def told(steps):
    return [(step.owner, step.waits_for, step.is_root, step.in_cycle) for step in steps]


def test_a_chain_leads_to_the_one_who_waits_for_nobody():
    locks = [lock(1, 1, "a", state=ACQUIRED), lock(2, 2, "a"), lock(3, 3, "a"), lock(9, 9, "b", state=ACQUIRED)]

    assert told(walk(locks, about(3))) == [
        (txn(3), [txn(1), txn(2)], False, False), (txn(1), [], True, False), (txn(2), [txn(1)], False, False)]


def test_a_holder_that_waits_elsewhere_is_not_the_end():
    """Transaction 1 holds a and waits for b, which transaction 2 holds."""
    locks = [lock(1, 1, "a", state=ACQUIRED), lock(2, 2, "b", state=ACQUIRED), lock(3, 1, "b"), lock(4, 3, "a")]

    steps = walk(locks, about(4))

    assert told(steps) == [(txn(3), [txn(1)], False, False), (txn(1), [txn(2)], False, False), (txn(2), [], True, False)]
    assert [(step.wanted, step.held) for step in steps] == [
        ([locks[3]], []), ([locks[2]], [locks[0]]), ([], [locks[1]])]


def test_a_circle_ends_the_walk_and_is_told():
    locks = [lock(1, 1, "a", state=ACQUIRED), lock(2, 2, "b", state=ACQUIRED), lock(3, 1, "b"), lock(4, 2, "a"),
             lock(5, 3, "a")]

    assert told(walk(locks, about(5))) == [
        (txn(3), [txn(1), txn(2)], False, False), (txn(1), [txn(2)], False, True), (txn(2), [txn(1)], False, True)]


def test_requests_without_a_transaction_are_owners_of_their_own():
    locks = [lock(1, 0, "a", state=ACQUIRED), lock(2, 0, "a"), lock(3, 0, "a")]

    assert [step.owner for step in walk(locks, about(3))] == [Owner(0, 3), Owner(0, 1), Owner(0, 2)]


def test_of_what_does_not_wait_its_own_locks_are_told():
    locks = [lock(1, 1, "a", state=ACQUIRED), lock(1, 1, "b", state=ACQUIRED, int_id=2)]

    [step] = walk(locks, about(1))

    assert (step.is_root, step.wanted, step.held) == (True, [], locks)


def test_nobody_is_asked_about():
    assert walk([lock(1, 1, "a", state=ACQUIRED)], about(2)) == []


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.sampled_from((R, X)), st.booleans()), max_size=10))
def test_every_edge_is_a_wait_and_no_wait_is_left_out(rows):
    """Whatever the graph, also with circles: the walk ends, and says of every owner whom its locks wait for."""
    locks = [lock(number, txn_id, table, kind, WAITING if waits else ACQUIRED)
             for number, (txn_id, table, kind, waits) in enumerate(rows, 1)]
    queue = LockQueue(locks)
    waits_for = {}
    for one in locks:
        blockers = queue.blockers(one) if one.state is WAITING else []
        waits_for.setdefault(owner_of(one), set()).update(map(owner_of, blockers))

    steps = walk(locks, about(1))

    assert {step.owner: set(step.waits_for) for step in steps} == {step.owner: waits_for[step.owner] for step in steps}
    known = {step.owner for step in steps}
    assert len(known) == len(steps)
    assert all(set(step.waits_for) <= known for step in steps)
    for step in steps:
        seen, ahead = set(), set(step.waits_for)
        while ahead:
            seen |= ahead
            ahead = {further for one in ahead for further in waits_for[one]} - seen
        assert step.in_cycle == (step.owner in seen)
        assert step.is_root == (not seen)
