"""The lock rules as tables of cases; ids are those of tests/scripts/CASES."""

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.locks import rules
from metastore.locks.rules import (
    WAITS_FOR,
    Changer,
    DeclaredWrite,
    Lock,
    LockObject,
    LockQueue,
    LockRequest,
    LockState,
    LockType,
    Operation,
    WantedLock,
    components,
    conflicts,
    in_the_way,
    overlaps,
    refusal,
)

LETTERS = {"S": LockType.SHARED_READ, "W": LockType.SHARED_WRITE, "E": LockType.EXCL_WRITE, "X": LockType.EXCLUSIVE}


def obj(text):
    return LockObject("hive", *text.split("."))


def play(story):
    """Ask for the locks of a story in order; ``X db.t`` or, in a transaction, ``S db.t #1``; A or W for each."""
    queue = LockQueue()
    answers = []
    for ext_id, request in enumerate(story.split(", "), 1):
        what, _, txn = request.partition(" #")
        locks = []
        for int_id, one in enumerate(what.split(" + "), 1):
            letter, name = one.split(" ")
            locks.append(Lock(ext_id, int_id, int(txn or 0), obj(name), LETTERS[letter]))
        answers.append("W" if queue.blocked(locks) else "A")
        for lock in locks:
            queue.add(lock)
    return ", ".join(answers)


@pytest.mark.parametrize(("case", "story", "expected"), [
    ("L01", "X db1, X db2", "A, A"),
    ("L02", "X db, X db", "A, W"),
    ("L03", "X db, X db.t", "A, W"),
    ("L03", "X db, X other.t", "A, A"),
    ("L04", "X db.t, X db.u", "A, A"),
    ("L04", "X db.t, X db.t", "A, W"),
    ("L05", "X db.t, X db.t.p=1", "A, W"),
    ("L05", "X db.t, X db.u.p=1", "A, A"),
    ("L06", "X db.t.p=1, X db.t.p=2", "A, A"),
    ("L06", "X db.t.p=1, X db.t.p=1", "A, W"),
    ("L07", "S db.t.p=1, S db.t.p=1", "A, A"),
    ("L08", "X db.t.p=1, S db.t.p=1, S db.t.p=1", "A, W, W"),
    ("L09", "S db.t.p=1, W db.t.p=1", "A, A"),
    ("L09", "W db.t.p=1, S db.t.p=1", "A, A"),
    ("L10", "X db.t.p=1, S db.t.p=1, W db.t.p=1", "A, W, W"),
    ("L11", "S db.t.p=1, X db.t.p=1", "A, W"),
    ("L11", "X db.t.p=1, S db.t.p=1, X db.t.p=1", "A, W, W"),
    ("L12", "W db.t.p=1, W db.t.p=1, W db.t.p=1", "A, A, A"),
    ("L13", "E db.t.p=1, E db.t.p=1, S db.t.p=1", "A, W, A"),
    ("L14", "E db.t.p=1, E db.t.p=1, E db.t.p=1", "A, W, W"),
    ("L15", "E db.t.p=1, W db.t.p=1", "A, W"),
    ("L16", "W db.t.p=1, E db.t.p=1", "A, W"),
    ("L16", "S db.t.p=1, E db.t.p=1", "A, A"),
    ("L17", "X db.t, X db.t, W db.t", "A, W, W"),
    ("L17", "X db.t, X db.t, S db.t", "A, W, W"),
    ("L18", "S db, X db.t", "A, A"),
    ("L18", "X db.t, S db", "A, A"),
    ("L18", "S db, X db.t.p=1", "A, A"),
    ("L19", "S db, X db", "A, W"),
    ("L19", "X db, S db.t", "A, W"),
    ("L20", "X db.t.p=1, S db.t", "A, W"),
    ("L20", "S db.t, X db.t.p=1", "A, W"),
    ("L21", "E db.t #1, X db #2", "A, W"),
    ("L22", "S db.t, X db.t, S db.t", "A, W, W"),
    ("L23", "E db.t, E db.t, S db.t", "A, W, A"),
    ("L24", "S db.t #1, E db.t #1, X db.t #1", "A, A, A"),
    ("L25", "S db.t #1, S db.t #2, X db.t #1, X db.t #2", "A, A, W, W"),
    ("L26", "S db.t.p=2, S db.t.p=1 + X db.t.p=2, X db.t.p=1", "A, W, W"),
    ("two requests of one session without a transaction", "X db.t, S db.t", "A, W"),
    ("a request does not wait for itself", "X db.t + X db.t.p=1 + S db", "A"),
    ("a waiting request holds up others on all its objects", "X db.t, S db.t + X db.u, S db.u", "A, W, W"),
    ("L31 partial partition names", "X db.t.p=1, X db.t.p=1/q=2", "A, A"),
    ("the exceptions are about databases only", "S db, W db, X db.t", "A, A, W"),
])
def test_who_waits(case, story, expected):
    assert play(story) == expected, case


def test_matrix_is_the_specification():
    # LOCK-1, rows: requested, columns: existing S W E X; "." fine, "w" waits
    table = {"S": "...w", "W": "..ww", "E": ".www", "X": "wwww"}
    for wanted, row in table.items():
        for existing, cell in zip("SWEX", row, strict=True):
            assert (LETTERS[existing] in WAITS_FOR[LETTERS[wanted]]) == (cell == "w"), (wanted, existing)


def test_matrix_is_symmetric_within_a_level():
    for one, other in product(LockType, repeat=2):
        assert (other in WAITS_FOR[one]) == (one in WAITS_FOR[other])


def test_catalogs_do_not_overlap():
    assert not overlaps(LockObject("hive", "db", "t"), LockObject("ice", "db", "t"))


names = st.sampled_from(["", "t", "u"])
objects = st.builds(
    lambda db, table, partition: LockObject("hive", db, table, partition if table else ""),
    st.sampled_from(["d", "e"]), names, st.sampled_from(["", "p=1", "p=2"]))
locks = st.builds(Lock, ext_id=st.integers(1, 9), int_id=st.integers(1, 3), txn_id=st.integers(0, 2), object=objects,
                  type=st.sampled_from(LockType))


@given(st.lists(locks, max_size=30), locks)
def test_the_index_finds_what_comparing_with_everything_finds(queue, wanted):
    found = LockQueue(queue).blockers(wanted)

    assert sorted(found) == sorted(lock for lock in queue if conflicts(wanted, lock))


@given(objects, objects)
def test_overlap_is_symmetric(one, other):
    assert overlaps(one, other) == overlaps(other, one)


def request(*wanted, **how):
    return LockRequest(tuple(WantedLock(LETTERS[letter], obj(name)) for letter, name in wanted), **how)


@pytest.mark.parametrize(("case", "held", "wanted", "how", "refused"), [
    ("L33", "X db.t", ("S", "db.t"), {"txn_id": 1, "zero_wait_read": True}, True),
    ("L34 no transaction", "X db.t", ("S", "db.t"), {"zero_wait_read": True}, False),
    ("L34 no flag", "X db.t", ("S", "db.t"), {"txn_id": 1}, False),
    ("L35", "E db.t", ("E", "db.t"), {"txn_id": 1, "zero_wait_read": True}, False),
    ("L37", "E db.t", ("E", "db.t"), {"txn_id": 1, "exclusive_ctas": True}, True),
    ("nothing in the way", "S db.t", ("S", "db.t"), {"txn_id": 1, "zero_wait_read": True}, False),
])
def test_who_does_not_want_to_wait(case, held, wanted, how, refused):
    letter, name = held.split(" ")
    queue = LockQueue([Lock(1, 1, 9, obj(name), LETTERS[letter])])
    asked = request(wanted, **how)

    text = refusal(asked, queue.blocked(asked.locks(2)))

    assert (text is not None) == refused, case


@pytest.mark.parametrize(("held", "refused"), [("db.a", True), ("db.b", False)])
def test_only_a_blocked_read_refuses(held, refused):  # L36
    queue = LockQueue([Lock(1, 1, 9, obj(held), LockType.EXCLUSIVE)])
    asked = request(("S", "db.a"), ("E", "db.b"), txn_id=1, zero_wait_read=True)

    text = refusal(asked, queue.blocked(asked.locks(2)))

    assert (text is not None) == refused


def test_texts_of_refusals_name_the_blocker():
    queue = LockQueue([Lock(7, 1, 9, obj("db.t"), LockType.EXCLUSIVE, user="ann", host="h1")])
    asked = request(("S", "db.t"), txn_id=1, zero_wait_read=True)

    text = refusal(asked, queue.blocked(asked.locks(8)))

    assert text == ("Unable to acquire read lock due to an existing exclusive lock "
                    "{lockid:7.1 txnid:9 db/t EXCLUSIVE WAITING by ann@h1}")


def written(*wanted, txn_id=1):
    """Components of a request; each wanted lock is (letter, object, operation, transactional, dynamic)."""
    return components(LockRequest(tuple(
        WantedLock(LETTERS[letter], obj(name), Operation(operation), is_transactional, is_dynamic)
        for letter, name, operation, is_transactional, is_dynamic in wanted), txn_id))


@pytest.mark.parametrize(("case", "wanted", "expected"), [
    ("C17 not transactional", [("S", "db.t", "insert", False, False)], []),
    ("C17 select", [("S", "db.t", "select", True, False)], []),
    ("C17 no_txn", [("X", "db.t", "no_txn", True, False)], []),
    ("insert", [("S", "db.t", "insert", True, False)], [("db.t", "i")]),
    ("update of a partition", [("E", "db.t.p=1", "update", True, False)], [("db.t.p=1", "u")]),
    ("delete", [("E", "db.t", "delete", True, False)], [("db.t", "d")]),
    ("old client, shared", [("S", "db.t", "unset", False, False)], [("db.t", "i")]),
    ("old client, exclusive", [("X", "db.t", "unset", False, False)], [("db.t", "u")]),
    ("C14 dynamic insert", [("S", "db.t", "insert", True, True)], [("db.t", "i")]),
    ("C16 dynamic insert and update", [("S", "db.t", "insert", True, True), ("E", "db.t", "update", True, True)],
     [("db.t", "u")]),
    ("dynamic update, then insert", [("E", "db.t", "update", True, True), ("S", "db.t", "insert", True, True)],
     [("db.t", "u")]),
    ("dynamic partition named", [("S", "db.t.p=1", "insert", True, True)], [("db.t", "i")]),
    ("dynamic beside a static one of the same table",
     [("S", "db.t.p=1", "insert", True, False), ("E", "db.t", "update", True, True)], [("db.t.p=1", "i")]),
    ("dynamic beside a static one of another table",
     [("S", "db.u", "insert", True, False), ("E", "db.t", "update", True, True)], [("db.u", "i"), ("db.t", "u")]),
])
def test_components(case, wanted, expected):
    assert written(*wanted) == [DeclaredWrite(obj(name), operation) for name, operation in expected], case


def test_no_components_without_a_transaction():
    assert written(("E", "db.t", "update", True, False), txn_id=0) == []


TABLE, PARTITION, OTHER = LockObject("hive", "d", "t"), LockObject("hive", "d", "t", "p=1"), LockObject("hive", "d", "u")
DATABASE = LockObject("hive", "d")


def standing(kind, on, txn_id=0, ext_id=1, state=LockState.ACQUIRED):
    return Lock(ext_id, 1, txn_id, on, kind, state)


@pytest.mark.parametrize(("change", "lock", "changer", "writers", "waits"), [
    (TABLE, standing(LockType.SHARED_READ, TABLE, 7), Changer(), {7}, True),
    (TABLE, standing(LockType.SHARED_READ, PARTITION, 7), Changer(), (), True),
    (TABLE, standing(LockType.SHARED_READ, DATABASE, 7), Changer(), (), False),  # it only says: do not drop the database
    (DATABASE, standing(LockType.SHARED_READ, DATABASE, 7), Changer(), (), True),
    (PARTITION, standing(LockType.SHARED_WRITE, TABLE, 7), Changer(), {7}, True),
    (PARTITION, standing(LockType.SHARED_READ, PARTITION._replace(partition="p=2"), 7), Changer(), (), False),
    (TABLE, standing(LockType.EXCLUSIVE, OTHER, 7), Changer(), (), False),
    (TABLE, standing(LockType.EXCLUSIVE, TABLE, 0), Changer(), (), True),  # Iceberg's commit
    (TABLE, standing(LockType.EXCLUSIVE, TABLE, 7, state=LockState.WAITING), Changer(), (), True),
    (TABLE, standing(LockType.EXCLUSIVE, TABLE, 7), Changer(), (), False),  # as Hive drops
    (PARTITION, standing(LockType.EXCLUSIVE, DATABASE, 7), Changer(), (), False),
    (TABLE, standing(LockType.EXCLUSIVE, PARTITION, 7), Changer(), (), True),  # not of all that is dropped
    (TABLE, standing(LockType.EXCLUSIVE, TABLE, 7), Changer(), {7}, True),  # INSERT OVERWRITE
    (TABLE, standing(LockType.EXCLUSIVE, TABLE, 7), Changer(frozenset({7})), {7}, False),  # CREATE TABLE AS that failed
    (TABLE, standing(LockType.EXCL_WRITE, TABLE, 7), Changer(frozenset({7})), {7}, False),
    (TABLE, standing(LockType.EXCLUSIVE, TABLE, 0, 5), Changer(lock_ids=frozenset({5})), (), False),
    (TABLE, standing(LockType.EXCLUSIVE, TABLE, 0, 5), Changer(lock_ids=frozenset({6})), (), True)])
def test_what_a_drop_waits_for(change, lock, changer, writers, waits):
    assert in_the_way([change], [lock], changer, writers) == ([lock] if waits else [])


def test_a_drop_of_thousands_waits_for_what_a_drop_of_each_waits_for_and_is_not_compared_with_all(monkeypatch):
    chance, compared = random.Random(7), []
    parts = [obj(f"db.t.p={n}") for n in range(60)]
    everything = [*parts[:20], obj("db.t."), obj("db.."), obj("db.u."), obj("db.u.p=1")]
    for _ in range(10):
        locks = [
            standing(chance.choice(list(LockType)), chance.choice(everything), chance.randrange(3), number,
                     chance.choice([LockState.ACQUIRED, LockState.WAITING]))
            for number in range(chance.randrange(40))]
        changer, writers = Changer(frozenset({1}), frozenset({3, 4})), {2}
        for objects in (parts, [*parts, obj("db.t.")], [obj("db..")], everything):
            each = [lock for one in objects for lock in in_the_way([one], locks, changer, writers)]
            assert set(in_the_way(objects, locks, changer, writers)) == set(each)

    readers = [standing(LockType.SHARED_READ, obj("db.t."), number, number) for number in range(1, 101)]
    monkeypatch.setattr(rules, "conflicts", lambda *both: compared.append(both) or conflicts(*both))
    assert set(in_the_way(parts, readers, Changer(), ())) == set(readers)
    assert len(compared) == len(readers)


def test_a_drop_under_its_own_exclusive_lock_does_not_wait_for_those_behind_it():
    mine, behind = standing(LockType.EXCLUSIVE, TABLE, 7, 1), standing(LockType.SHARED_READ, TABLE, 8, 2, LockState.WAITING)

    assert in_the_way([TABLE], [mine, behind], Changer(), ()) == []
    assert in_the_way([PARTITION, OTHER], [behind], Changer(), ()) == [behind]
