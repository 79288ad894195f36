"""Which of the waiting compactions our own Workers claim, and which Hive's."""

from datetime import timedelta

import pytest

from metastore.compaction.queue.rules.requests import CompactionType, Entity
from metastore.compaction.queue.rules.turns import BY_PEOPLE, LONGEST
from metastore.compaction.queue.store.requests import NewRequest
from metastore.compaction.working.service import WorkerService
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
    from metastore.thrift_server.convert_compaction import new_request

    request = new_request(ttypes.CompactionRequest(dbname="d", tablename="t", type=2), "1.2.3.4:5")
    assert request.entity == Entity(named("d.t"))
    assert isinstance(request, NewRequest)
    assert request.type is CompactionType.MAJOR
    return request
