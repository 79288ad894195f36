"""Fixtures: a database of the test's own; modules of a folder whose tests share a database import them."""

import pytest

__all__ = ["database", "database_url"]


@pytest.fixture
def database_url(postgres):
    """URL of a fresh database with the newest schema."""
    with postgres.cloned() as url:
        yield url


@pytest.fixture
def database(database_url):
    """A fresh Database with the newest schema."""
    from metastore.db.engine import Database  # a unit test does not need it

    opened = Database(database_url, pool_size=12)
    yield opened
    opened.close()
