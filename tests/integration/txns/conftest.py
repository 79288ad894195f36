"""Transactions on a database of their own."""

import pytest

from tests.support.transactions import Transactions


@pytest.fixture
def t(database):
    return Transactions(database)
