"""Either side of the one address is killed in the middle of a rename, and both are right afterwards."""

import signal
from contextlib import closing

import psycopg2
import pytest

from tests.integration.upstream.conftest import table
from tests.robustness.harness import upstream_deaths
from tests.robustness.harness.processes import Postgres, Server, remove, scratch, wait_for
from tests.robustness.harness.upstream_deaths import (
    Front,
    Renames,
    dies_meanwhile,
    front_dies,
    upstream_dies_before_it_is_asked,
)

pytestmark = [pytest.mark.robustness, pytest.mark.timeout(1200)]


class Behind:
    """A server of ours that has the catalog."""

    def __init__(self, directory, postgres):
        self.database_url = upstream_deaths.database(postgres, "behind")
        self.server = Server("b", directory, self.database_url, settings=upstream_deaths.UNHURRIED)
        self.uri = self.server.uri

    def kill(self):
        pid = self.server.process.pid
        self.server.signal(signal.SIGKILL)
        wait_for(lambda: self.server.process.pid != pid, "the supervisor to see it")

    def back(self):
        wait_for(lambda: self.server.ready, "the upstream to be up again")

    def held(self):
        """Its next change of a table waits until what this gives is called."""
        session = psycopg2.connect(self.database_url)
        session.cursor().execute("LOCK TABLE tables IN SHARE MODE")
        return session.close, self.is_waiting

    def is_waiting(self):
        with closing(psycopg2.connect(self.database_url)) as session, session.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'tables'::regclass")
            return cursor.fetchall()[0][0] > 0


@pytest.fixture(scope="module")
def sides():
    place = scratch()
    postgres, processes = Postgres(place / "pg"), []
    try:
        behind = Behind(place, postgres)
        processes.append(behind.server)
        wait_for(behind.server.has_started, "the upstream to start")
        front = Front(place, postgres, behind.uri)
        processes.append(front.server)
        wait_for(front.server.has_started, "the front to start")
        yield front, behind
    finally:
        for process in reversed(processes):
            process.stop()
        postgres.embedded.stop()
        remove(place)


@pytest.fixture
def renames(sides, request):
    """Of a table of the test's own: what a dead upstream had begun with its directory is undone after its lease."""
    return Renames(*sides, table(db=request.node.name))


def test_the_front_dies_before_it_asks(renames):
    assert not front_dies(renames, "upstream.noted")


def test_the_front_dies_after_the_upstream_said_yes(renames):
    assert front_dies(renames, "upstream.answered")


def test_the_upstream_dies_before_it_is_asked(renames):
    assert not upstream_dies_before_it_is_asked(renames)


def meanwhile(renames, *dead):
    return dies_meanwhile(renames, renames.behind.held, *dead)


def front_killed(renames):
    return lambda: renames.front.server.signal(signal.SIGKILL)


def test_the_front_dies_while_the_upstream_works(renames):
    """Which does what it was asked for, and has nobody to tell."""
    assert meanwhile(renames, front_killed(renames))


def test_the_upstream_dies_while_it_works(renames):
    meanwhile(renames, renames.behind.kill)


def test_both_die_while_the_upstream_works(renames):
    meanwhile(renames, front_killed(renames), renames.behind.kill)
