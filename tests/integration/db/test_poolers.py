"""A pooler in transaction mode is refused at the start, however it deals out its backends."""

import pytest
from sqlalchemy import make_url

from metastore.db import migrate, sessions
from metastore.errors import InvalidInputError, UnavailableError
from tests.support.pooler import Pooler


@pytest.fixture
def pooled(postgres, database_url):
    """``pooled(...)``: the URL of this test's database by way of a pooler."""
    running = []

    def started(**how):
        pooler = Pooler(postgres.postgres._socket_dir / f".s.PGSQL.{postgres.postgres._port}", **how)
        running.append(pooler)
        return f"postgresql://metastore@127.0.0.1:{pooler.port}/{make_url(database_url).database}?gssencmode=disable"
    yield started
    for pooler in running:
        pooler.close()


@pytest.mark.parametrize("step", [migrate.versions, migrate.upgrade])
def test_each_transaction_on_another_backend(pooled, step):
    with pytest.raises(InvalidInputError, match="pool_mode=transaction.*Give the address of PostgreSQL itself"):
        step(pooled(backends=5))


def test_one_backend_for_all(pooled, monkeypatch):
    """The first session waits for the transaction of the second one."""
    monkeypatch.setattr(sessions, "_PROBE_S", 0.5)

    with pytest.raises(UnavailableError, match="does not answer"):
        migrate.versions(pooled(backends=1))


def test_settings_of_the_session_refused(pooled):
    with pytest.raises(InvalidInputError, match="refuses the settings with which a session begins.*unsupported startup parameter"):
        migrate.versions(pooled(refuses_options=True))


def test_sessions_of_our_own_are_fine(database_url):
    sessions.require_own(database_url)
