"""Scheduled queries (CAT-Q1), as the metastore of Hive 4.2.0 answers."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from metastore.catalog.rare.service import RareReport, RareService
from metastore.client import MetastoreClient
from metastore.config import RareSettings
from metastore.thrift_gen.hive_metastore import ttypes as T
from metastore.thrift_server.handlers.rare import RareHandlers
from tests.support.thrift_server import serving

CREATE, ALTER, DROP = (T.ScheduledQueryMaintenanceRequestType.CREATE, T.ScheduledQueryMaintenanceRequestType.ALTER,
                       T.ScheduledQueryMaintenanceRequestType.DROP)
State = T.QueryState
EVERY_MINUTE = "0 * * * * ? *"


class Queries:
    """The calls in short; time passes only when it is told to."""

    def __init__(self, client, rare, clock):
        self.client, self.rare, self.clock = client, rare, clock

    def maintain(self, kind, name="q", ns="n", **fields):
        query = T.ScheduledQuery(T.ScheduledQueryKey(name, ns), **fields)
        self.client.scheduled_query_maintenance(T.ScheduledQueryMaintenanceRequest(kind, query))

    def create(self, name="q", ns="n", **fields):
        self.maintain(CREATE, name, ns, **{"enabled": True, "schedule": EVERY_MINUTE, "user": "u", "query": "select 1", **fields})

    def get(self, name="q", ns="n"):
        return self.client.get_scheduled_query(T.ScheduledQueryKey(name, ns))

    def poll(self, ns="n", client=None):
        return (client or self.client).scheduled_query_poll(T.ScheduledQueryPollRequest(ns))

    def tell(self, execution, state, message=None):
        self.client.scheduled_query_progress(T.ScheduledQueryProgressInfo(execution, state, "id", message))

    def run(self, state):
        """Wait until a query is due, and end its execution in a state; return the minutes that it took."""
        for minutes in range(1, 20):
            self.clock.advance(timedelta(minutes=1))
            if execution := self.poll().executionId:
                self.tell(execution, state)
                return minutes
        return None


def told(query):
    return query.enabled, query.schedule, query.user, query.query


@pytest.fixture
def settings(request):
    return RareSettings(**getattr(request, "param", {}))


@pytest.fixture
def queries(database, test_clock, settings):
    rare = RareService(database, settings)
    with serving(RareHandlers(rare)) as server, MetastoreClient("thrift://{}:{}".format(*server.address), user="ann") as client:
        yield Queries(client, rare, test_clock)


def now(database):
    with database.begin() as pg:
        return pg.now


def test_a_query_knows_its_next_time(queries, database):
    queries.create()
    found = queries.get()
    assert told(found) == (True, EVERY_MINUTE, "u", "select 1")
    assert found.scheduleKey == T.ScheduledQueryKey("q", "n")
    assert 0 < found.nextExecution - now(database).timestamp() <= 60
    assert found.nextExecution % 60 == 0
    queries.create("Q", nextExecution=7, enabled=None, user=None, query=None)
    other = queries.get("Q")
    assert (told(other), other.nextExecution) == ((False, EVERY_MINUTE, None, None), found.nextExecution)
    queries.create("over", schedule="0 0 0 1 1 ? 2020")
    assert queries.get("over").nextExecution is None


def test_an_alter_replaces_all_and_may_set_the_next_time(queries):
    queries.create()
    due = queries.get().nextExecution
    queries.maintain(ALTER, enabled=True, schedule=EVERY_MINUTE, user="v", query="select 2", nextExecution=100)
    assert (told(queries.get()), queries.get().nextExecution) == ((True, EVERY_MINUTE, "v", "select 2"), 100)
    queries.maintain(ALTER, schedule=EVERY_MINUTE)
    assert (told(queries.get()), queries.get().nextExecution) == ((False, EVERY_MINUTE, None, None), due)
    queries.maintain(DROP)
    with pytest.raises(T.NoSuchObjectException):
        queries.get()


@pytest.mark.parametrize(("kind", "name", "fields", "error"), [
    (CREATE, "q", {"schedule": EVERY_MINUTE}, T.AlreadyExistsException), (CREATE, "new", {"schedule": "foo"}, T.InvalidInputException),
    (CREATE, "new", {}, T.InvalidInputException), (ALTER, "Q", {"schedule": EVERY_MINUTE}, T.NoSuchObjectException),
    (ALTER, "q", {"schedule": "0 0 0 * * *", "nextExecution": 5}, T.InvalidInputException), (DROP, "Q", {}, T.NoSuchObjectException),
    (9, "q", {}, T.MetaException)])
def test_wrong_maintenance_changes_nothing(queries, kind, name, fields, error):  # CAT-287
    queries.create()
    before = queries.get()
    with pytest.raises(error):
        queries.maintain(kind, name, **fields)
    assert queries.get() == before
    with pytest.raises(T.NoSuchObjectException):
        queries.get("new")


def test_a_query_that_is_due_is_given_out_once(queries, database):  # CAT-287
    queries.create()
    queries.create("off", enabled=False)
    queries.create("elsewhere", "other")
    nothing = T.ScheduledQueryPollResponse()
    assert queries.poll() == nothing
    queries.clock.advance(timedelta(minutes=1))
    assert queries.poll("nobody's") == nothing
    given = queries.poll()
    assert (given.scheduleKey, given.query, given.user) == (T.ScheduledQueryKey("q", "n"), "/* schedule: q */select 1", "u")
    assert queries.get().nextExecution > now(database).timestamp()
    queries.clock.advance(timedelta(minutes=1))
    assert queries.poll() == nothing
    assert queries.poll("other").scheduleKey.scheduleName == "elsewhere"
    queries.tell(given.executionId, State.FINISHED)
    again = queries.poll()
    assert again.executionId > given.executionId
    assert queries.poll() == nothing


def test_what_is_due_first_is_given_first(queries):
    for name, at in (("b", 200), ("a", 300), ("c", 100)):
        queries.create(name)
        queries.maintain(ALTER, name, enabled=True, schedule=EVERY_MINUTE, nextExecution=at)
    assert [queries.poll().scheduleKey.scheduleName for _ in range(3)] == ["c", "b", "a"]


def test_progress_goes_one_way(queries):  # CAT-287
    queries.create()
    queries.clock.advance(timedelta(minutes=1))
    execution = queries.poll().executionId
    for state in (State.INITED, State.AUTO_DISABLED):
        with pytest.raises(T.InvalidOperationException):
            queries.tell(execution, state)
    for _ in range(2):
        queries.tell(execution, State.EXECUTING)
    with pytest.raises(T.InvalidOperationException, match="Invalid state change: EXECUTING=>INITED"):
        queries.tell(execution, State.INITED)
    queries.tell(execution, State.FINISHED)
    for state in (State.EXECUTING, State.FINISHED, State.FAILED):
        with pytest.raises(T.InvalidOperationException, match="Invalid state change: FINISHED=>"):
            queries.tell(execution, state)
    with pytest.raises(T.MetaException, match="no scheduled execution 99999"):
        queries.tell(99999, State.EXECUTING)


def test_a_query_may_be_changed_or_dropped_while_it_runs(queries):
    queries.create()
    queries.clock.advance(timedelta(minutes=1))
    execution = queries.poll().executionId
    queries.maintain(ALTER, enabled=True, schedule=EVERY_MINUTE, query="select 3", nextExecution=100)
    assert queries.poll().executionId is None
    queries.tell(execution, State.FINISHED)
    execution = queries.poll().executionId
    queries.maintain(DROP)
    with pytest.raises(T.MetaException):
        queries.tell(execution, State.FINISHED)
    queries.create()
    assert queries.poll().executionId is None


def test_an_execution_without_progress_times_out(queries, database):
    assert queries.rare.end_silent_executions() == 0
    queries.create()
    queries.clock.advance(timedelta(minutes=1))
    first = queries.poll().executionId
    queries.clock.advance(timedelta(seconds=100))
    queries.tell(first, State.EXECUTING)
    queries.clock.advance(timedelta(seconds=100))
    assert queries.rare.end_silent_executions() == 0
    assert queries.poll().executionId is None
    queries.clock.advance(timedelta(seconds=21))
    assert queries.rare.end_silent_executions() == 1
    with pytest.raises(T.InvalidOperationException, match="TIMED_OUT=>FINISHED"):
        queries.tell(first, State.FINISHED)
    [(state, message)] = database.once("SELECT body ->> 'state', body ->> 'errorMessage' FROM rare_objects WHERE kind = 'scheduled execution'")
    assert (state, message) == ("4", "Query stuck in: EXECUTING state for >120 seconds. Execution timed out.")
    assert queries.poll().executionId > first


def test_executions_are_kept_for_their_time(queries):
    queries.create()
    queries.run(State.FINISHED)
    queries.clock.advance(timedelta(days=29))
    queries.run(State.FAILED)
    assert queries.rare.purge() == RareReport()
    queries.clock.advance(timedelta(days=2))
    assert queries.rare.purge() == RareReport(scheduled_executions=1)
    queries.clock.advance(timedelta(days=30))
    assert queries.rare.purge() == RareReport(scheduled_executions=1)


@pytest.mark.parametrize("settings", [{"execution_timeout": timedelta(seconds=-1), "execution_age": timedelta(seconds=-1)}], indirect=True)
def test_house_keeping_may_be_off(queries):
    queries.create()
    queries.run(State.FINISHED)
    queries.clock.advance(timedelta(minutes=1))
    execution = queries.poll().executionId
    queries.clock.advance(timedelta(days=300))
    assert (queries.rare.end_silent_executions(), queries.rare.purge()) == (0, RareReport())
    queries.tell(execution, State.FINISHED)


@pytest.mark.parametrize("settings", [{"disable_after": 3}], indirect=True)
def test_a_query_that_fails_too_often_is_disabled(queries, database):
    queries.create()
    for state in (State.FAILED, State.FAILED, State.FINISHED, State.FAILED, State.TIMED_OUT):
        assert queries.run(state) == 1
    assert queries.get().enabled
    queries.run(State.FAILED)
    assert not queries.get().enabled
    assert queries.run(State.FINISHED) is None
    [(message,)] = database.once("SELECT body ->> 'errorMessage' FROM rare_objects WHERE kind = 'scheduled execution' AND body ->> 'state' = '5'")
    assert message == "Disabling query after 3 consecutive failures"
    queries.maintain(ALTER, enabled=True, schedule=EVERY_MINUTE)
    queries.run(State.FAILED)
    assert queries.get().enabled


@pytest.mark.parametrize("settings", [{"skip_after": 3}], indirect=True)
def test_a_query_that_fails_rests(queries):
    queries.create()
    assert [queries.run(State.FAILED) for _ in range(5)] == [1, 1, 2, 3, 3]
    queries.run(State.FINISHED)
    assert [queries.run(State.FAILED) for _ in range(3)] == [1, 1, 2]


@pytest.mark.parametrize("settings", [{"scheduled_queries": False}], indirect=True)
def test_calls_may_be_switched_off(queries):
    for call in (queries.create, queries.poll, lambda: queries.tell(1, State.FAILED)):
        with pytest.raises(T.MetaException, match=r"disabled via metastore\.scheduled\.queries\.enabled"):
            call()


def test_a_long_message_is_cut_to_its_first_line(queries, database):
    queries.create()
    for message in ("x" * 999, "why\n" + "at Somewhere\n" * 100, "y" * 2000):
        queries.clock.advance(timedelta(minutes=1))
        queries.tell(queries.poll().executionId, State.FAILED, message)
    kept = database.once("SELECT body ->> 'errorMessage' FROM rare_objects WHERE kind = 'scheduled execution' ORDER BY key")
    assert [message for (message,) in kept] == ["x" * 999, "why", "y" * 997 + "..."]


def test_no_two_pollers_get_the_same(queries):
    for number in range(6):
        queries.create(str(number))
    queries.clock.advance(timedelta(minutes=1))
    clients = [queries.client.clone() for _ in range(10)]
    with ThreadPoolExecutor(len(clients)) as pool:
        given = list(pool.map(lambda client: queries.poll(client=client), clients))
    for client in clients:
        client.close()
    names = [each.scheduleKey.scheduleName for each in given if each.executionId]
    assert sorted(names) == [str(number) for number in range(6)]
    assert len({each.executionId for each in given if each.executionId}) == 6
