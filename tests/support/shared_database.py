"""Fixtures: one database for all tests of a folder, emptied before each; a folder's conftest imports them."""

import pytest

from tests.support.transactions import Transactions, emptied

__all__ = ["database", "database_url", "shared_url", "t"]


@pytest.fixture(scope="session")
def shared_url(postgres):
    with postgres.cloned() as url:
        yield url


@pytest.fixture
def database_url(shared_url):
    return shared_url


@pytest.fixture
def database(shared_url):
    with emptied(shared_url) as opened:
        yield opened


@pytest.fixture
def t(database):
    return Transactions(database)
