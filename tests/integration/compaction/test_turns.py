"""Which of the waiting compactions our own Workers claim, and which Hive's."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from metastore.compaction.queue.rules.requests import CompactionState, CompactionType, Entity
from metastore.compaction.queue.rules.turns import BY_PEOPLE, LONGEST
from metastore.compaction.queue.store.requests import NewRequest
from metastore.compaction.working.service import WorkerService, claim_of
from tests.support.transactions import named


@pytest.fixture
def queued(lake):
    """``queued("a", head_start)``: the id."""
    def queue(name, head_start=timedelta(0), **more):
        table, _, partition = name.partition("/")
        return lake.request(what=lake.table(table, keys=["x"] if partition else ()) + (f"/{partition}" if partition else ""),
                            head_start=head_start, **more).id
    return queue


def claims(lake, count, pool=None):
    worker = WorkerService(lake.db, lake.settings)
    taken = [worker.claim(f"host-{number}", "1", pool) for number in range(count)]
    return [request.id for request in taken if request is not None]


def test_what_saves_more_has_waited_longer(lake, queued, test_clock):
    plain, good, asked = queued("plain"), queued("good", LONGEST), queued("asked", BY_PEOPLE)

    assert claims(lake, 4) == [asked, good, plain]


def test_nothing_starves(lake, queued, test_clock):
    """Whoever has waited for longer than any head start goes before all that come now (ADR of turns)."""
    old = queued("old")
    test_clock.advance(BY_PEOPLE + timedelta(seconds=1))
    best, asked = queued("best", LONGEST), queued("asked", BY_PEOPLE)

    assert claims(lake, 3) == [old, asked, best]


def test_hives_workers_take_the_oldest(lake, queued):
    """COMP-Q07: the documented order, where clients can see it."""
    ids = [queued("a"), queued("b", LONGEST), queued("c", BY_PEOPLE)]

    assert [lake.service.find_next_compact2(f"hive-{number}", "4", None).id for number in range(3)] == ids


def test_a_hot_table_does_not_take_all_workers(lake, queued):
    hot = [queued(f"hot/x={number}", LONGEST) for number in range(6)]
    cold = [queued(f"cold{number}") for number in range(2)]

    taken = claims(lake, 4)
    assert taken == [hot[0], cold[0], cold[1], hot[1]]
    assert claims(lake, 2) == hot[2:4]  # nobody else waits


def test_a_request_of_the_release_before_has_its_turn_when_it_was_queued(lake, queued, test_clock):
    first = queued("first")
    lake.db.once("UPDATE compaction_queue SET turn_at = NULL")
    test_clock.advance(timedelta(minutes=1))
    second, better = queued("second"), queued("better", timedelta(minutes=2))

    assert claims(lake, 3) == [better, first, second]


def test_of_equals_the_first(lake, queued):
    ids = [queued(name) for name in "abc"]

    assert claims(lake, 3) == ids


def test_the_initiator_gives_head_starts_and_people_have_the_most(new_lake, client_request):
    lake = new_lake(delta_num_threshold=2)
    for name, rows in (("large", 100_000), ("small", 1)):
        lake.table(name)
        lake.insert(f"d.{name}", rows=rows, times=3)
    lake.initiator().tick()
    [(large,), (small,)] = lake.db.once('SELECT enqueued_at - turn_at FROM compaction_queue ORDER BY "table"')

    assert timedelta(0) < large < small <= LONGEST
    assert client_request.head_start == BY_PEOPLE


@pytest.fixture
def client_request():
    from metastore.thrift_gen.hive_metastore import ttypes
    from metastore.thrift_server.convert.compaction import new_request

    request = new_request(ttypes.CompactionRequest(dbname="d", tablename="t", type=2), "1.2.3.4:5")
    assert request.entity == Entity(named("d.t"))
    assert isinstance(request, NewRequest)
    assert request.type is CompactionType.MAJOR
    return request


def test_a_pool_has_no_more_than_its_limit_in_the_whole_cluster(new_lake):
    """Whoever asks: our Workers, Hive's, and those of the default pool for what another pool left too long."""
    lake = new_lake(pool_limits=(("etl", 2), ("default", 1), ("off", 0)))
    for number in range(3):
        for pool in ("etl", None, "off", "free"):
            assert lake.request(what=f"d.{pool or 'plain'}{number}", pool=pool).accepted

    assert [len(claims(lake, 4, pool)) for pool in ("etl", None, "off", "free")] == [2, 1, 0, 3]
    assert lake.service.find_next_compact2("hive-1", "4", "etl") is None
    [working, _] = lake.shown(pool="etl", state=CompactionState.WORKING)
    WorkerService(lake.db, lake.settings).fail(claim_of(working), "x")
    assert lake.service.find_next_compact2("hive-1", "4", "etl") is not None
    assert claims(lake, 1, "etl") == []


def test_who_waits_for_a_place_in_its_pool_is_told_so(new_lake):
    lake = new_lake(pool_limits=(("etl", 1),))
    for name in ("first", "second"):
        lake.table(name)
        lake.request(what=f"d.{name}", pool="etl")

    assert lake.explained("d.second")[0].compaction.text == "Compaction 2 (major) waits for a Worker of the pool etl."
    assert len(claims(lake, 2, "etl")) == 1
    assert lake.explained("d.second")[0].compaction.text.endswith(
        "of the pool etl, which is full: metastore.compactor.pool.limits allows 1 at a time.")


def test_what_was_left_too_long_counts_for_its_own_pool(new_lake, test_clock):
    lake = new_lake(pool_limits=(("etl", 1),))
    for number in range(3):
        lake.request(what=f"d.t{number}", pool="etl")
    test_clock.advance(timedelta(hours=13))

    assert len(claims(lake, 3)) == 1


def test_claims_at_the_same_moment_do_not_exceed_a_limit(new_lake):
    lake = new_lake(pool_limits=(("default", 3),))
    for number in range(12):
        lake.request(what=f"d.t{number}")

    with ThreadPoolExecutor(6) as workers:
        taken = [each for some in workers.map(lambda _: claims(lake, 2), range(6)) for each in some]
    assert len(taken) == 3
