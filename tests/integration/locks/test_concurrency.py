"""Many sessions at once: what must hold for every interleaving."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metastore.config import LockSettings
from metastore.db.engine import Database
from metastore.errors import MetastoreError
from metastore.locks import store
from metastore.locks.rules import Lock, LockObject, LockQueue, LockRequest, LockState, LockType, WantedLock, conflicts
from metastore.locks.service import LockService
from metastore.txns.core.service import AbortRequest
from tests.integration.locks.conftest import wanted
from tests.support.answers import shown_locks
from tests.support.stored_locks import stored_locks


def test_never_two_incompatible_locks_and_every_wait_has_a_reason(database):  # L45
    service = LockService(Database(database.url, pool_size=16))
    chance = random.Random(20261121)
    texts = [" + ".join(f"{chance.choice('SWEX')} {name}" for name in chance.sample(["db.t", "db.u", "db.t.p=1", "db", "other.t"], 2))
             for _ in range(200)]

    with ThreadPoolExecutor(16) as pool:
        batches = [texts[start:start + size] for start, size in zip(range(0, 200, 4), [4] * 50, strict=True)]
        answers = [answer for batch in pool.map(
            lambda batch: service.lock([LockRequest(tuple(wanted(text))) for text in batch]), batches) for answer in batch]

    rows = stored_locks(service.db)
    assert len({answer.lock_id for answer in answers}) == 200
    assert len(rows) == 400
    held = [lock for lock in rows if lock.state is LockState.ACQUIRED]
    assert not [(one, other) for one, other in combinations(held, 2) if conflicts(one, other) or conflicts(other, one)]
    queue = LockQueue(rows)
    waiting = {}
    for lock in rows:
        if lock.state is LockState.WAITING:
            waiting.setdefault(lock.ext_id, []).append(lock)
    assert held
    assert waiting
    assert all(queue.blocked(request) for request in waiting.values())
    service.db.close()


def test_an_abort_beside_a_lock_leaves_no_orphan(database, locks, txns, open_txn):  # L47
    for _ in range(60):
        txn_id = open_txn()
        start = threading.Barrier(2)

        def lock(txn_id=txn_id, start=start):
            start.wait()
            return locks.lock([LockRequest(tuple(wanted("X db.t")), txn_id)])

        def abort(txn_id=txn_id, start=start):
            start.wait()
            return txns.abort_txn([AbortRequest(txn_id)])

        with ThreadPoolExecutor(2) as pool:
            locked, aborted = pool.submit(lock), pool.submit(abort)
            [answer], [error] = locked.result(), aborted.result()

        assert error is None
        assert isinstance(answer, MetastoreError) or answer.state is LockState.ACQUIRED
        assert shown_locks(locks) == []


THREE_OPEN_TXNS = """
    TRUNCATE locks, txns, txn_components;
    INSERT INTO txns (id, state, "user", host, started_at, last_heartbeat_at)
    SELECT n, 'open', 'u', 'h', metastore_now(), metastore_now() FROM generate_series(1, 3) n"""

objects = st.builds(
    lambda db, table, partition: LockObject("hive", db, table, partition if table else ""),
    st.sampled_from(["d", "e"]), st.sampled_from(["", "t", "u"]), st.sampled_from(["", "p=1", "p=2"]))
requests = st.builds(
    lambda components, txn_id: LockRequest(tuple(components), txn_id),
    st.lists(st.builds(WantedLock, type=st.sampled_from(LockType), object=objects), min_size=1, max_size=3),
    st.integers(0, 3))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(queued=st.lists(requests, max_size=6), wanted_locks=requests)
def test_sql_never_drops_what_the_rule_keeps(database, queued, wanted_locks):
    """``lock_tails`` and ``grant_and_select`` read a superset; here they are compared with the rules themselves."""
    database.once(THREE_OPEN_TXNS)
    service = LockService(database, LockSettings(detect_deadlocks=False))
    answers = service.lock(queued) if queued else []
    rows = [lock for answer, request in zip(answers, queued, strict=True) for lock in request.locks(answer.lock_id)]

    with database.begin() as pg:
        tail = store.lock_tails(pg, [wanted_locks])
    mine = wanted_locks.locks(tail.ext_ids[0])
    kept = {lock for want in mine for lock in rows if conflicts(want, lock)}
    assert {lock._replace(state=LockState.WAITING, user="", host="") for lock in tail.ahead} >= kept

    [answer] = service.lock([wanted_locks])
    found = store.grant_and_select(database, [answer.lock_id])
    if answer.state is LockState.WAITING:
        mine = [row.lock for row in found.by_id[answer.lock_id]]
        assert {lock.state for lock in mine} == {LockState.WAITING}
        kept = {lock for want in mine for lock in rows if conflicts(want, lock)}
        assert {lock._replace(state=LockState.WAITING, user="", host="") for lock in found.ahead} >= kept


class Model:
    """The lock manager on one page: a list of requests in order of asking, nothing else."""

    def __init__(self):
        self.requests = {}
        self.granted = set()

    def blocked(self, lock_id):
        return any(conflicts(mine, other) for mine in self.requests[lock_id]
                   for other_id, locks in self.requests.items() if other_id != lock_id for other in locks)

    def check(self, lock_id):
        if lock_id not in self.requests:
            return "none"
        if lock_id not in self.granted and not self.blocked(lock_id):
            self.granted.add(lock_id)
        return "acquired" if lock_id in self.granted else "waiting"

    def lock(self, lock_id, request):
        self.requests[lock_id] = request.locks(lock_id)
        return self.check(lock_id)

    def unlock(self, lock_id):
        request = self.requests.get(lock_id, [Lock(0, 0, 0, LockObject("", ""), LockType.EXCLUSIVE)])
        if request[0].txn_id and lock_id in self.granted:
            return "txn open"
        self.requests.pop(lock_id, None)
        self.granted.discard(lock_id)
        return "gone"


steps = st.lists(st.one_of(requests, st.tuples(st.sampled_from(["check", "unlock"]), st.integers(0, 11))), max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_service_and_model_agree(database, steps):
    database.once(THREE_OPEN_TXNS)
    service = LockService(database, LockSettings(detect_deadlocks=False))
    model = Model()
    ids = []
    for step in steps:
        if isinstance(step, LockRequest):
            [answer] = service.lock([step])
            ids.append(answer.lock_id)
            assert answer.state.value == model.lock(answer.lock_id, step)
            continue
        verb, number = step
        lock_id = ids[number % len(ids)] if ids else 10**9
        if verb == "check":
            [answer] = service.check_lock([lock_id])
            assert (answer.state.value if not isinstance(answer, Exception) else "none") == model.check(lock_id)
        else:
            [answer] = service.unlock([lock_id])
            assert ("txn open" if answer else "gone") == model.unlock(lock_id)
